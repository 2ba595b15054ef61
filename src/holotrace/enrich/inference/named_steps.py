"""Host ranges whose names mark inference steps. Nested ranges that mark the same step are merged."""

from __future__ import annotations

import re
from typing import NamedTuple

import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, nesting
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.inference.step_names import LIKE_A_STEP, StepName, step_of_name
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_KINDS = (EventKind.USER_ANNOTATION, EventKind.CPU_OP)
"""Files from before 2022 record annotations as operators."""

_COLUMNS = ["event_index", "name", "start_ns", "end_ns", "track_id"]
_GENERAL_ENGINES = ("annotation", "pattern")


class NamedStep(NamedTuple):
    """A range that marks a step.

    said  what is known about the step, such as its number of requests, from the name of this range and from the names
          of inner ranges that mark the same step
    """

    event_index: int
    name: str
    start_ns: int
    end_ns: int
    track_id: int
    said: StepName


class NamedSteps(NamedTuple):
    """The steps marked by the names of ranges.

    steps      sorted by start
    holders    ranges that contain several unnamed steps, such as all denoising steps of an image; sorted by start
    unreadable names that begin like the step names of an engine, but match no rule
    """

    steps: list[NamedStep]
    holders: list[NamedStep]
    unreadable: tuple[str, ...]


def named_steps(rank_trace: RankTrace, patterns: tuple[str, ...]) -> NamedSteps:
    """Return the steps: a range marks a step if its name matches a rule in `step_names` or one of `patterns`.

    If exactly one step is nested inside a range, both mark the same step: for example, SGLang's `step[…]` may be inside
    `execute_…`. A range with several steps inside is not a step.
    """
    said = _said(rank_trace, patterns)
    texts = {number: text for number, (text, known) in said.items() if known is not None}
    unreadable = tuple(sorted(text for text, known in said.values() if known is None and re.search(LIKE_A_STEP, text)))
    ranges = event_ranges(rank_trace, _KINDS, _COLUMNS, names=pl.Series(list(texts), dtype=pl.UInt32))
    rows = [
        NamedStep(index, texts[name], start, end, track, known)
        for index, name, start, end, track in ranges.iter_rows()
        if (known := said[name][1]) is not None
    ]
    steps = sorted(_resolved(ranges, rows), key=lambda step: (step.start_ns, step.event_index))
    return NamedSteps(
        [step for step in steps if not step.said.rule.holds_steps],
        [step for step in steps if step.said.rule.holds_steps],
        unreadable,
    )


def _said(rank_trace: RankTrace, patterns: tuple[str, ...]) -> dict[int, tuple[str, StepName | None]]:
    """Return {string id: (text, parsed step name)} for the names of all ranges."""
    names = rank_trace.events_of(_KINDS, ["name"])["name"].unique()
    return {
        number: (text, step_of_name(text, patterns))
        for number, text in zip(names, rank_trace.texts(names), strict=True)
    }


def _resolved(ranges: pl.DataFrame, rows: list[NamedStep]) -> list[NamedStep]:
    """Merge nested ranges that mark the same step."""
    nested = nesting(*(ranges[column].to_numpy() for column in ("track_id", "start_ns", "end_ns")))
    inside: dict[int, list[NamedStep]] = {}
    for row in nested.depth.argsort(kind="stable")[::-1].tolist():
        steps = inside.pop(row, [])
        inside.setdefault(int(nested.parent[row]), []).extend(_with_inner(rows[row], steps))
    return inside.get(int(NO_PARENT), [])


def _with_inner(outer: NamedStep, steps: list[NamedStep]) -> list[NamedStep]:
    """Merge a range with the step inside it; if there are several steps inside, keep them and drop the range."""
    if len(steps) != 1 or outer.said.rule.holds_steps != steps[0].said.rule.holds_steps:
        return steps or [outer]
    return [outer._replace(said=_joined(outer.said, steps[0].said))]


def _joined(outer: StepName, inner: StepName) -> StepName:
    """Combine the facts in the names of two nested ranges. If both names give a fact, the outer name's value is used.

    The result keeps the rule that matched the inner name. If that rule is general (a rule for annotations, or a
    user's pattern), the result has the rule that matched the outer name instead.
    """
    filled = {name: value for name, value in inner._asdict().items() if getattr(outer, name) is None}
    rule = outer.rule if inner.rule.engine in _GENERAL_ENGINES else inner.rule
    return outer._replace(**filled, rule=rule, sums=outer.sums or inner.sums)
