"""A rank's largest cause of waiting is a user's function, a call in that function, an operator or communication."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.job_graph.causes.roles import cause_text, largest_causes

SAVE, STEP = "train.py(5): save_checkpoint", "train.py(9): step"


def largest(*costs: tuple[str, str | None, str | None, int]) -> tuple[object, ...]:
    """Return the kind, name and cost of the largest of these causes, each given as (kind, name, frame, cost)."""
    columns = ["cause", "name", "frame", "cost_ns"]
    causes = pl.DataFrame(list(costs), schema=columns, orient="row").with_columns(
        *(pl.lit(0, pl.Int64).alias(name) for name in ("error_ns", "wait_count", "first_instance", "first_ns")),
        cause_rank=pl.lit(1, pl.Int32),
        module=pl.lit(None, pl.String),
    )
    return largest_causes(causes).select("cause", "name", "cost_ns").row(0)


def test_a_function_that_loses_its_time_in_many_calls_is_named_itself() -> None:
    """None of the three calls in `save_checkpoint` takes half of its 90 ns, so the function itself is named."""
    parts = [
        ("python", f"<built-in method {name}>", SAVE, cost)
        for name, cost in (("write", 40), ("open", 30), ("fsync", 20))
    ]

    assert largest(*parts, ("operator", "aten::mm", STEP, 50)) == ("python", SAVE, 90)


def test_a_call_that_takes_most_of_its_function_is_named() -> None:
    """One sleep takes 60 of the 80 ns in `step`, so the sleep is named."""
    sleep = ("python", "<built-in function sleep>", STEP, 60)

    assert largest(sleep, ("python", STEP, STEP, 20)) == ("python", "<built-in function sleep>", 60)


def test_python_between_operators_is_not_added_up() -> None:
    """`step` runs an operator for 50 ns and three Python calls for 20 ns each.

    The three Python calls are not added up to one cause of 60 ns, so the operator is the largest cause.
    """
    parts = [("python", f"<built-in method {name}>", STEP, 20) for name in ("mul_", "add_", "sqrt")]

    assert largest(*parts, ("operator", "aten::mm", STEP, 50)) == ("operator", "aten::mm", 50)


def test_transfers_are_named_only_if_they_are_most() -> None:
    """The sends cost 60 ns. They are named only if all of the rank's own work costs less than 60 ns.

    If it costs 70 ns, the larger of its two causes is named, although this cause alone costs only 45 ns.
    """
    sends = ("communication", "send", None, 60)

    assert largest(sends, ("python", SAVE, SAVE, 45), ("operator", "aten::mm", STEP, 25)) == ("python", SAVE, 45)
    assert largest(sends, ("python", SAVE, SAVE, 45)) == ("communication", "send", 60)


def test_autograd_operators_are_named_as_they_are() -> None:
    """The text leaves out autograd's prefix `evaluate_function` from the name of a backward operator."""
    cause = {
        "cause": "operator",
        "name": "autograd::engine::evaluate_function: MmBackward0",
        "module": None,
        "frame": STEP,
    }

    assert cause_text(cause) == f"operator MmBackward0 in {STEP}"
