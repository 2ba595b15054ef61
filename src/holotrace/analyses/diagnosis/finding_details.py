"""Details of each finding: its ranks, its location in the code, its effects, and the rule behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl

from holotrace.analyses.diagnosis.answer import finding_texts
from holotrace.analyses.diagnosis.compute import Diagnosis
from holotrace.analyses.diagnosis.rule import JobRule, Rule
from holotrace.analyses.diagnosis.rules.all_rules import JOB_RULES, RULES
from holotrace.units import duration_text

_PLACES = (("source_line", "line"), ("module", "module"), ("operator", "operator"), ("kernel", "kernel"))
_RULES: dict[str, Rule | JobRule] = {**{rule.name: rule for rule in RULES}, **{rule.name: rule for rule in JOB_RULES}}


class FindingDetails(NamedTuple):
    """A finding that is not part of another one.

    key      identifies the finding: the name of its rule, with a number if it is not the rule's first finding
    row      its row of `Diagnosis.per_finding`
    text     what it costs and what happens
    ranks    (rank, cost on this rank in ns per step), the costliest first
    places   (what, name): the line, module, operator and kernel, if known
    effects  the sentences of the findings that are part of this one
    basis    how certain the cause and the cost are, in words
    rule     the rule that applies
    """

    key: str
    row: dict[str, Any]
    text: str
    ranks: tuple[tuple[int, int], ...]
    places: tuple[tuple[str, str], ...]
    effects: tuple[str, ...]
    basis: str
    rule: Rule | JobRule


def finding_details(result: Diagnosis) -> tuple[FindingDetails, ...]:
    """Return the findings, the costliest first."""
    return tuple(_details(result))


def threshold_text(rule: Rule | JobRule) -> str:
    """Return the threshold of a rule in words, such as `at least 0.02 of the step`."""
    return f"at least {rule.threshold:g} {rule.unit}"


def _details(result: Diagnosis) -> Iterator[FindingDetails]:
    seen: dict[str, int] = {}
    for row, text in finding_texts(result):
        name = row["rule"]
        seen[name] = seen.get(name, 0) + 1
        yield FindingDetails(
            key=name if seen[name] == 1 else f"{name}-{seen[name]}",
            row=row,
            text=text,
            ranks=_ranks(result, row),
            places=tuple((what, row[column]) for column, what in _PLACES if row[column] is not None),
            effects=_effects(result, row) if seen[name] == 1 else (),
            basis=_basis(row),
            rule=_RULES[name],
        )


def _ranks(result: Diagnosis, row: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    of_finding = (pl.col("rule") == row["rule"]) & pl.col("subject").eq_missing(pl.lit(row["subject"], pl.String))
    known = result.evidence.filter(of_finding).sort("claimed_ns", "rank", descending=[True, False])
    return tuple(known.select("rank", "claimed_ns").iter_rows())


def _effects(result: Diagnosis, row: dict[str, Any]) -> tuple[str, ...]:
    parts = result.per_finding.filter(pl.col("part_of") == row["rule"])
    return tuple(parts["finding"])


def _basis(row: dict[str, Any]) -> str:
    sure = f"{row['confidence']} confidence"
    if row["stake_ns"] is None:
        return f"{sure}; the cost is unknown"
    if row["basis"] == "what-if":
        return f"{sure}; without this cause, a replayed step is {duration_text(row['stake_ns'])} shorter"
    if row["basis"] == "estimate":
        return f"{sure}; the cost is an estimate: fixing the cause may save less or more"
    return f"{sure}; the cost is an upper bound: fixing the cause may save less"
