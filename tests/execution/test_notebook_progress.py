"""Tests of the progress bar of notebooks, with a stand-in for IPython that records what is displayed."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from holotrace.execution import notebook_progress
from holotrace.execution.notebook_progress import NotebookProgress, default_progress
from holotrace.execution.progress import SILENT


class Handle:
    """A display that can be updated."""

    def __init__(self, shown: list[str]) -> None:
        """Use the list `shown` to record what is displayed."""
        self.shown = shown

    def update(self, html: str) -> None:
        """Append the new content to the list."""
        self.shown.append(html)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of everything that the notebook displays, in order."""
    displayed: list[str] = []

    def display(html: str, *, display_id: bool) -> Handle:
        assert display_id
        displayed.append(html)
        return Handle(displayed)

    ipython, module = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    module.HTML, module.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return displayed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list whose only item is the current time in seconds; a test can change this item."""
    now = [0.0]
    monkeypatch.setattr(notebook_progress.time, "monotonic", lambda: now[0])
    return now


def test_a_long_file_has_a_bar_that_disappears(shown: list[str], clock: list[float]) -> None:
    """The bar appears after a second, moves, and is removed at the end."""
    bar = NotebookProgress()
    bar.start(200, "rank0.json")
    clock[0] = 1.5
    bar.advance(50)
    clock[0] = 2.0
    bar.advance(100)
    bar.finish()

    assert shown == [
        '<progress value="50" max="200"></progress> reading rank0.json 25%',
        '<progress value="150" max="200"></progress> reading rank0.json 75%',
        "",
    ]


def test_a_short_file_has_no_bar(shown: list[str], clock: list[float]) -> None:
    """A file read in less than a second shows no bar."""
    bar = NotebookProgress()
    bar.start(200, "rank0.json")
    clock[0] = 0.9
    bar.advance(200)
    bar.finish()

    assert shown == []


def test_file_names_are_plain_text(shown: list[str], clock: list[float]) -> None:
    """The bar escapes markup in file names and makes control characters visible."""
    bar = NotebookProgress()
    bar.start(100, "<img src=x>\x1b[2J.json")
    clock[0] = 2.0
    bar.advance(50)

    assert shown == ['<progress value="50" max="100"></progress> reading &lt;img src=x&gt;\\x1b[2J.json 50%']


@pytest.mark.usefixtures("shown")
def test_only_notebooks_have_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts show no bar; IPython in a terminal shows none either, because it runs without a Jupyter kernel."""
    assert isinstance(default_progress(), NotebookProgress)
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", object)
    assert default_progress() is SILENT
    monkeypatch.delitem(sys.modules, "IPython")
    assert default_progress() is SILENT
