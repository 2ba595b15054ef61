"""`SILENT`, the default progress, shows nothing."""

from __future__ import annotations

import pytest

from holotrace.execution.progress import SILENT


def test_the_default_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """`SILENT` writes nothing to stdout or stderr."""
    SILENT.start(100, "a file")
    SILENT.advance(100)
    SILENT.finish()
    assert capfd.readouterr() == ("", "")
