"""Every analysis has what a reader needs: function, figure, command, page, tests and a golden table."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest

import holotrace
from holotrace import figures
from holotrace.catalogue import ANALYSES, analysis
from holotrace.cli.commands import app
from holotrace.question import Analysis
from jobs import gpu_job

ROOT = Path(__file__).parent.parent
each_analysis = pytest.mark.parametrize("entry", ANALYSES, ids=lambda entry: entry.name)


def test_the_catalogue_lists_every_analysis() -> None:
    """Each folder of holotrace/analyses is in the catalogue, but for the comparisons of two traces."""
    folder = ROOT / "src" / "holotrace" / "analyses"
    questions = {path.parent.name for path in folder.glob("*/compute.py")}
    assert {entry.name for entry in ANALYSES} == questions - {"compare_operators", "compare_traces"}


@each_analysis
def test_one_word_leads_to_function_and_figure(entry: Analysis) -> None:
    """`holotrace.<name>` computes, `holotrace.figures.plot_<name>` draws."""
    assert getattr(holotrace, entry.name) is entry.compute
    assert getattr(import_module(f"holotrace.analyses.{entry.name}.compute"), entry.name) is entry.compute
    assert callable(getattr(figures, f"plot_{entry.name}"))


@each_analysis
def test_one_word_leads_to_the_command(entry: Analysis) -> None:
    """`holotrace <name>` prints it."""
    names = {command.callback.__name__ for command in app.registered_commands if command.callback}
    assert entry.name in names


@each_analysis
def test_one_word_leads_to_the_page(entry: Analysis) -> None:
    """The page derives the definitions."""
    assert (ROOT / "docs" / entry.page).is_file()


@each_analysis
def test_one_word_leads_to_tests_and_golden_table(entry: Analysis) -> None:
    """Numbers are kept where a review sees them change."""
    assert (ROOT / "tests" / "analyses" / entry.name / "test_compute.py").is_file()
    assert list((ROOT / "tests" / "golden").glob(f"{entry.name}/**/*.csv"))


@each_analysis
def test_views_are_tables_that_can_be_cut(entry: Analysis) -> None:
    """Each view makes a table from the result, and has the column by which rows are chosen."""
    result = entry.compute(gpu_job().build())
    for view in entry.views:
        assert view.telling in view.table(result).columns


@each_analysis
def test_every_analysis_defines_its_words(entry: Analysis) -> None:
    """The report explains what its tables say."""
    assert entry.definitions
    assert entry.question.endswith("?")
    assert inspect.getdoc(entry.compute)


def test_an_unknown_analysis_is_a_key_error() -> None:
    """A caller that asks for a name that does not exist has made a mistake."""
    with pytest.raises(KeyError):
        analysis("nothing")
