"""Generates `docs/reference/diagnosis_rules.md`, which lists the diagnosis rules."""

from __future__ import annotations

from markdown_table import table

from holotrace.analyses.diagnosis.rule import JobRule, Rule
from holotrace.analyses.diagnosis.rules.all_rules import JOB_RULES, RULES

_BEGINNING = """\
# Rules of the diagnosis

[Diagnosis](analyses/diagnosis.md) uses these rules. A rule applies if the measured value reaches its threshold. If
several rules explain the same time, the rule with the lowest order comes first. The order is 0 for certain
causes, 1 for likely causes, 2 for uncertain causes and for the overhead of recording the trace, and 3 for symptoms.
Rules of order 3 explain only the time that no other rule explains.

"""
_RANK_HEADING = "## On one rank\n\n"
_JOB_HEADING = "\n## Between ranks\n\n"
_COLUMNS = ("rule", "looks for", "threshold", "why this threshold", "order", "confidence", "source")


def diagnosis_rules_page() -> str:
    """Return the text of the page."""
    of_ranks, of_jobs = (table(_COLUMNS, map(_row, rules)) for rules in (RULES, JOB_RULES))
    return _BEGINNING + _RANK_HEADING + of_ranks + _JOB_HEADING + of_jobs


def _row(rule: Rule | JobRule) -> tuple[str, ...]:
    source = f"[link]({rule.source})" if rule.source.startswith("http") else rule.source
    return (
        f"`{rule.name}`",
        rule.looks_for,
        f"{_number(rule.threshold)} {rule.unit}".strip(),
        rule.reason,
        str(rule.precedence),
        rule.confidence,
        source,
    )


def _number(threshold: float) -> str:
    return f"{threshold:g}"
