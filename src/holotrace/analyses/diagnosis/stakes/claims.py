"""Divide the lost time of a rank among the cases that may have caused it, so that no nanosecond counts twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holotrace.algorithms.intervals import Intervals, concatenated, covered_length, difference, intersection, union
from holotrace.analyses.diagnosis.rule import NOTHING, Case, Rule

_MOSTLY = 0.5


class Claim(NamedTuple):
    """The part of a case's time that no earlier case explains, summed over all steps.

    claimed_ns    time that this case but no earlier case explains, times the fraction of it that a fix can save
    explained_ns  all time within the steps that this case explains
    absorbed_by   the rule whose earlier cases claimed the largest part of the explained time; "" if all earlier cases
                  together claimed at most half of it
    """

    claimed_ns: float
    explained_ns: int
    absorbed_by: str


def claims(cases: Sequence[tuple[Rule, Case]], steps: Intervals) -> list[Claim]:
    """Return a `Claim` for each case, in the order of `cases`.

    Each case claims the time that it explains and that no earlier case has claimed. Cases of the rule with the lowest
    `precedence` come first; at equal precedence, the case that can save the most time comes first. A case
    claims all of this time even if its fix saves only a part of it, because two fixes that each halve a kernel's time
    do not save all of the kernel's time.
    """
    explained = [intersection(case.explained, steps) for _, case in cases]
    lengths = [covered_length(*intervals) for intervals in explained]
    worth = [length * case.saved_fraction for length, (_, case) in zip(lengths, cases, strict=True)]
    order = sorted(range(len(cases)), key=lambda row: (cases[row][0].precedence, -worth[row]))
    taken: dict[str, Intervals] = {}
    result = [Claim(0.0, length, "") for length in lengths]
    for row in order:
        rule, case = cases[row]
        free = difference(explained[row], union(*concatenated([NOTHING, *taken.values()])))
        free_ns = covered_length(*free)
        by = "" if 2 * free_ns >= lengths[row] else _absorber(explained[row], taken)
        result[row] = Claim(free_ns * case.saved_fraction, lengths[row], by)
        taken[rule.name] = union(*concatenated([taken.get(rule.name, NOTHING), free]))
    return result


def _absorber(explained: Intervals, taken: dict[str, Intervals]) -> str:
    shared = {name: covered_length(*intersection(explained, intervals)) for name, intervals in taken.items()}
    return max(shared, key=lambda name: shared[name], default="")
