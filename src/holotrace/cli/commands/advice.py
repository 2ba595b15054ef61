"""`holotrace advice`: what to try first, and the numbers and events behind it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import AsJson, CompatMode
from holotrace.cli.output import console, print_findings, print_json, print_line, print_table
from holotrace.errors import InvalidOptionError
from holotrace.questions.tables import print_frame
from holotrace.recommendations.advice import Advice, advice_answer
from holotrace.recommendations.rules import Thresholds
from holotrace.units import percent_text

_MOST_ROWS = 16
_NAMES = tuple(vars(Thresholds()))

Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        metavar="NAME=FRACTION",
        help=f"Set the threshold of a rule: {', '.join(_NAMES)}; may be repeated.",
    ),
]


@with_option_groups
def advice(
    job: JobOptions,
    *,
    threshold: Limits = None,
    compat: CompatMode = None,
    as_json: AsJson = False,
) -> None:
    """Print the recommendations, the numbers and events behind them, and the findings."""
    limits = Thresholds(**dict(map(_parsed, threshold or ())))
    with opened_job(job) as (trace, executor):
        answer = advice_answer(trace, thresholds=limits, compat=compat, executor=executor)
    recommended = answer.result
    if as_json:
        print_json({"ranks": list(answer.trace.ranks), **recommended.to_dict()})
    else:
        _print(recommended)


def print_recommendations(to: Console, recommended: Advice) -> None:
    """Print each recommendation with the most that it could save, and the command that shows more."""
    for row in recommended.recommendations.iter_rows(named=True):
        worth = "" if row["worth_fraction"] is None else f"worth at most {percent_text(row['worth_fraction'])}; "
        command = row["analysis"].replace("_", "-")
        print_line(to, f"→ {row['advice']} ({worth}holotrace {command})", "green")


def _print(recommended: Advice) -> None:
    to = console()
    print_line(to, "What should you try first?", "bold cyan")
    print_findings(to, recommended.findings)
    if recommended.recommendations.is_empty():
        print_line(to, recommended.answer)
    print_recommendations(to, recommended)
    for caption, table, telling in (
        ("The numbers behind the advice", recommended.evidence, "value_fraction"),
        ("The events behind the advice", recommended.events.drop("at_ns"), "total_ns"),
    ):
        if len(table):
            print_table(to, print_frame(caption, table, _MOST_ROWS, telling=telling))


def _parsed(text: str) -> tuple[str, float]:
    """Parse a rule and its threshold, such as `communication=0.2`."""
    name, _, value = text.partition("=")
    try:
        fraction = float(value)
    except ValueError:
        fraction = None
    if name not in _NAMES or fraction is None:
        message = (
            f"--threshold {text} is not a threshold; write NAME=FRACTION, with one of the names {', '.join(_NAMES)}"
        )
        raise InvalidOptionError(message)
    return name, fraction
