"""Find the culprits and victims of a job: which ranks cause waiting, and which suffer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from holotrace.enrich.host.frames import OF_AUTOGRAD
from holotrace.enrich.job_graph.causes.cause_names import CAUSE_COLUMNS
from holotrace.enrich.job_graph.causes.delay_costs import DelayCosts

CULPRIT, VICTIM = "culprit", "victim"

LEAST_CULPRIT = 0.1
"""A culprit causes at least this fraction of all waiting."""
OVER_MEDIAN = 3
"""A culprit causes at least this many times as much waiting as the median rank."""
LARGE = 0.2
"""A rank that causes at least this fraction of all waiting is a culprit unless it passes on more than twice as much.

A rank that causes less than this fraction is a culprit only if it causes more waiting than it passes on.
"""

NOT_OWN = ("communication", "launch_delay", "unknown")
"""Causes that are not the rank's own work: slow transfers, a GPU that starts work late, and unrecorded time."""

_CAUSE = tuple(CAUSE_COLUMNS)
_OF_NAME = {"computation": "kernel", "python": "Python's"}
_WITHOUT_NAME = {"python": "Python"}
_PYTHON = ("python", "data_loading")
MOSTLY_PYTHON = 3
"""A function is a cause only if its Python time is at least this many times the time of the operators that it calls."""


def roles(found: DelayCosts, ranks: Sequence[int]) -> pl.DataFrame:
    """Return each rank's role, its largest cause, and how much waiting it causes, suffers and passes on.

    A culprit causes at least a tenth of all waiting and at least three times as much waiting as the median rank. If it
    causes less than a fifth of all waiting, it must also cause more waiting than it passes on. If it causes at least a
    fifth of all waiting, it may pass on up to twice as much waiting as it causes.

    A rank that is not a culprit is a victim in two cases:

    - it passes on more waiting than it causes
    - it waits more than it causes others to wait, and culprits cause more than half of its waiting

    Returns:
        Sorted by rank: rank, role (culprit, victim or null), cost_ns, cost_fraction, wait_ns, passed_on_ns, and the
        rank's largest cause in the columns cause, name, module and frame.
    """
    per_cause = found.costs
    costs = per_cause.group_by(rank="cause_rank").agg(pl.col("cost_ns").sum())
    waited = found.waits.group_by("rank").agg(pl.col("wait_ns", "passed_on_ns").sum())
    largest = largest_causes(per_cause)
    every = pl.DataFrame({"rank": sorted(ranks)}, {"rank": pl.Int32})
    joined = (
        every.join(costs, on="rank", how="left")
        .join(waited, on="rank", how="left")
        .join(largest.select(*_CAUSE, rank="cause_rank"), on="rank", how="left")
    )
    total = max(1, int(per_cause["cost_ns"].sum()))
    known = joined.with_columns(pl.col("cost_ns", "wait_ns", "passed_on_ns").fill_null(0)).with_columns(
        (pl.col("cost_ns") / total).alias("cost_fraction") if len(per_cause) else pl.lit(None).alias("cost_fraction")
    )
    culprits = known.filter(_is_culprit())["rank"]
    by_culprits = per_cause.filter(pl.col("cause_rank").is_in(culprits.implode())).group_by(rank="waiting_rank")
    suffered = known.join(by_culprits.agg(pl.col("cost_ns").sum().alias("suffered_ns")), on="rank", how="left")
    return suffered.with_columns(_role().alias("role")).drop("suffered_ns").sort("rank")


def _role() -> pl.Expr:
    """Return the role of each rank; null if the rank is neither culprit nor victim."""
    cost, wait = pl.col("cost_ns"), pl.col("wait_ns")
    suffers = (2 * pl.col("suffered_ns").fill_null(0) > wait) & (wait > cost)
    is_victim = (pl.col("passed_on_ns") > cost) | suffers
    return pl.when(_is_culprit()).then(pl.lit(CULPRIT)).when(is_victim).then(pl.lit(VICTIM))


def _is_culprit() -> pl.Expr:
    cost, passed_on = pl.col("cost_ns"), pl.col("passed_on_ns")
    lower_median = cost.sort().get((pl.len() - 1) // 2)
    stands_out = (pl.col("cost_fraction") >= LEAST_CULPRIT) & (cost >= OVER_MEDIAN * lower_median)
    causes_more = (cost > passed_on) | ((pl.col("cost_fraction") >= LARGE) & (2 * cost >= passed_on))
    return stands_out & causes_more


def main_causes(per_cause: pl.DataFrame) -> pl.DataFrame:
    """Return the causes, summed over steps and waiting ranks, largest cost first."""
    sums = per_cause.group_by("cause_rank", *_CAUSE, maintain_order=True).agg(
        pl.col("cost_ns", "error_ns").sum(), pl.col("wait_count", "first_instance", "first_ns").first()
    )
    return sums.sort("cost_ns", "cause_rank", *_CAUSE, descending=[True, *[False] * 5], nulls_last=True)


def largest_causes(per_cause: pl.DataFrame) -> pl.DataFrame:
    """Return, for each rank that other ranks wait for, the largest cause of this waiting.

    The costs of a function or operator are summed over all modules.

    If a rank's own work explains at least half of the waiting that the rank causes, other causes (`NOT_OWN`, such as
    slow transfers) are ignored. If no single cause in a user function makes up half of the function's cost, the
    function as a whole is also treated as a cause (with `name` equal to `frame`).

    Returns:
        cause_rank, cause, name, frame
        cost_ns  summed over all modules
        module   the module with the largest cost
    """
    same = ["cause_rank", "cause", "name", "frame"]
    causes = main_causes(per_cause).drop_nulls("cause_rank")
    together = causes.group_by(same, maintain_order=True).agg(pl.col("module").first(), pl.col("cost_ns").sum())
    known = pl.concat([together, _functions(together).select(together.columns)])
    is_own = ~pl.col("cause").is_in(NOT_OWN)
    own_ns = pl.col("cost_ns").filter(is_own).sum()
    mostly_own = together.group_by("cause_rank").agg((2 * own_ns >= pl.col("cost_ns").sum()).alias("is_mostly_own"))
    chosen = known.join(mostly_own, on="cause_rank").filter(is_own | ~pl.col("is_mostly_own")).drop("is_mostly_own")
    ordered = chosen.sort("cost_ns", *same, descending=[True, *[False] * len(same)], nulls_last=True)
    return ordered.unique("cause_rank", keep="first", maintain_order=True)


def _functions(causes: pl.DataFrame) -> pl.DataFrame:
    """Return the user functions in which no single cause makes up half of the function's cost.

    Skip functions that also spend much time in operators: they run the model, and their Python time is only the sum
    of many gaps between operators.
    """
    cost, is_python = pl.col("cost_ns"), pl.col("cause").is_in(_PYTHON)
    of_function = ["cause_rank", "frame"]
    operators_ns = cost.filter(~is_python).sum()
    parts = causes.drop_nulls("frame").with_columns(operators_ns.over(of_function).alias("operators_ns"))
    sums = (
        parts.filter(is_python)
        .group_by("cause_rank", "cause", "frame", maintain_order=True)
        .agg(cost.sum(), cost.max().alias("largest_ns"), pl.col("operators_ns").first(), pl.col("module").first())
    )
    is_spread = 2 * pl.col("largest_ns") < cost
    is_python_only = cost >= MOSTLY_PYTHON * pl.col("operators_ns")
    return sums.filter(is_spread & is_python_only).with_columns(pl.col("frame").alias("name"))


def cause_text(row: Mapping[str, Any]) -> str:
    """Name a cause with its module and function.

    >>> cause_text({"cause": "python", "name": "<built-in function sleep>", "module": "Block_0", "frame": "t.py(3): forward"})
    "Python's <built-in function sleep> in Block_0, t.py(3): forward"
    >>> cause_text({"cause": "host_idle", "name": "<built-in method wait>", "module": None, "frame": "t.py(3): step"})
    'host idle in <built-in method wait>, t.py(3): step'
    """
    kind = str(row["cause"])
    around = [place for place in (row["module"], row["frame"]) if place and place != row["name"]]
    name = row["name"] and row["name"].removeprefix(OF_AUTOGRAD)
    if name and kind == "host_idle":
        return f"{_words(kind)} in {', '.join([name, *around])}"
    what = f"{_OF_NAME.get(kind, _words(kind))} {name}" if name else _WITHOUT_NAME.get(kind, _words(kind))
    return f"{what} in {', '.join(around)}" if around else what


def _words(kind: str) -> str:
    return kind.replace("_", " ")
