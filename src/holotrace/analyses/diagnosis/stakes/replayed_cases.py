"""Drop the cases that a replay refutes: if their cause is removed, the replayed step is hardly shorter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.intervals import Intervals, concatenated, covered_length, difference, intersection, union
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, Rule
from holotrace.analyses.diagnosis.stakes.claims import Claim, claims
from holotrace.analyses.diagnosis.stakes.predictions import in_mean_step, predictions
from holotrace.enrich.host.source_lines import records_python

_REFUTED = 0.05
"""A cause is refuted if its replay saves less than this share of the claimed time."""


def may_apply(rule: Rule, case: Case) -> bool:
    """Return whether a case reaches its rule's threshold, or may reach it after a replay, by adding `case.further`."""
    return case.value >= rule.threshold or (case.further is not None and covered_length(*case.explained) > 0)


def upheld(evidence: RankEvidence, found: Sequence[tuple[Rule, Case]]) -> list[tuple[Rule, Case, float | None]]:
    """Return the cases that no replay refutes, each with its rule and its saving in the mean step.

    The saving is None if the case was not replayed. It is also None if the case is certain, but its replay saves less
    time than the case claims; such a replay is ignored.
    """
    claimed = claims(found, evidence.step_windows)
    predicted = predictions(evidence, [(rule, case, claim) for (rule, case), claim in zip(found, claimed, strict=True)])
    kept = []
    for (rule, case), claim, replayed_ns in zip(found, claimed, predicted.saved_ns, strict=True):
        saved_ns = None if _is_certain(evidence, case, claim, replayed_ns) else replayed_ns
        whole = _with_further(evidence, case, saved_ns)
        if whole.value >= rule.threshold and not (
            _is_idle(evidence, whole) and _is_refuted(evidence, rule, claim, saved_ns)
        ):
            if saved_ns is not None and predicted.end_ns is not None:
                # Pass `case`, not `whole`: `whole` also contains the earliest intervals of `case.further`. These
                # intervals lie in the first steps, although their time may have been lost in any step.
                saved_ns = in_mean_step(evidence, case, saved_ns, predicted.end_ns)
            kept.append((rule, whole, saved_ns))
    return kept


def _is_certain(evidence: RankEvidence, case: Case, claim: Claim, saved_ns: float | None) -> bool:
    """Return whether a case is certain although its replay saves less time than the case claims."""
    return saved_ns is not None and case.is_certain and saved_ns * evidence.step_count < claim.claimed_ns


def _with_further(evidence: RankEvidence, case: Case, saved_ns: float | None) -> Case:
    """If the replay saves more time than `case.explained` covers, add the earliest parts of `case.further` to it."""
    if case.further is None or saved_ns is None:
        return case
    further = difference(case.further, case.explained)
    beyond_ns = round(saved_ns * evidence.step_count) - covered_length(*case.explained)
    ends = np.minimum(further[1], further[0] + np.maximum(0, beyond_ns - _length_before(further)))
    is_left = ends > further[0]
    explained = union(*concatenated([case.explained, (further[0][is_left], ends[is_left])]))
    return replace(case, explained=explained, value=evidence.share(explained))


def _length_before(intervals: Intervals) -> npt.NDArray[np.int64]:
    """Return, for each interval, the total length of all earlier intervals."""
    lengths = intervals[1] - intervals[0]
    before: npt.NDArray[np.int64] = np.cumsum(lengths) - lengths
    return before


def _is_idle(evidence: RankEvidence, case: Case) -> bool:
    """Return whether more than half of the time that a case explains is idle time.

    If so, the case may name the wrong cause, because idle time can have many causes.
    """
    explained = intersection(case.explained, evidence.step_windows)
    return 2 * covered_length(*intersection(explained, evidence.idle)) > covered_length(*explained)


def _is_refuted(evidence: RankEvidence, rule: Rule, claim: Claim, saved_ns: float | None) -> bool:
    """Return whether a replay without the cause saves almost nothing; if so, the time must have another cause.

    A saving is almost nothing if it is less than 5 % of the claimed time. For a rule whose threshold is a fraction of
    the step time, a saving of less than half this threshold is also almost nothing. This second limit does not apply if
    Python functions were recorded, because recording them slows the host, and the slower host hides part of the cost.
    """
    if saved_ns is None:
        return False
    asked = 0.0 if rule.unit != OF_THE_STEP or records_python(evidence.rank_trace) else rule.threshold / 2
    return saved_ns * evidence.step_count < max(_REFUTED * claim.claimed_ns, asked * evidence.time_ns)
