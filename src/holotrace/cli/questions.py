"""The command of a question: open its traces, compute, print tables or JSON, and write the figure if wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holotrace.cli.figure_files import expect_a_figure_file, write_figure
from holotrace.cli.job import JobOptions, SidesOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import AsJson, Figure, Force
from holotrace.cli.output import console, print_findings, print_json, print_line, print_table
from holotrace.figures import figure_of
from holotrace.questions.question import Analysis, Result
from holotrace.questions.result import tables_of
from holotrace.questions.tables import print_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holotrace.questions.tables import View


@dataclass(frozen=True)
class ResultOptions:
    """How to print a result, and where to draw it."""

    as_json: AsJson = False
    figure: Figure = None
    force: Force = False

    def check(self) -> None:
        """Raise InvalidOptionError, before any work, if the figure cannot be written."""
        if self.figure is not None:
            expect_a_figure_file(self.figure, overwrite=self.force)


def analysis_command(question: Analysis) -> Callable[..., None]:
    """Return the command of a question about one trace."""

    def command(job: JobOptions, shown: ResultOptions, **settings: object) -> None:
        shown.check()
        with opened_job(job) as (trace, executor):
            answer = question.plan(**settings).answer(trace, executor)
        show(question, answer.result, shown, {"analysis": question.name, "ranks": list(answer.trace.ranks)})

    return with_option_groups(command, question.options)


def comparison_command(question: Analysis) -> Callable[..., None]:
    """Return the command of a question about two traces."""

    def command(sides: SidesOptions, shown: ResultOptions, **settings: object) -> None:
        shown.check()
        with sides.opened() as (control, test, executor):
            result = question.compute(control, test, executor=executor, **settings)
        show(question, result, shown, {"comparison": question.name})

    return with_option_groups(command, question.options)


def show(  # noqa: PLR0913 -- what to show, and how
    question: Analysis,
    result: Result,
    shown: ResultOptions,
    about: Mapping[str, object],
    further: Mapping[str, object] | None = None,
    *,
    views: Sequence[View] | None = None,
    answer: str = "",
) -> None:
    """Write the figure if wanted, then print tables, or one JSON object: `about`, the tables, findings and `further`.

    The tables are `views`, by default those of the question, after the sentence `answer` if there is one.
    """
    if shown.figure is not None:
        write_figure(figure_of(question.name, result), shown.figure)
    if shown.as_json:
        print_json({**about, **tables_of(result), "findings": result.findings, **(further or {})})
    else:
        _print(question, result, question.views if views is None else views, answer)


def _print(question: Analysis, result: Result, views: Sequence[View], answer: str) -> None:
    to = console()
    print_line(to, question.question, "bold cyan")
    if answer:
        print_line(to, answer, "bold")
    print_findings(to, result.findings)
    for view in views:
        print_table(to, print_view(view, result, question.most_rows))
