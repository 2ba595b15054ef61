"""One sentence says what changed between two runs; it begins with the step time."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("dash", reason="the extra web is not installed")

from holotrace.analyses.compare_operators.compute import compare_operators
from holotrace.testing.builder import TraceBuilder
from holotrace.web.pages.changed import changed
from holotrace.web.pages.headline import Headline

CONTROL = Headline("", 78_000_000, 0.9, 8, ("A100",), ())


def step(*operators: tuple[str, int]):
    """Return a trace of one step with these operators, each given as (name, length in µs)."""
    builder, begin = TraceBuilder().step(1, 0, 1_000), 0
    for name, length_us in operators:
        builder.operator(name, start_us=begin, duration_us=length_us)
        begin += length_us
    return builder.build()


def test_the_sentence_names_gpus_and_operators() -> None:
    """The sentence gives both step times and names both GPUs, a new operator and a slower operator."""
    operators = compare_operators(step(("aten::mm", 100)), step(("aten::mm", 200), ("CompiledFunction", 300)))
    test = replace(CONTROL, step_ns=124_000_000, gpus=("V100",))

    assert changed(CONTROL, test, operators) == (
        "A step takes 124 ms instead of 78 ms (+59 %): A100 → V100; "
        "CompiledFunction is new (300 µs per step); aten::mm takes 100 µs more per step."
    )


@pytest.mark.parametrize(
    ("test", "sentence"),
    [
        (CONTROL, "A step takes 78 ms in both runs."),
        (replace(CONTROL, rank_count=16), "A step takes 78 ms in both runs: 8 → 16 ranks."),
        (replace(CONTROL, step_ns=900_000), "A step takes 900 µs instead of 78 ms (-99 %)."),
        (replace(CONTROL, step_ns=None), "The runs cannot be compared by step: at least one of them has no steps."),
    ],
)
def test_what_is_unknown_or_the_same_is_not_named(test: Headline, sentence: str) -> None:
    """Without aligned operators, the sentence compares the step times and names what else is known to differ."""
    assert changed(CONTROL, test, None) == sentence
