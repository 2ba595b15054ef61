"""Tests of the printed tables of inference and of the SQL view."""

from __future__ import annotations

import holotrace
from holotrace.analyses.inference.compute import inference
from holotrace.analyses.inference.tables import VIEWS, kinds_of_steps, parts_of_kinds
from holotrace.questions.tables import print_view
from holotrace.testing.builder import TraceBuilder


def job() -> holotrace.Trace:
    """Return three steps of SGLang; the last step has no device work."""
    builder = TraceBuilder()
    for start in (0, 100, 200):
        builder.annotation("step[DECODE bs=4]", start_us=start, duration_us=80)
        if start < 200:
            builder.kernel("gemm", start_us=start + 20, duration_us=60, launch_us=start + 10)
    return builder.build()


def test_every_table_prints() -> None:
    """Every view can be printed; a step that is cut off is in a separate table."""
    result = inference(job())
    printed = {view.caption: print_view(view, result, 10) for view in VIEWS}
    (apart,) = printed["Steps that are not steady"].rows
    assert [cell.text for cell in apart][-3:] == ["cut off", "its device work was not recorded", "80 µs"]


def test_columns_without_values_are_left_out() -> None:
    """The job has no drafts, no experts and no compute-bound kernels, so the tables omit these columns."""
    result = inference(job())
    assert not {"is_draft", "moe_fraction", "draft_fraction"} & set(kinds_of_steps(result).columns)
    assert parts_of_kinds(result).columns == [
        *("rank", "kind", "busy_ns"),
        *("unknown_bound_ns", "launch_idle_ns", "host_idle_ns", "bound"),
    ]


def test_sql_has_the_steps() -> None:
    """The view `inference_steps` has a row for each step, with the counts from the name of its range."""
    query = "SELECT rank, inference_step, kind, request_count, duration_ns FROM inference_steps ORDER BY inference_step LIMIT 1"
    assert holotrace.sql(job(), query).rows() == [(0, 0, "decode", 4, 80_000)]
