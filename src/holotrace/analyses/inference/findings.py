"""Findings about the steps: how they were found, which steps are not steady, and what is unknown."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from holotrace.analyses.inference.periods import CUT_OFF, START
from holotrace.analyses.inference.step_work import StepWork
from holotrace.schema import KernelKind
from holotrace.units import duration_text, percent_text

_MOST_REASONS = 3
_HOW = {
    "python function": "no range marks the steps, so each call of the engine's Python function begins a step",
    "module": "no range marks the steps, so each call of the model's module begins a step",
    "compiled graph": "no range marks the steps, so each call of the same compiled graph begins a step",
    "token embedding": "no range marks the steps, so each lookup of token embeddings begins a step",
    "profiler step": "no range marks the steps; each ProfilerStep contains one forward pass, so it counts as a step",
}


def findings_of(steps: pl.DataFrame, known: StepWork) -> tuple[str, ...]:
    """Return the findings of one rank."""
    sentences = (
        _how_found(steps),
        *_set_apart(steps),
        *_unknown_kinds(steps),
        _unknown_tokens(steps),
        _drafted(steps),
        *_unknown_bounds(steps, known),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _how_found(steps: pl.DataFrame) -> str:
    return _HOW.get(steps.item(0, "found_by"), "")


def _set_apart(steps: pl.DataFrame) -> Iterator[str]:
    for period, where in ((START, "at the beginning"), (CUT_OFF, "at the end")):
        apart = steps.filter(pl.col("period") == period)
        if len(apart):
            yield f"{_counted(len(apart))} {where} {_is_are(len(apart))} not steady: {apart.item(0, 'period_reason')}"


def _unknown_kinds(steps: pl.DataFrame) -> Iterator[str]:
    is_empty = (pl.col("request_count") == 0).fill_null(value=False)
    unknown = steps.filter(pl.col("kind").is_null() & ~pl.col("is_draft") & ~is_empty)
    if len(unknown):
        name = unknown.item(0, "step_name")
        shown = f", such as {name!r}," if name else ""
        what = "neither the name nor" if name else "neither a name nor"
        yield f"the kind of {_counted(len(unknown))}{shown} is unknown, because {what} the shapes of embeddings and attention show it"


def _unknown_tokens(steps: pl.DataFrame) -> str:
    of_tokens = steps.filter(pl.col("kind").is_in(["prefill", "decode", "mixed"]) & pl.col("token_count").is_null())
    if of_tokens.is_empty():
        return ""
    return (
        f"the number of tokens in {_counted(len(of_tokens))} is unknown, because neither names nor shapes show it; record with "
        "record_shapes=True"
    )


def _drafted(steps: pl.DataFrame) -> str:
    drafted = steps["draft_token_count"].sum()
    if not drafted:
        return ""
    return (
        f"{drafted:,} of {steps['decode_token_count'].sum():,} decoded tokens were drafts; the number of accepted drafts was "
        "not recorded"
    )


def _unknown_bounds(steps: pl.DataFrame, known: StepWork) -> Iterator[str]:
    if known.work.is_empty():
        yield "no device work was recorded, so it is unknown what bounds the steps; record with ProfilerActivity.CUDA"
        return
    unknown_ns = int(steps["unknown_bound_ns"].sum())
    if unknown_ns:
        share = percent_text(unknown_ns / max(1, int(steps["step_ns"].sum())))
        yield (
            f"for {duration_text(unknown_ns)} ({share} of the step time), it is unknown whether compute or memory bounds the "
            f"kernels: {_why(known)}"
        )
    idle_ns = int(steps["unknown_idle_ns"].sum())
    if idle_ns:
        yield (
            f"the cause of {duration_text(idle_ns)} of idle time is unknown: the recording lacks either the launch of the "
            "next work, or kernels of a graph replay (see holotrace trust)"
        )


def _why(known: StepWork) -> str:
    if not known.is_known_device:
        name = known.device_name
        which = f"the device table does not contain {name!r}" if name else "the file does not name its device"
        return f"{which}; pass the name of a known device as device="
    inside = (pl.col("row") >= 0) & (pl.col("kernel_kind") == KernelKind.COMPUTATION) & pl.col("bound").is_null()
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time")
    faster = "the measured kernel times are below the computed lower bounds"
    reasons = (
        known.work.filter(inside)
        .with_columns(
            pl.when(pl.col("reason") == "")
            .then(pl.lit(faster))
            .otherwise(pl.col("reason").fill_null("launched before the recording"))
            .alias("reason")
        )
        .group_by("reason")
        .agg(time)
        .sort("time", "reason", descending=[True, False])
        .head(_MOST_REASONS)
    )
    return "; ".join(f"{reason} ({duration_text(time)})" for reason, time in reasons.iter_rows())


def _counted(count: int) -> str:
    return "1 step" if count == 1 else f"{count:,} steps"


def _is_are(count: int) -> str:
    return "is" if count == 1 else "are"
