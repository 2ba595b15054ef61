"""A file that a command writes is what its name says."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest
from typer.testing import CliRunner

from holotrace.cli import figure_files
from holotrace.cli.commands import app
from holotrace.cli.figure_files import PICTURES
from holotrace.errors import InvalidOptionError
from jobs import gpu_job


@pytest.fixture
def job(tmp_path, monkeypatch) -> str:
    """A small job, with a cache of the test."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    gpu_job().write(tmp_path / "job")
    return str(tmp_path / "job")


def run(*arguments: str) -> None:
    """Run a command; its error is raised."""
    CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.fixture
def kaleido(monkeypatch) -> list[str]:
    """As if kaleido were installed and drew; the formats it was asked for."""
    asked: list[str] = []
    monkeypatch.setattr(figure_files, "can_draw", lambda: True)
    monkeypatch.setattr(go.Figure, "to_image", lambda _, format: asked.append(format) or b"a picture")  # noqa: A006
    return asked


SOURCES = {"critical-path": 1, "diff": 2}


@pytest.mark.parametrize("command", SOURCES)
@pytest.mark.parametrize("ending", PICTURES)
def test_without_kaleido_a_picture_is_refused_before_any_work(command, ending, job, tmp_path, monkeypatch) -> None:
    """The line says what to install, or how to do without."""
    monkeypatch.setattr(figure_files, "can_draw", lambda: False)
    path = tmp_path / f"f{ending}"
    with pytest.raises(
        InvalidOptionError, match=r"pictures need kaleido and a Chrome browser: pip install kaleido; or write a page"
    ):
        run(command, *[job] * SOURCES[command], "--figure", str(path))
    assert not path.exists()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("command", SOURCES)
@pytest.mark.parametrize("ending", PICTURES)
def test_with_kaleido_a_picture_is_one(command, ending, job, tmp_path, kaleido) -> None:
    """Of the kind that its name says."""
    path = tmp_path / f"f{ending.upper()}"
    run(command, *[job] * SOURCES[command], "--figure", str(path))
    assert (path.read_bytes(), kaleido) == (b"a picture", [ending.removeprefix(".")])


def test_a_picture_that_cannot_be_drawn_is_one_line(job, tmp_path, kaleido, monkeypatch) -> None:
    """Without a browser, for instance, kaleido has its own way to say so."""

    def fail(*_: object, **__: object) -> bytes:
        message = "\n\nno\nChrome"
        raise RuntimeError(message)

    assert kaleido == []
    monkeypatch.setattr(go.Figure, "to_image", fail)
    with pytest.raises(InvalidOptionError, match=r"f\.png cannot be drawn \(no Chrome\); install Chrome for kaleido"):
        run("idle-time", job, "--figure", str(tmp_path / "f.png"))
    assert not (tmp_path / "f.png").exists()


@pytest.mark.parametrize("name", ["f", "f.txt", "f.json", "f.html.gz", "f.csv"])
def test_a_figure_is_nothing_else(name, job, tmp_path) -> None:
    """A name that says nothing, or something else."""
    with pytest.raises(InvalidOptionError, match=r"a figure is a page, \.html, or a picture"):
        run("idle-time", job, "--figure", str(tmp_path / name))


@pytest.mark.parametrize("name", ["f", "f.pdf", "f.png", "f.html.gz"])
def test_a_report_is_a_page(name, job, tmp_path) -> None:
    """Its name says so."""
    with pytest.raises(InvalidOptionError, match=r"would hold HTML; let its name end in \.html"):
        run("report", job, "-o", str(tmp_path / name))


def test_sql_does_not_write_one_format_under_the_name_of_another(job, tmp_path) -> None:
    """Where the name and --format say different things, neither is done."""
    with pytest.raises(
        InvalidOptionError, match=r"rows\.parquet says parquet, and --format csv; let both say the same"
    ):
        run("sql", job, "SELECT 1 FROM kernels", "--format", "csv", "-o", str(tmp_path / "rows.parquet"))
