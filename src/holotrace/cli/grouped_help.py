"""Help that lists commands and options under headings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand

TRACES = "Which traces"
WORK = "How to process ranks"
OUTPUT = "What to print and write"
"""Headings in `--help` for options that several commands share; an option sets its heading as `rich_help_panel`."""

_OTHERS = "Options"
_HEADINGS = (_OTHERS, TRACES, OUTPUT, WORK)


def write_groups(formatter: Any, groups: Iterable[tuple[str, list[tuple[str, str]]]]) -> None:  # noqa: ANN401 -- typer has its own copy of click
    """Write each group of names and descriptions under its heading."""
    for heading, rows in groups:
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)


class GroupedCommand(TyperCommand):
    """A command whose help lists its specific options first, then the shared options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- typer has its own copy of click
        """Write arguments and options under their headings."""
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{heading: [] for heading in _HEADINGS}}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                rows["Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or _OTHERS].append(
                    record
                )
        write_groups(formatter, rows.items())
