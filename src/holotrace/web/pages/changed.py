"""The changes from one run to another, in one sentence."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.compare_operators.compute import OperatorComparison
from holotrace.drawing.names import printable
from holotrace.units import counted, duration_text
from holotrace.web.pages.headline import Headline

MOST_NAMED = 2
"""Maximum number of operators that the sentence returned by `changed` names."""

_WORTH_NAMING = 0.1
"""The sentence names an operator only if the absolute change of the operator's time is at least this fraction of the
sum of the absolute changes of all operators."""


def changed(control: Headline, test: Headline, operators: OperatorComparison | None) -> str:
    """Return a sentence about changes in step time, GPUs and number of ranks, and the operators that changed most."""
    said = _step_clause(control, test) or "The runs cannot be compared by step: at least one of them has no steps"
    reasons = [_gpus_clause(control, test), _ranks_clause(control, test), *_operator_clauses(operators)]
    named = "; ".join(filter(None, reasons))
    return f"{said}: {named}." if named else f"{said}."


def _step_clause(control: Headline, test: Headline) -> str:
    if control.step_ns is None or test.step_ns is None or not control.step_ns:
        return ""
    change = round(100 * (test.step_ns / control.step_ns - 1))
    if not change:
        return f"A step takes {duration_text(test.step_ns)} in both runs"
    return f"A step takes {duration_text(test.step_ns)} instead of {duration_text(control.step_ns)} ({change:+} %)"


def _gpus_clause(control: Headline, test: Headline) -> str:
    if not control.gpus or not test.gpus or control.gpus == test.gpus:
        return ""
    return " → ".join(" and ".join(side.gpus) for side in (control, test))


def _ranks_clause(control: Headline, test: Headline) -> str:
    if control.rank_count == test.rank_count:
        return ""
    return f"{control.rank_count:,} → {counted(test.rank_count, 'rank')}"


def _operator_clauses(operators: OperatorComparison | None) -> list[str]:
    if operators is None:
        return []
    difference = pl.col("difference_ns_per_step")
    table = operators.per_operator.filter(difference != 0).sort(difference.abs(), descending=True, maintain_order=True)
    whole = float(table["difference_ns_per_step"].abs().sum())
    worth = table.filter(difference.abs() >= _WORTH_NAMING * whole).head(MOST_NAMED)
    columns = ("operator", "change", "difference_ns_per_step")
    per_step = " per step" if operators.sides["step_count"].min() else ""
    rows = worth.select(columns).iter_rows()
    return [_operator_clause(operator, change, ns, per_step) for operator, change, ns in rows]


def _operator_clause(operator: str, change: str, difference_ns: float, per_step: str) -> str:
    took = duration_text(abs(difference_ns))
    if change in ("added", "deleted"):
        return f"{printable(operator)} is {'new' if change == 'added' else 'gone'} ({took}{per_step})"
    return f"{printable(operator)} takes {took} {'more' if difference_ns > 0 else 'less'}{per_step}"
