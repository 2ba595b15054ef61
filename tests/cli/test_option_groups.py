"""Groups of options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from holotrace.cli.option_groups import with_option_groups


@dataclass(frozen=True)
class Inner:
    """An option group that `Outer` contains."""

    names: Annotated[list[str], typer.Argument()]
    loud: Annotated[bool, typer.Option("--loud")] = False


@dataclass(frozen=True)
class Outer:
    """An option group that contains another group."""

    inner: Inner
    size: Annotated[int | None, typer.Option("--size")] = None


def test_a_command_has_all_options_of_its_groups() -> None:
    """A command receives its option groups as objects with defaults filled in; its help lists its own options first."""
    calls = []

    @with_option_groups
    def command(outer: Outer, *, own: Annotated[str | None, typer.Option("--own", "-o")] = None) -> None:
        """Say what it does."""
        calls.append((outer, own))

    app = typer.Typer()
    app.command()(command)
    assert CliRunner().invoke(app, ["a", "b", "--loud", "-o", "y"]).exit_code == 0
    assert CliRunner().invoke(app, ["c", "--size", "3"]).exit_code == 0
    assert calls == [(Outer(Inner(["a", "b"], loud=True)), "y"), (Outer(Inner(["c"]), 3), None)]
    help_text = CliRunner().invoke(app, ["--help"]).stdout
    assert "Say what it does." in help_text
    assert help_text.index("--own") < help_text.index("--loud") < help_text.index("--size")
    assert CliRunner().invoke(app, []).exit_code == 2
