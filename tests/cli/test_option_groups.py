"""Options that come in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from holotrace.cli.option_groups import with_option_groups


@dataclass(frozen=True)
class Inner:
    """A group in a group."""

    names: Annotated[list[str], typer.Argument()]
    loud: Annotated[bool, typer.Option("--loud")] = False


@dataclass(frozen=True)
class Outer:
    """A group."""

    inner: Inner
    size: Annotated[int | None, typer.Option("--size")] = None


def test_each_option_of_a_group_is_one_of_the_command() -> None:
    """Its own come first in the help; the command gets the groups, with the defaults of their fields."""
    got = []

    @with_option_groups
    def command(outer: Outer, *, own: Annotated[str | None, typer.Option("--own", "-o")] = None) -> None:
        """Say what it does."""
        got.append((outer, own))

    app = typer.Typer()
    app.command()(command)
    assert CliRunner().invoke(app, ["a", "b", "--loud", "-o", "y"]).exit_code == 0
    assert CliRunner().invoke(app, ["c", "--size", "3"]).exit_code == 0
    assert got == [(Outer(Inner(["a", "b"], loud=True)), "y"), (Outer(Inner(["c"]), 3), None)]
    told = CliRunner().invoke(app, ["--help"]).stdout
    assert "Say what it does." in told
    assert told.index("--own") < told.index("--loud") < told.index("--size")
    assert CliRunner().invoke(app, []).exit_code == 2
