"""The commands of `holotrace`."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from holotrace.catalogue import ANALYSES
from holotrace.cli.advice import advice
from holotrace.cli.analysis import plain_command
from holotrace.cli.check import check
from holotrace.cli.compare_operators import compare_operators
from holotrace.cli.critical_path import critical_path
from holotrace.cli.diff import diff
from holotrace.cli.export import export
from holotrace.cli.gpu_summary import gpu_summary
from holotrace.cli.idle_time import idle_time
from holotrace.cli.ingest import ingest
from holotrace.cli.kernel_sequences import kernel_sequences
from holotrace.cli.launch_statistics import launch_statistics
from holotrace.cli.operator_kernels import operator_kernels
from holotrace.cli.operator_memory import operator_memory
from holotrace.cli.output import UNLIMITED, print_text
from holotrace.cli.queue_length import queue_length
from holotrace.cli.report import report
from holotrace.cli.runs import runs
from holotrace.cli.serve import serve
from holotrace.cli.sql import sql
from holotrace.cli.step_time import step_time
from holotrace.cli.stragglers import stragglers
from holotrace.cli.summary import summary
from holotrace.cli.user_annotations import user_annotations

_HELP = "Where the time of a PyTorch job goes, read from its profiler traces."


class _Commands(TyperGroup):
    """The commands, whose help is wrapped on a terminal alone."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:  # noqa: ANN401 -- typer brings a click of its own
        if not sys.stdout.isatty():
            settings.setdefault("terminal_width", UNLIMITED)
        return super().make_context(*arguments, **settings)


app = typer.Typer(
    name="holotrace",
    cls=_Commands,
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (summary, report, serve, advice, check, runs, export, ingest, sql, diff, compare_operators):
    app.command()(command)

_WITH_OPTIONS = {
    each.__name__: each
    for each in (
        step_time,
        gpu_summary,
        idle_time,
        critical_path,
        launch_statistics,
        queue_length,
        operator_kernels,
        kernel_sequences,
        user_annotations,
        stragglers,
        operator_memory,
    )
}
"""Commands of analyses that have options of their own; the others differ by name and question, and some have modes."""

for entry in ANALYSES:
    app.command(short_help=entry.question)(_WITH_OPTIONS.get(entry.name) or plain_command(entry))


def _print_version(wanted: bool) -> None:  # noqa: FBT001 -- typer passes the value of the option
    if wanted:
        print_text(f"holotrace {version('holotrace')}")
        raise typer.Exit


ShowVersion = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
]


@app.callback(help=_HELP)
def options(*, show_version: ShowVersion = False) -> None:
    """Take the options that come before a command; `show_version` has done its work when this runs."""


def misuse(error: Exception) -> str | None:
    """Return what is wrong with the options or arguments, and how to see those that exist; None for other errors.

    Typer raises the errors of click, or of the copy of click that it brings, so they are known by what they have.
    """
    context, format_message = getattr(error, "ctx", None), getattr(error, "format_message", None)
    if format_message is None:
        return "aborted" if isinstance(error, typer.Abort) else None
    command = "holotrace" if context is None else context.command_path
    message = " ".join(format_message().split()).rstrip(".")
    return f"{message}; {command} --help shows what it takes"
