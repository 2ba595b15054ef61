"""Atomic writing of files, local and at URLs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from holotrace.errors import HolotraceError, InvalidOptionError, UnreachableError
from holotrace.locations.leftovers import draft_name, drafts_of, remove_left_behind, scratch_folder
from holotrace.locations.remote_path import RemotePath, writes_at_once
from holotrace.locations.unreachable import explained_errors

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


@contextmanager
def drafted(location: Path | RemotePath, *, replace: bool = True, sync: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing; it appears under its name only when the `with` block ends without an error.

    It then replaces any existing file. A local file is synced before it appears, so even a power cut leaves no partial
    file; `sync=False` skips the sync. For a URL, the content is written to a temporary file, which is sent when
    complete. Some file systems cannot replace a file. On these, the existing file is removed first; with
    `replace=False`, it is kept instead of the new file.

    Raises:
        OSError: the file cannot be written; an UnreachableError for URLs. Nothing is left behind.
    """
    if isinstance(location, RemotePath):
        _expect_a_store(location)
        with scratch_folder() as folder, (folder / "draft").open("xb") as draft:
            yield draft
            draft.flush()
            _send(Path(draft.name), location, replace=replace)
        return
    remove_left_behind(drafts_of(location))
    draft_path = location.with_name(draft_name(location.name))
    try:
        with draft_path.open("xb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        draft_path.replace(location)
        if sync:
            sync_folder(location.parent)
    except HolotraceError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(location)) from error
    finally:
        draft_path.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Sync a file to disk.

    Raises:
        OSError: syncing failed.
    """
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync the list of files in a folder to disk, if the system supports it."""
    with suppress(OSError):  # Windows cannot open folders, and some network drives cannot sync them
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def remove_tree(location: Path | RemotePath) -> None:
    """Remove a folder and its content, ignoring errors."""
    if not isinstance(location, RemotePath):
        shutil.rmtree(location, ignore_errors=True)
        return
    filesystem, path = location.filesystem
    with suppress(FileNotFoundError, UnreachableError), explained_errors(location, "removed"):
        filesystem.rm(path, recursive=True)


def expect_writable_folder(folder: Path | RemotePath) -> None:
    """Check, before any work, that files can be created in a folder.

    Raises:
        InvalidOptionError: the folder does not exist, is not a folder, or cannot be written.
    """
    if isinstance(folder, RemotePath):
        _expect_reachable(folder)
        return
    if not folder.is_dir():
        message = f"{folder} is not a folder; create it first, or choose another"
        raise InvalidOptionError(message)
    if not os.access(folder, os.W_OK | os.X_OK):
        message = f"{folder} cannot be written; choose another folder"
        raise InvalidOptionError(message)


def _expect_reachable(location: RemotePath) -> None:
    """Check, before any work and without writing, that files can be written to a URL.

    Raises:
        UnreachableError: the URL is on a web server, or the bucket does not exist or refuses access.
    """
    _expect_a_store(location)
    filesystem, path = location.filesystem
    bucket = path.strip("/").partition("/")[0]
    if not bucket or not writes_at_once(filesystem):
        return
    try:
        with explained_errors(location, "written"):
            if filesystem.protocol != "memory":
                filesystem.info(bucket)
    except FileNotFoundError:
        message = f"{location} cannot be written: there is no bucket {bucket}"
        raise UnreachableError(message) from None


def _expect_a_store(location: RemotePath) -> None:
    if location.is_page:  # fsspec would send the file to the server in a POST request
        message = f"{location} is a web address, which is read-only; write to an object store or a local path"
        raise UnreachableError(message)


def _send(draft: Path, location: RemotePath, *, replace: bool) -> None:
    filesystem, path = location.filesystem
    if writes_at_once(filesystem):
        with explained_errors(location, "written"):
            filesystem.put_file(str(draft), path)
        return
    beside = f"{path.rpartition('/')[0]}/{draft_name(location.name)}"
    try:
        with explained_errors(location, "written"):
            filesystem.put_file(str(draft), beside)
            options = _replacing(filesystem)
            if replace and options is None and filesystem.exists(path):
                with suppress(FileNotFoundError):  # another process has removed it
                    filesystem.rm_file(path)
            filesystem.mv(beside, path, **(options or {}))
    except BaseException:
        _remove(filesystem, beside)
        raise
    if not replace:  # if `path` exists, WebHDFS leaves `beside` where it is and reports no error
        _remove(filesystem, beside)


def _replacing(filesystem: AbstractFileSystem) -> dict[str, bool] | None:
    """Return the options that make `mv` replace a file atomically; None if the file system does not support this."""
    if type(filesystem).__module__.startswith("hdfs_native"):
        return {"overwrite": True}
    return {} if "local" in filesystem.protocol else None


def _remove(filesystem: AbstractFileSystem, path: str) -> None:
    with suppress(Exception):
        if filesystem.exists(path):
            filesystem.rm_file(path)
