"""Help lists every command and option once, under a heading, described in complete sentences."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from holotrace.catalogue import ANALYSES, COMPARISONS
from holotrace.cli.group import _LISTED, app


def sections(*arguments: str) -> dict[str, dict[str, str]]:
    """Return {heading: {name: text}} from the help of a command."""
    result = CliRunner().invoke(app, [*arguments, "--help"])
    assert result.exit_code == 0, result.output
    found: dict[str, dict[str, str]] = {}
    for line in result.stdout.splitlines():
        if re.fullmatch(r"\S.*:", line):
            heading = found.setdefault(line[:-1], {})
        elif found and (row := re.match(r"  (\S.*?)  +(\S.*)", line)):
            heading[row[1]] = row[2]
    return found


def test_every_command_is_under_one_heading() -> None:
    """Each command is listed under exactly one heading; for example, `idle-time` is under `Devices`."""
    groups = {heading: names for heading, names in sections().items() if heading != "Options"}
    names = [name for group in groups.values() for name in group]

    assert sorted(names) == sorted(_LISTED)
    assert len(names) >= len(ANALYSES) + len(COMPARISONS)
    assert next(iter(groups["Begin with"])) == "summary"
    assert "idle-time" in groups["Devices"]


def test_commands_are_described_in_whole_sentences() -> None:
    """Each description is a complete sentence or question."""
    texts = [text for group in sections().values() for text in group.values()]

    assert [text for text in texts if not re.fullmatch(r"[A-Z].*[.?]", text)] == []


@pytest.mark.parametrize("command", ["idle-time", "diff", "sql", "critical-path", "diagnose"])
def test_options_are_under_headings(command: str) -> None:
    """The options of a command come first, then the options for reading traces, for output and for execution."""
    groups = sections(command)

    assert list(groups)[:3] == ["Arguments", "Options", "Which traces"]
    assert "--help" in groups["Options"]
    assert "--no-cache" in groups["Which traces"]
    names = [name for group in groups.values() for name in group]
    assert len(names) == len(set(names))


def test_options_of_a_question_come_before_common_ones() -> None:
    """The what-if options of critical_path have a heading of their own, apart from the options of all commands."""
    groups = sections("critical-path")

    assert any(name.startswith("--scale") for name in groups["Options"])
    assert "--json" in groups["What to print and write"]
    assert any(name.startswith("--workers") for name in groups["How to process ranks"])
