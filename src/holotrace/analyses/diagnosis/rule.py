"""Rules, and the cases that they find on single ranks or between ranks."""

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
"""Unit of a threshold that is a share of the time of the steady steps."""

NOTHING: Intervals = (np.empty(0, np.int64), np.empty(0, np.int64))
"""An empty set of intervals, the value of `explained` in cases that cost no time themselves."""


def needs_nothing(_: object) -> None:
    """Return None: the rule needs no inputs, so none is missing.

    This is the default of `Rule.needs`. It is not a lambda, because lambdas cannot be pickled.
    """


class Place(NamedTuple):
    """Where to look for the cause of a case; fields are None if unknown.

    event_index  the first event to look at
    at_ns        when this event began
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

    explained       the intervals in which the cause costs time
    further         idle time that the cause may also explain; it is added if the replay saves more than `explained`
    is_certain      the case costs all of `explained`, even if the replay saves less
    value           what the rule measured, in the unit of its threshold
    saved_fraction  the largest share of `explained` that fixing the cause can save
    count           how many events caused the case, in all steady steps
    subject         distinguishes several cases of one rule, such as operators; each subject becomes its own finding
    place           where to look
    change          how a fix changes the critical path's graph; a replay with this change predicts the saving
    words           other values that the sentences of the rule mention
    is_at_most      the change assumes the best possible fix, so the saving of the replay is only an upper bound
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
    """Return the text that completes a sentence by naming the line of code; empty if the line is unknown."""
    return f", in {place.source_line}" if place.source_line else ""


class Delay(NamedTuple):
    """The delay of a rank for which other ranks wait.

    own_ns  length of the delay per step
    lines   the lines of code that cause the delay, if known
    """

    own_ns: float
    lines: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class JobCase:
    """A problem that a rule found between ranks.

    cost_ns  by rank: upper bound on the exposed communication per step that fixing the cause can save
    else_ns  by rank: upper bound on the time per step, besides exposed communication, that fixing the cause can save
    rank     the rank that causes the problem; None if no single rank causes it
    delays   by rank: how long this rank delays the others, if different ranks are late at different times; a fix also
             removes these delays

    The other fields are as in `Case`.
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
    """A case on one rank; its cost excludes the time that rules of higher precedence have already claimed.

    cost_ns       per step: the explained time that no earlier rule claimed, times the share that can be saved
    explained_ns  per step: all time that the case explains
    saved_ns      per step: how much a replay without the cause saves; None if there was no replay
    absorbed_by   the earlier rule that claimed most of the explained time; "" if there is none
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
    """Say who waits for the host: the GPU or, without a GPU, the training itself."""
    return "the GPU waits" if case.words["is_idle"] else "training waits"


class Said(NamedTuple):
    """What a rule says about all cases of one subject: what happens, and what to do about it."""

    what: str
    advice: str


@dataclass(frozen=True)
class Rule:
    """A rule about one rank.

    name        unique, in snake case; also names the rule's section in the documentation
    looks_for   what it looks for, in words
    threshold   the smallest value at which the rule applies
    unit        the unit of the threshold, and of `Case.value`: `of the step`, `calls per step` …
    reason      why the threshold has this value
    source      where the rule comes from: a URL, or a page of this documentation
    precedence  rules with lower numbers claim time first: 0 certain causes, 1 likely causes,
                2 uncertain causes and overhead of recording the trace, 3 symptoms
    check       returns the cases of a rank, including cases below the threshold
    say         says what happens and what to do about it; receives at least one case, the costliest first
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

    The fields are as in `Rule`, except for these:

    analyses  names of the analyses whose results it reads
    check     yields each `JobCase`, including cases below the threshold
    needs     as in `Rule`, but returns an empty text if the rule makes no sense for this job
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
