"""Inference: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.inference.compute import Inference
from holotrace.analyses.inference.parts import PARTS
from holotrace.questions.tables import View, known_columns

_TIMES = ("p50_step_ns", "p90_step_ns", "p99_step_ns", "mean_gap_before_ns", "mean_host_ns", "output_token_ns")
_COUNTS = ("step_count", "apart_count", "mean_token_count")
_SHARES = ("attention_fraction", "moe_fraction", "draft_fraction")


def kinds_of_steps(result: Inference) -> pl.DataFrame:
    """Return the steps of each kind: percentiles, tokens, and what bounds them."""
    columns = ("rank", "kind", "is_draft", *_COUNTS, *_TIMES, "bound", *_SHARES)
    return _shown(result.per_kind.select(columns), "p50_step_ns")


def batches_of_steps(result: Inference) -> pl.DataFrame:
    """Return the steps, grouped by kind and number of requests."""
    columns = ("rank", "kind", "is_draft", "request_count", *_COUNTS, *_TIMES, "bound")
    return _shown(result.per_batch.select(columns), "p50_step_ns")


def parts_of_kinds(result: Inference) -> pl.DataFrame:
    """Return the time of each kind of step, divided into parts."""
    return _shown(result.per_kind.select("rank", "kind", "is_draft", "busy_ns", *PARTS, "bound"), "busy_ns")


def ranks_in_short(result: Inference) -> pl.DataFrame:
    """Return the counts, times and rates of each rank over its steady steps."""
    return _shown(result.summary.drop(*PARTS), "elapsed_ns")


def times_of_steps(result: Inference) -> pl.DataFrame:
    """Return every step with its times."""
    return _shown(result.per_step.drop("engine", "found_by", "period_reason", "start_ns", "end_ns"), "step_ns")


def steps_set_apart(result: Inference) -> pl.DataFrame:
    """Return the steps that are not steady, with the reason."""
    apart = result.per_step.filter(pl.col("period_reason").is_not_null())
    return apart.select("rank", "inference_step", "kind", "request_count", "period", "period_reason", "step_ns")


def _shown(table: pl.DataFrame, *kept: str) -> pl.DataFrame:
    """Drop columns that have no values, `PARTS` that are always 0, and `is_draft` if it is never true; keep `kept`."""
    known = known_columns(table).columns
    empty = [part for part in PARTS if part in table.columns and not table[part].sum()]
    drafts = ["is_draft"] if "is_draft" in table.columns and not table["is_draft"].any() else []
    return table.select(
        name for name in table.columns if name in kept or (name in known and name not in (*empty, *drafts))
    )


VIEWS = (
    View("Steps by kind", kinds_of_steps, "p50_step_ns"),
    View("Time of each kind of step, by part", parts_of_kinds, "busy_ns"),
    View("Steps by kind and number of requests", batches_of_steps, "p50_step_ns"),
    View("All steps of each rank", ranks_in_short, "elapsed_ns"),
    View("Steps that are not steady", steps_set_apart, "step_ns", is_detail=True),
    View("Each step", times_of_steps, "step_ns", is_detail=True),
)
