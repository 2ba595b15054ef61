"""The name of an output file decides its format."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest
from typer.testing import CliRunner

from holotrace.cli import figure_files
from holotrace.cli.figure_files import PICTURES
from holotrace.cli.group import app
from holotrace.errors import InvalidOptionError
from jobs import gpu_job


@pytest.fixture
def job(tmp_path, monkeypatch) -> str:
    """Write a small job, and use a temporary cache."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    gpu_job().write(tmp_path / "job")
    return str(tmp_path / "job")


def run(*arguments: str) -> None:
    """Run a command, and raise its error if it fails."""
    CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.fixture
def kaleido(monkeypatch) -> list[str]:
    """Replace kaleido with a stand-in; return the list of requested formats."""
    formats: list[str] = []
    monkeypatch.setattr(figure_files, "can_draw", lambda: True)
    monkeypatch.setattr(go.Figure, "to_image", lambda _, format: formats.append(format) or b"a picture")  # noqa: A006
    return formats


SOURCES = {"critical-path": 1, "diff": 2}


@pytest.mark.parametrize("command", SOURCES)
@pytest.mark.parametrize("ending", PICTURES)
def test_without_kaleido_a_picture_is_an_error_before_any_work(command, ending, job, tmp_path, monkeypatch) -> None:
    """Without kaleido, the error for a picture says what to install, and suggests an HTML page instead."""
    monkeypatch.setattr(figure_files, "can_draw", lambda: False)
    path = tmp_path / f"f{ending}"
    with pytest.raises(
        InvalidOptionError, match=r"needs kaleido and a Chrome browser: pip install kaleido, or write a page"
    ):
        run(command, *[job] * SOURCES[command], "--figure", str(path))
    assert not path.exists()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("command", SOURCES)
@pytest.mark.parametrize("ending", PICTURES)
def test_kaleido_draws_pictures(command, ending, job, tmp_path, kaleido) -> None:
    """Kaleido draws the picture in the format that the suffix names, in lower or upper case."""
    path = tmp_path / f"f{ending.upper()}"
    run(command, *[job] * SOURCES[command], "--figure", str(path))
    assert (path.read_bytes(), kaleido) == (b"a picture", [ending.removeprefix(".")])


def test_a_failure_of_kaleido_is_a_one_line_error(job, tmp_path, kaleido, monkeypatch) -> None:
    """If kaleido finds no browser, the error is one line and no file is written."""

    def fail(*_: object, **__: object) -> bytes:
        message = "\n\nno\nChrome"
        raise RuntimeError(message)

    assert kaleido == []
    monkeypatch.setattr(go.Figure, "to_image", fail)
    with pytest.raises(InvalidOptionError, match=r"f\.png cannot be drawn \(no Chrome\); install Chrome for kaleido"):
        run("idle-time", job, "--figure", str(tmp_path / "f.png"))
    assert not (tmp_path / "f.png").exists()


@pytest.mark.parametrize("name", ["f", "f.txt", "f.json", "f.html.gz", "f.csv"])
def test_other_suffixes_of_a_figure_are_refused(name, job, tmp_path) -> None:
    """A figure file without a suffix, or with an unsupported one, is refused."""
    with pytest.raises(InvalidOptionError, match=r"a figure is a page \(\.html\) or a picture"):
        run("idle-time", job, "--figure", str(tmp_path / name))


@pytest.mark.parametrize("name", ["f", "f.pdf", "f.png", "f.html.gz"])
def test_a_report_must_be_named_html(name, job, tmp_path) -> None:
    """A report file whose name does not end in `.html` is refused."""
    with pytest.raises(InvalidOptionError, match=r"is not a name for an HTML file; choose a name that ends in \.html"):
        run("report", job, "-o", str(tmp_path / name))


def test_the_format_and_the_suffix_of_sql_output_must_agree(job, tmp_path) -> None:
    """`sql --format csv -o rows.parquet` fails because the two options name different formats."""
    with pytest.raises(
        InvalidOptionError, match=r"rows\.parquet ends in \.parquet, but --format is csv; make both the same"
    ):
        run("sql", job, "SELECT 1 FROM kernels", "--format", "csv", "-o", str(tmp_path / "rows.parquet"))
