"""`drafted` writes a file completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holotrace.locations import drafted


def write(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file atomically."""
    with drafted(path, sync=sync) as file:
        file.write(content)


@pytest.mark.parametrize("sync", [True, False])
def test_an_existing_file_is_replaced(tmp_path, sync) -> None:
    """Writing replaces an existing file and leaves no draft."""
    path = tmp_path / "a.html"
    path.write_text("old")
    write(path, "new µ\n".encode(), sync=sync)
    assert path.read_bytes() == "new µ\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_keeps_the_existing_file(tmp_path, monkeypatch) -> None:
    """If the disk is full, the write fails, keeps the existing file and leaves no draft."""
    path = tmp_path / "a.html"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_and_not_the_draft(tmp_path) -> None:
    """The error for a missing folder names the file to be written, not the temporary draft of it."""
    path = tmp_path / "missing" / "a.html"
    with pytest.raises(OSError, match="No such file") as caught:
        write(path, b"new")
    assert caught.value.filename == str(path)


def test_a_file_is_on_disk_before_it_appears(tmp_path, monkeypatch) -> None:
    """Writing syncs the draft before the rename and the folder after the rename; `sync=False` syncs neither."""
    done = []
    replace = Path.replace
    monkeypatch.setattr(os, "fsync", lambda _: done.append("sync"))
    monkeypatch.setattr(Path, "replace", lambda *paths: (done.append("rename"), replace(*paths)))
    write(tmp_path / "a.html", b"new")
    assert done == ["sync", "rename", "sync"]
    done.clear()
    write(tmp_path / "b.html", b"new", sync=False)
    assert done == ["rename"]
