"""Rules, and the cases that they find on one rank or between ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from holotrace.algorithms.intervals import Intervals
from holotrace.enrich.critical_path.what_if import Change

if TYPE_CHECKING:
    from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
    from holotrace.analyses.diagnosis.job_evidence import JobEvidence

Confidence = Literal["high", "medium", "low"]

OF_THE_STEP = "of the step"
"""Unit of thresholds that are shares of the steady steps."""

NOTHING: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))
"""The explained time of a case that costs nothing by itself."""


def needs_nothing(_: object) -> None:
    """The default `needs` of a rule: nothing is missing.

    This is not a lambda, because lambdas cannot be pickled.
    """


class Place(NamedTuple):
    """Where to look: the known facts about what caused a case.

    event_index  the first event to look at
    at_ns        when it began
    """

    module: str | None = None
    operator: str | None = None
    kernel: str | None = None
    source_line: str | None = None
    event_index: int | None = None
    at_ns: int | None = None


@dataclass(frozen=True, eq=False)
class Case:
    """A problem that a rule found on one rank.

    explained       the time that the case explains: the rank would do something else then if the cause were fixed
    further         idle time that the case explains as well, if its replay saves more than `explained`
    is_certain      the explained time is the cost of the case even if the replay saves less
    value           what the rule measured, in the unit of its threshold
    saved_fraction  the largest share of the explained time that fixing the cause can save
    count           how many events caused it, in all steady steps
    subject         tells several cases of one rule apart, for example an operator; each subject becomes its own finding
    place           where to look
    change          how the critical path's graph changes when the cause is fixed; the replay predicts what that saves
    words           other values that the sentences of the rule mention
    is_at_most      the change assumes the best possible fix, so that what the replay saves is only an upper bound
    is_estimate     the cost is estimated from other jobs: fixing the cause may save less or more
    """

    explained: Intervals
    value: float
    saved_fraction: float = 1.0
    count: int = 1
    subject: str = ""
    place: Place = field(default_factory=Place)
    change: Change | tuple[Change, ...] | None = None
    words: Mapping[str, Any] = field(default_factory=dict)
    further: Intervals | None = None
    is_certain: bool = False
    is_at_most: bool = False
    is_estimate: bool = False


def in_line(place: Place) -> str:
    """Name the line of code at the end of a sentence; empty if it is unknown."""
    return f", in {place.source_line}" if place.source_line else ""


class Delay(NamedTuple):
    """What delays a rank for which others wait.

    own_ns  the time per step that it takes on that rank
    lines   the lines of code that take it, if known
    """

    own_ns: float
    lines: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class JobCase:
    """A problem that a rule found between ranks.

    cost_ns  the most time per step that fixing the cause can save, on each rank that loses it; all of it is exposed
             communication
    else_ns  the same for time outside communication
    rank     the rank that causes it; None if none does
    delays   if different ranks cause it at different times: what delays each of them; fixing the cause saves this as well
    The rest is as in `Case`.
    """

    cost_ns: Mapping[int, float]
    value: float
    rank: int | None = None
    count: int = 1
    subject: str = ""
    place: Place = field(default_factory=Place)
    words: Mapping[str, Any] = field(default_factory=dict)
    delays: Mapping[int, Delay] = field(default_factory=dict)
    else_ns: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RankCase:
    """A case with its rank, and what it costs after other findings have claimed their time.

    cost_ns       per step: the time that no earlier finding claims, times the share that can be saved
    explained_ns  per step: all time that the case explains
    saved_ns      per step: what a replay without the cause saves; None if it was not replayed
    absorbed_by   the rule that claims most of the explained time before this one; "" if none does
    is_at_most    as in `Case`
    is_estimate   as in `Case`
    """

    rank: int
    value: float
    cost_ns: float
    explained_ns: float
    saved_ns: float | None
    count: int
    place: Place
    words: Mapping[str, Any]
    absorbed_by: str = ""
    is_at_most: bool = False
    is_estimate: bool = False


def who_waits(case: RankCase) -> str:
    """Say who waits for the host: the GPU or, if there is none, the training itself."""
    return "the GPU waits" if case.words["is_idle"] else "training waits"


class Said(NamedTuple):
    """The sentences of a rule about all cases of one subject: what happens, and what to do about it."""

    what: str
    advice: str


@dataclass(frozen=True)
class Rule:
    """A rule about one rank.

    name        unique, in snake case; its section on the page of the documentation
    looks_for   what it looks for, in words
    threshold   the smallest value at which the rule applies
    unit        the unit of the threshold, and of `Case.value`: `of the step`, `calls per step` …
    reason      why this threshold
    source      where the rule comes from: a URL, or a page of this documentation
    precedence  rules with lower numbers claim time first: 0 certain causes, 1 likely causes,
                2 uncertain causes and what the recording adds, 3 symptoms
    check       returns the cases of a rank, also those below the threshold
    say         says what happens and what to do about it; there is at least one case, the costliest first
    needs       says which input is missing, and how to record it; None if nothing is missing
    confidence  how certain the cause is if the rule applies
    """

    name: str
    looks_for: str
    threshold: float
    unit: str
    reason: str
    source: str
    check: Callable[[RankEvidence], Iterable[Case]]
    say: Callable[[Sequence[RankCase]], Said]
    precedence: int = 1
    needs: Callable[[RankEvidence], str | None] = needs_nothing
    confidence: Confidence = "high"


@dataclass(frozen=True)
class JobRule:
    """A rule about the communication between ranks.

    Its fields are those of `Rule`, except for:

    analyses  names of the questions whose results it reads
    check     yields each `JobCase`, also those below the threshold
    needs     as in `Rule`; an empty text if nothing is missing, but the rule does not concern this job
    """

    name: str
    looks_for: str
    threshold: float
    unit: str
    reason: str
    source: str
    analyses: tuple[str, ...]
    check: Callable[[JobEvidence], Iterable[JobCase]]
    say: Callable[[Sequence[RankCase]], Said]
    precedence: int = 1
    needs: Callable[[JobEvidence], str | None] = needs_nothing
    confidence: Confidence = "high"
