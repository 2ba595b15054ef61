"""The progress that shows nothing."""

from __future__ import annotations

import pytest

from holotrace.execution.progress import SILENT


def test_the_default_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """The default writes neither to the terminal nor anywhere else."""
    SILENT.start(100, "a file")
    SILENT.advance(100)
    SILENT.finish()
    assert capfd.readouterr() == ("", "")
