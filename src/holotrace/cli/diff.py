"""`holotrace diff`: what changed between two traces."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from holotrace.analyses.compare_traces.compute import compare_traces
from holotrace.analyses.compare_traces.entry import VIEWS
from holotrace.cli.analysis import ResultOptions
from holotrace.cli.comparison import Comparison, SidesOptions
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import parse_ranks

_SHOWN = Comparison("compare_traces", "What changed from control to test?", VIEWS, most_rows=50)

ControlSteps = Annotated[
    str | None, typer.Option("--control-steps", metavar="3-5", help="Only these steps of control.")
]
TestSteps = Annotated[str | None, typer.Option("--test-steps", metavar="3-5", help="Only these steps of test.")]
Device = Annotated[Literal["all", "cpu", "gpu"], typer.Option("--device", help="What to compare.")]


@with_option_groups
def diff(
    sides: SidesOptions,
    shown: ResultOptions,
    *,
    control_steps: ControlSteps = None,
    test_steps: TestSteps = None,
    device: Device = "all",
) -> None:
    """Compare two traces by name: what is new, gone, more or less frequent, and longer or shorter."""
    shown.check()
    with sides.opened() as (first, second, executor):
        result = compare_traces(
            first,
            second,
            control_steps=_steps(control_steps),
            test_steps=_steps(test_steps),
            device=device,
            executor=executor,
        )
    _SHOWN.show(result, shown)


def _steps(text: str | None) -> list[int] | None:
    """Read a list of steps, which is written like one of ranks."""
    return None if text is None else parse_ranks(text)
