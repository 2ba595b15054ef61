"""Figures of annotations, stragglers and counters hold the numbers of their results."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.analyses.cupti_counters.compute import cupti_counters
from holotrace.analyses.cupti_counters.entry import counters_by_operator
from holotrace.analyses.cupti_counters.figure import plot_cupti_counters
from holotrace.analyses.stragglers.compute import stragglers
from holotrace.analyses.stragglers.entry import skew_per_rank
from holotrace.analyses.stragglers.figure import plot_stragglers
from holotrace.analyses.user_annotations.compute import user_annotations
from holotrace.analyses.user_annotations.figure import plot_user_annotations
from holotrace.testing.builder import TraceBuilder
from jobs import MARKUP


def late_rank() -> TraceBuilder:
    """Rank 1 comes 40 µs later than rank 0."""
    return TraceBuilder().collective(start_us=0, duration_us=50).rank(1).collective(start_us=40, duration_us=10)


def counted(flop: float) -> TraceBuilder:
    """One kernel with that many additions, launched by `mm`."""
    builder = TraceBuilder().operator("mm", start_us=0, duration_us=5)
    builder.runtime("cudaLaunchKernel", start_us=1, duration_us=1, correlation=1)
    args = {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": flop}
    return builder.event(ph="X", cat="cuda_profiler_range", name="gemm", pid=0, tid=0, ts=9, dur=1, args=args)


def test_late_ranks_stand_out_by_their_colour() -> None:
    """One part for stragglers, one for the rest; each rank has a bar in one of them."""
    figure = plot_stragglers(stragglers(late_rank().build()))
    assert {bar.name: list(bar.x) for bar in figure.data} == {
        "late: the others wait for it": [0, 40],
        "other ranks": [0, 0],
    }
    assert "last in 1 of 1 collectives" in figure.data[0].customdata[1]
    assert "the others wait 40 µs (40,000 ns) for it, 100.0 %" in figure.data[0].customdata[1]


def test_nothing_to_compare_is_said_and_not_drawn() -> None:
    """One rank alone."""
    figure = plot_stragglers(stragglers(TraceBuilder().collective(start_us=0, duration_us=5).build()))
    assert figure.layout.annotations[0].text == "No collective can be compared between ranks."


def test_hundreds_of_ranks_fit_a_page() -> None:
    """Thin upright bars."""
    result = stragglers(late_rank().build())
    rows = pl.concat([result.per_rank.with_columns(pl.lit(rank, pl.Int32).alias("rank")) for rank in range(512)])
    figure = plot_stragglers(type(result)(rows, result.per_step))
    assert figure.layout.height <= 700


def test_annotations_are_split_into_their_own_and_inner_time() -> None:
    """40 of 100 µs are in the inner one; names are text, never markup."""
    builder = TraceBuilder().gpu_annotation("outer", start_us=0, duration_us=100)
    builder.gpu_annotation(MARKUP, start_us=10, duration_us=40)
    figure = plot_user_annotations(user_annotations(builder.build()))
    assert {bar.name: list(bar.x) for bar in figure.data} == {
        "the part itself": [60, 40],
        "annotated parts inside it": [40, 0],
    }
    assert "<script>" not in figure.to_json()


def test_the_host_is_shown_where_there_is_no_gpu_side() -> None:
    """Or where it is asked for."""
    result = user_annotations(TraceBuilder().annotation("load", start_us=0, duration_us=5).build())
    assert list(plot_user_annotations(result).data[0].x) == [5]
    assert plot_user_annotations(result, side="gpu").layout.annotations[0].text == "There are no user annotations."


@pytest.mark.parametrize(
    ("flop", "shown", "unit"), [(3.0, 3.0, "(FLOP)"), (5e9, 5.0, "(GFLOP)"), (2e15, 2.0, "(PFLOP)")]
)
def test_operations_are_shown_in_a_fitting_unit(flop, shown, unit) -> None:
    """By the outermost operator."""
    figure = plot_cupti_counters(cupti_counters(counted(flop).build()))
    assert list(figure.data[0].x) == [shown]
    assert figure.layout.xaxis.title.text.endswith(unit)
    assert list(figure.layout.yaxis.ticktext) == ["mm"]


def test_no_operations_are_said_and_not_drawn() -> None:
    """Counters of nothing but zeros, or none at all."""
    figure = plot_cupti_counters(cupti_counters(counted(0).build()))
    assert figure.layout.annotations[0].text == "No counters of floating-point operations were recorded."


def test_tables_for_people_say_late_in_words() -> None:
    """And operations as whole numbers."""
    assert skew_per_rank(stragglers(late_rank().build()))["is_straggler"].to_list() == ["", "late"]
    assert counters_by_operator(cupti_counters(counted(7).build())).rows() == [("mm", 7, 1)]
