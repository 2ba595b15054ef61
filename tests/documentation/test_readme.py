"""The examples of the README run, and its pictures exist."""

from __future__ import annotations

import re

import pytest

from pages import ROOT, python_blocks, run_blocks

README = ROOT / "README.md"
MOST_LINES = 10


@pytest.mark.slow
def test_the_examples_run(tmp_path, monkeypatch, capsys) -> None:
    """The examples of the README run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    run_blocks(README)
    assert (tmp_path / "idle_time.html").exists()
    printed = capsys.readouterr().out
    assert "overlap_fraction" in printed
    assert "comp_comm_overlap_pctg" in printed


def test_the_first_example_is_short() -> None:
    """The first example of the README has at most ten lines."""
    assert len(python_blocks(README)[0].strip().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", re.findall(r"docs/images/[\w/.]+", README.read_text(encoding="utf-8")))
def test_the_pictures_exist(name) -> None:
    """Each picture that the README names exists."""
    assert (ROOT / name).stat().st_size > 0
