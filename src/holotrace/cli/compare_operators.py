"""`holotrace compare-operators`: where in the program two traces came to differ."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from holotrace.analyses.compare_operators.compute import compare_operators as compare
from holotrace.analyses.compare_operators.entry import VIEWS
from holotrace.cli.analysis import ResultOptions
from holotrace.cli.comparison import Comparison, SidesOptions
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import CompatMode

_SHOWN = Comparison("compare_operators", "Where did control and test come to differ?", VIEWS, most_rows=60)

By = Annotated[
    Literal["device", "host"] | None,
    typer.Option("--by", help="Compare time on devices, or on the host; by default what both traces have."),
]


@with_option_groups
def compare_operators(sides: SidesOptions, shown: ResultOptions, *, by: By = None, compat: CompatMode = None) -> None:
    """Align the operators of two traces by phase, module and call path, with their kernels, and say what changed."""
    shown.check()
    with sides.opened() as (first, second, executor):
        result = compare(first, second, by=by, compat=compat, executor=executor)
    _SHOWN.show(result, shown)
