"""Compare operators: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.compare_operators.compute import OperatorComparison
from holotrace.questions.tables import View

_PATHS_SHOWN = 30


def compared_tree(result: OperatorComparison) -> pl.DataFrame:
    """Return the call paths whose mean time per step changed most, each after its parent path."""
    tree = result.tree
    parents, shown = tree["parent"].to_list(), set[int]()
    for node in tree.sort(pl.col("difference_ns_per_step").abs(), descending=True, maintain_order=True)["node"].head(
        _PATHS_SHOWN
    ):
        while node >= 0 and node not in shown:
            shown.add(node)
            node = parents[node]  # noqa: PLW2901 -- climbs to the phase
    placed = pl.lit("· ").repeat_by("depth").list.join("") + pl.col("name")
    columns = (
        "kind",
        "change",
        "difference_ns_per_step",
        "control_ns_per_step",
        "test_ns_per_step",
        "control_call_count",
        "test_call_count",
        "measure",
    )
    return tree[sorted(shown)].select(placed.alias("path"), *columns)


def compared_operators(result: OperatorComparison) -> pl.DataFrame:
    """Return the change in the mean self time per step of each operator."""
    columns = (
        "operator",
        "change",
        "difference_ns_per_step",
        "control_ns_per_step",
        "test_ns_per_step",
        "control_call_count",
        "test_call_count",
    )
    has_changed = (pl.col("difference_ns_per_step") != 0) | (pl.col("change") != "unchanged")
    return result.per_operator.filter(has_changed).select(columns)


def compared_runs(result: OperatorComparison) -> pl.DataFrame:
    """Return the size of each trace: ranks, steps and times."""
    return result.sides.select("side", "rank_count", "step_count", "host_total_ns", "device_total_ns")


VIEWS = (
    View("The two traces", compared_runs, "host_total_ns"),
    View(
        "Call paths that changed most; mean per step, if both traces have steps",
        compared_tree,
        "difference_ns_per_step",
    ),
    View("Operators whose self time changed", compared_operators, "difference_ns_per_step"),
)
