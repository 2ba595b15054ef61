"""Every analysis has a function, a figure, a command, a page, tests and a golden table."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

import holotrace
from holotrace import figures
from holotrace.catalogue import ANALYSES, COMPARISONS, analysis
from holotrace.cli.group import app
from holotrace.questions.question import Analysis
from jobs import built_gpu_job

ROOT = Path(__file__).parent.parent
QUESTIONS = (*ANALYSES, *COMPARISONS)
COMMANDS = get_command(app)
each_question = pytest.mark.parametrize("entry", QUESTIONS, ids=lambda entry: entry.name)


def test_the_catalogue_lists_every_question() -> None:
    """The catalogue lists each folder of holotrace/analyses once."""
    folder = ROOT / "src" / "holotrace" / "analyses"
    names = sorted(path.parent.name for path in folder.glob("*/compute.py"))
    assert sorted(entry.name for entry in QUESTIONS) == names


@each_question
def test_an_analysis_names_its_function_and_figure(entry: Analysis) -> None:
    """For each question, `holotrace.<name>` computes the result and `holotrace.figures.plot_<name>` draws it."""
    assert getattr(holotrace, entry.name) is entry.compute
    assert getattr(import_module(f"holotrace.analyses.{entry.name}.compute"), entry.name) is entry.compute
    assert callable(getattr(figures, f"plot_{entry.name}"))


@each_question
def test_an_analysis_names_its_command(entry: Analysis) -> None:
    """The command of an analysis has the catalogue's options, and its help begins with the question."""
    command = COMMANDS.get_command(None, entry.command)
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert {option.name for option in entry.options} <= flags
    assert entry.question in command.help


@each_question
def test_an_analysis_names_its_page(entry: Analysis) -> None:
    """The page that the catalogue names for an analysis exists in the documentation."""
    assert (ROOT / "docs" / entry.page).is_file()


@each_question
def test_an_analysis_names_its_tests_and_golden_table(entry: Analysis) -> None:
    """Every analysis has a test_compute.py and a golden table."""
    assert (ROOT / "tests" / "analyses" / entry.name / "test_compute.py").is_file()
    assert list((ROOT / "tests" / "golden").glob(f"{entry.name}/**/*.csv"))


@each_question
def test_views_can_be_shortened(entry: Analysis) -> None:
    """Each view names the column that decides which rows of a long table are shown."""
    result = entry.compute(*[built_gpu_job()] * (2 if entry in COMPARISONS else 1))
    for view in entry.views:
        assert view.telling in view.table(result).columns


@each_question
def test_every_question_defines_its_terms(entry: Analysis) -> None:
    """Every analysis has a question, a docstring, and definitions of its terms."""
    assert entry.definitions
    assert entry.question.endswith("?")
    assert inspect.getdoc(entry.compute)


def test_an_unknown_analysis_is_a_key_error() -> None:
    """Looking up an unknown analysis raises a KeyError."""
    with pytest.raises(KeyError):
        analysis("nothing")
