"""Files are there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from holotrace.report.atomic import write_atomically


def test_an_older_file_is_replaced(tmp_path) -> None:
    """The new text is there, and no draft is left."""
    path = tmp_path / "a.html"
    path.write_text("old")
    write_atomically(path, "new µ\n")
    assert path.read_bytes() == "new µ\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_older_file(tmp_path, monkeypatch) -> None:
    """A full disk destroys nothing and leaves no draft."""
    path = tmp_path / "a.html"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomically(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_named(tmp_path) -> None:
    """The error is about the path that was asked for, not about a draft."""
    path = tmp_path / "missing" / "a.html"
    with pytest.raises(OSError, match="No such file") as caught:
        write_atomically(path, "new")
    assert caught.value.filename == str(path)
