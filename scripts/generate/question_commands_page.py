"""Generates `docs/reference/question_commands.md`, which lists the commands that answer questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import Parameter, signature
from typing import Literal, get_args, get_origin

from markdown_table import table

from holotrace.catalogue import ANALYSES, COMPARISONS
from holotrace.cli.group import command_of
from holotrace.cli.questions import analysis_command, comparison_command
from holotrace.questions.question import Analysis

_BEGINNING = """\
# Question commands

Each question is also a command, with the [common options](commands.md) and these:

| option | meaning |
|---|---|
| `--json` | print an object with the keys `analysis`, `ranks` and `findings`, and one key for each table of the result |
| `--csv` | print all rows of the main table as CSV, with times in ns and shares as fractions of 1 |
| `--rows 20` | print at most this many rows of each table |
| `--sort COLUMN` | sort each table that has this column by the column's values, largest first; COLUMN is the column's name in the `--json` output |
| `--figure FILE` | also write the figure |
| `--force` | replace an existing file |

JSON contains every row. Times are whole nanoseconds, shares are fractions of 1, and unknown values are null.

With `--figure FILE.html`, the figure is a page that works offline. If kaleido and a Chrome browser are installed, `.png`, `.jpg`, `.webp`, `.svg`
and `.pdf` also work. If the file cannot be written, or already exists and `--force` is not given,
the command stops before it reads the traces.
"""

_COMPARISONS = """\
## Two traces

The following commands compare two traces, as in `holotrace diff CONTROL TEST`. CONTROL and TEST can each be a file, a folder or a pattern.
`--control-ranks 0-7,9` selects the ranks of CONTROL, and `--test-ranks 0-7,9` the ranks of TEST. `--control-capture PATH` and
`--test-capture PATH` [name the operators of CUDA graphs](../how-to/attribute_graphs.md). With `--json`, the printed object contains
`comparison` instead of `analysis` and `ranks`.
"""


def question_commands_page() -> str:
    """Return the text of the page."""
    sections = [*map(_section, ANALYSES), _COMPARISONS, *map(_section, COMPARISONS)]
    return "\n".join([_BEGINNING, *sections])


def _section(question: Analysis) -> str:
    page = question.page.removeprefix("reference/")
    options = [(f"`{_usage(option)}`", _meaning(option)) for option in _own_options(question)]
    listed = [table(("option", "meaning"), options)] if options else []
    return "\n".join([f"## holotrace {question.command}\n", f"[{question.question}]({page})\n", *listed])


def _own_options(question: Analysis) -> list[Parameter]:
    """Return the question's own options."""
    without_own = replace(question, options=())
    shared = {*_parameters(analysis_command(without_own)), *_parameters(comparison_command(without_own))}
    return [option for name, option in _parameters(command_of(question)).items() if name not in shared]


def _parameters(command: object) -> Mapping[str, Parameter]:
    return signature(command).parameters


def _usage(option: Parameter) -> str:
    """Return the option with its value: `--operator NAME`, `--by device|host`, `--min-kernels N`."""
    (declared,) = option.annotation.__metadata__
    kind = option.annotation.__origin__
    choices = [choice for part in (kind, *get_args(kind)) if get_origin(part) is Literal for choice in get_args(part)]
    value = "" if kind is bool else declared.metavar or "|".join(choices) or "N"
    name, *_ = (declared.default, *declared.param_decls)  # typer stores the first name in `default`
    return f"{name} {value}".rstrip()


def _meaning(option: Parameter) -> str:
    (declared,) = option.annotation.__metadata__
    return declared.help if option.default in (None, False) else f"{declared.help} Default: {option.default}."
