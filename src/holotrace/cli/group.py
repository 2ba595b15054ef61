"""The commands of `holotrace`; a command is loaded only when it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from holotrace.catalogue import ANALYSES, COMPARISONS
from holotrace.cli.grouped_help import GroupedCommand, write_groups
from holotrace.cli.stdout import UNLIMITED, print_text
from holotrace.questions.question import Analysis

_HELP = "Where the time of a PyTorch job goes, read from its profiler traces."

_COMMANDS = {
    "summary": "Say in one sentence where the time of a job goes, and print the main tables.",
    "report": "Write one HTML file with the verdict, figures, tables and file health; it works offline.",
    "serve": "Show all runs under a folder as pages in the browser, with figures and tables, until Ctrl-C.",
    "check": "Show each file's rank and profiler options, and what was repaired, dropped or missing.",
    "runs": "List the runs in a log folder and its subfolders, with workers, spans and skipped files.",
    "export": "Write the trace for other tools: Perfetto, or anything that reads CSV or Parquet.",
    "ingest": "Save a job as one store of Parquet files, which every command accepts in place of traces.",
    "sql": "Run one SELECT over a trace, and print its rows or write them to a file.",
}
"""The commands in `holotrace.cli.commands`, with their help."""

_OWN_MODULES = {
    "critical_path": "holotrace.cli.critical_path.command",
    "diagnosis": "holotrace.cli.diagnosis",
    "straggler_cost": "holotrace.cli.straggler_cost",
}
"""Questions whose command also writes files, reads files other than traces, or prints more than tables."""

_OTHER_NAMES = {"advice": "diagnose"}
"""Names that users of other tools may try, and the command that each name runs; the help does not list these names."""

_QUESTIONS = {question.command: question for question in (*COMPARISONS, *ANALYSES)}
_LISTED = {**_COMMANDS, **{name: question.question for name, question in _QUESTIONS.items()}}


_FIRST = ("summary", "diagnose", "report", "serve")
_FILES = ("check", "trust", "runs", "export", "ingest", "sql")
_ASKED = {question.command: question for question in ANALYSES if question.command not in (*_FIRST, *_FILES)}


def _groups() -> Iterator[tuple[str, list[str]]]:
    """Yield each heading with its commands; questions have the same headings as on the pages."""
    yield "Begin with", list(_FIRST)
    yield "Compare two traces", [question.command for question in COMPARISONS]
    sections = dict.fromkeys(question.section for question in ANALYSES)
    for section in sections:
        yield section, [name for name, known in _ASKED.items() if known.section == section]
    yield "Files and tables", list(_FILES)


class _LazyGroup(TyperGroup):
    """Lists the commands without loading them."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 -- arguments from typer
        super().__init__(**settings)
        names: dict[str, Any] = dict.fromkeys(_LISTED)  # typer suggests one of these names for a misspelt command
        self.commands = names

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002 -- typer has its own copy of click
        name = _OTHER_NAMES.get(cmd_name, cmd_name)
        return _loaded(name) if name in _LISTED else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 -- typer has its own copy of click
        write_groups(formatter, ((heading, [(name, _LISTED[name]) for name in names]) for heading, names in _groups()))

    def make_context(self, *arguments: Any, **settings: Any) -> Any:  # noqa: ANN401 -- typer has its own copy of click
        if not sys.stdout.isatty():  # in a pipe or file, lines must not be wrapped
            settings.setdefault("terminal_width", UNLIMITED)
        return super().make_context(*arguments, **settings)


app = typer.Typer(
    name="holotrace",
    cls=_LazyGroup,
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _loaded(name: str) -> Any:  # noqa: ANN401 -- typer has its own copy of click
    question = _QUESTIONS.get(name)
    if question is None:
        function = getattr(import_module(f"holotrace.cli.commands.{name}"), name)
        return _command(name, function, _COMMANDS[name])
    return _command(name, command_of(question), _help_of(question))


def command_of(question: Analysis) -> Callable[..., None]:
    """Return the function that runs a question's command."""
    if question.name in _OWN_MODULES:
        function: Callable[..., None] = getattr(import_module(_OWN_MODULES[question.name]), question.name)
        return function
    from holotrace.cli.questions import analysis_command, comparison_command  # noqa: PLC0415 -- loads polars

    return comparison_command(question) if question in COMPARISONS else analysis_command(question)


def _help_of(question: Analysis) -> str:
    terms = "\n".join(f"{term}: {meaning}" for term, meaning in question.definitions)
    return f"{question.question}\n\n\b\n{terms}"  # click does not wrap lines after \b


def _command(name: str, function: Callable[..., None], text: str) -> Any:  # noqa: ANN401 -- typer has its own copy of click
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    alone.command(name, help=text, cls=GroupedCommand)(function)
    return typer.main.get_command(alone)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 -- typer passes the value of the option
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 -- needed only here

        print_text(f"holotrace {version('holotrace')}")
        raise typer.Exit


ShowVersion = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
]


@app.callback(help=_HELP)
def options(*, show_version: ShowVersion = False) -> None:
    """Declare the options that may precede a command.

    The only such option is `--version`. Its callback has already run, so this function does nothing.
    """


def misuse(error: Exception) -> str | None:
    """Return the message for invalid options or arguments, with the command that lists the valid ones; None for other errors.

    Typer raises errors of click or of its own copy of click, so this function checks attributes, not types.
    """
    context, format_message = getattr(error, "ctx", None), getattr(error, "format_message", None)
    if format_message is None:
        return "aborted" if isinstance(error, typer.Abort) else None
    command = "holotrace" if context is None else context.command_path
    message = " ".join(format_message().split()).rstrip(".")
    return f"{message}; {command} --help shows its options"
