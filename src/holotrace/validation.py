"""Find events that a sound trace cannot contain, for `holotrace check --strict`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import polars as pl

from holotrace.enrich.device.device_work import device_rows, device_work
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.steps.steps import steps
from holotrace.errors import HolotraceError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.schema import LAUNCH_KINDS, EventKind, KernelKind
from holotrace.store.health import Finding
from holotrace.store.trace import RankTrace, Trace

Severity = Literal["error", "warning"]

MOST_EXAMPLES = 3
_REPAIRS_THAT_GUESS = ("another_document", "negative_duration", "repeated_trace_events", "stray_bracket")
"""Repairs that are guesses: the reader replaces a negative duration with 0, and adds the events of a second list or
document to the recording."""

_EVENT_WAITS = ("Event Sync", "Stream Wait Event")
_COLLECTIVE_FIELDS = ("collective", "in_elements", "out_elements", "dtype", "group_size")


@dataclass(frozen=True)
class Violation:
    """One rule that a file breaks.

    rank      rank of the file
    rule      a short name: `negative_duration`, `starts_before_launch`, …
    severity  error: numbers computed from these events are wrong; warning: the events lack information
    count     number of events that break the rule; 0 if the rule is not about events
    meaning   the problem in one sentence
    examples  position and name of the first few events that break the rule
    """

    rank: int
    rule: str
    severity: Severity
    count: int
    meaning: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A rule for sound traces; `broken_by` returns the `event_index` of each event that breaks the rule."""

    name: str
    severity: Severity
    meaning: str
    broken_by: Callable[[RankTrace], pl.Series]


def validate(trace: Trace, *, executor: Executor = IN_PROCESS) -> tuple[Violation, ...]:
    """Return the rules that each rank's file breaks, in the order of `RULES`; empty if all files are sound.

    An unreadable file breaks the rule `readable`. Each kind of data that the reader repaired or dropped
    is also a violation; its rule is the name that `holotrace check` shows for this kind.
    """
    of_ranks = trace.map(_one_rank, executor)
    return tuple(violation for violations in of_ranks.values() for violation in violations)


def _one_rank(rank_trace: RankTrace) -> tuple[Violation, ...]:
    try:
        broken = [_violation(rank_trace, rule) for rule in RULES]
        return (*_of_reading(rank_trace), *(violation for violation in broken if violation is not None))
    except HolotraceError as error:
        return (Violation(rank_trace.rank, "readable", "error", 0, str(error)),)


def _of_reading(rank_trace: RankTrace) -> tuple[Violation, ...]:
    """Return a violation for each kind of repaired or dropped data.

    It is a warning if the reader repaired the data without guessing, and an error otherwise.
    """
    return tuple(
        Violation(
            rank_trace.rank,
            finding.kind,
            "error" if finding.severity == "dropped" or finding.kind in _REPAIRS_THAT_GUESS else "warning",
            finding.count,
            f"{finding.severity} while reading the file{_loss(finding)}",
            tuple(f"byte {offset:,}" for offset in finding.offsets[:MOST_EXAMPLES]),
        )
        for finding in rank_trace.health.findings
        if finding.severity != "note"
    )


def _loss(finding: Finding) -> str:
    if finding.severity == "repaired":
        return "; nothing is lost"
    return f"; {finding.loss} lost" if finding.loss else ""


def _violation(rank_trace: RankTrace, rule: Rule) -> Violation | None:
    events = rule.broken_by(rank_trace)
    if events.is_empty():
        return None
    return Violation(
        rank_trace.rank, rule.name, rule.severity, len(events), rule.meaning, _examples(rank_trace, events)
    )


def _examples(rank_trace: RankTrace, event_indexes: pl.Series) -> tuple[str, ...]:
    first = event_indexes.sort().head(MOST_EXAMPLES)
    events = rank_trace.table("events", ["event_index", "name"])
    named = events.filter(pl.col("event_index").is_in(first.implode()))
    names = rank_trace.texts(named["name"]).to_list()
    return tuple(f"event {index}: {name}" for index, name in zip(named["event_index"].to_list(), names, strict=True))


def _overlapping_calls(rank_trace: RankTrace) -> pl.Series:
    return call_stacks(rank_trace).filter("is_overlapping")["event_index"]


def _orphans(rank_trace: RankTrace) -> pl.Series:
    """Return device rows whose correlation number matches no launch call; none if no launch calls were recorded."""
    if event_ranges(rank_trace, LAUNCH_KINDS, ["event_index"]).is_empty():
        return pl.Series("event_index", [], pl.UInt32)
    rows = device_rows(rank_trace).hstack(launches(rank_trace).select("launch_index"))
    return rows.filter((pl.col("correlation") > 0) & pl.col("launch_index").is_null())["event_index"]


def _starts_before_launch(rank_trace: RankTrace) -> pl.Series:
    rows = device_rows(rank_trace).hstack(launches(rank_trace).select("launch_start_ns"))
    return rows.filter(pl.col("start_ns") < pl.col("launch_start_ns"))["event_index"]


def _steps_out_of_order(rank_trace: RankTrace) -> pl.Series:
    """Return the steps that begin after a step with a higher number on the same thread."""
    ordered = steps(rank_trace).sort("track_id", "start_ns", maintain_order=True)
    late = ordered.filter(pl.col("step") < pl.col("step").cum_max().over("track_id"))
    kinds = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)
    ranges = event_ranges(rank_trace, kinds, ["event_index", "name", "start_ns", "track_id"])
    late_ranges = ranges.join(late, on=["start_ns", "track_id"], how="semi")
    is_step = rank_trace.texts(late_ranges["name"]).str.starts_with("ProfilerStep")
    return late_ranges.filter(is_step)["event_index"]


def _undescribed_collectives(rank_trace: RankTrace) -> pl.Series:
    """Return communication kernels that lack the collective's name, element type, sizes or group size."""
    work = device_work(rank_trace).filter(pl.col("kernel_kind") == KernelKind.COMMUNICATION)
    described = rank_trace.table("collectives", ["event_index", *_COLLECTIVE_FIELDS]).drop_nulls()
    return work.join(described, on="event_index", how="anti")["event_index"]


def _waits_for_nothing(rank_trace: RankTrace) -> pl.Series:
    """Return each wait for a CUDA event if the file contains no call that records this event."""
    waits = rank_trace.table("synchronisations", ["event_index", "sync_kind", "wait_on_record_correlation"])
    kinds = rank_trace.texts(waits["sync_kind"])
    calls = event_ranges(rank_trace, LAUNCH_KINDS, ["correlation"])["correlation"].drop_nulls()
    is_known = waits["wait_on_record_correlation"].is_in(calls.implode()).fill_null(value=False)
    return waits.filter(kinds.is_in(_EVENT_WAITS) & ~is_known)["event_index"]


RULES: tuple[Rule, ...] = (
    Rule(
        "starts_before_launch",
        "error",
        "this work starts before the call that launched it: the clocks of host and device disagree",
        _starts_before_launch,
    ),
    Rule(
        "steps_out_of_order",
        "error",
        "these steps begin after a step with a higher number: the clock went back, or recordings were joined",
        _steps_out_of_order,
    ),
    Rule(
        "overlapping_calls",
        "warning",
        "these calls begin inside another call of their thread but end after it, so they do not nest",
        _overlapping_calls,
    ),
    Rule(
        "orphan_correlation",
        "warning",
        "the file does not contain the call that launched this work: the call came before the recording, or is missing",
        _orphans,
    ),
    Rule(
        "undescribed_collective",
        "warning",
        "these communication kernels lack the collective's name, element type, sizes or group size",
        _undescribed_collectives,
    ),
    Rule(
        "wait_for_unknown_event",
        "warning",
        "these calls wait for an event, but the file does not contain the call that records the event",
        _waits_for_nothing,
    ),
)
"""The rules about events; the rules for errors come before those for warnings."""
