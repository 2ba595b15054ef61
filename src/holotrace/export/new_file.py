"""Open files for results; existing files are replaced only if requested."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol, cast

from holotrace import _native
from holotrace.errors import InvalidOptionError
from holotrace.locations import Location, drafted, expect_writable_folder

PAGES = (".html", ".htm")
"""Suffixes of HTML files."""

_COMPRESSION_LEVEL = 3
"""This gzip level compresses a trace about 15-fold; higher levels take several times as long and save only a few
percent more."""


def expect_writable(target: Location, *, overwrite: bool) -> None:
    """Check, before any work, that a file can be written to this location.

    Raises:
        InvalidOptionError: the file exists and `overwrite` is false, or its folder is missing or cannot be written.
    """
    expect_writable_folder(target.absolute().parent)
    if target.is_dir():
        message = f"{target} is a folder; name a file"
        raise InvalidOptionError(message)
    if target.exists() and not overwrite:
        message = f"{target} already exists; remove it, choose another name, or overwrite it (--force, overwrite=True)"
        raise InvalidOptionError(message)


def expect_page(path: Location, *, overwrite: bool) -> None:
    """Check, before any work, that the name has an HTML suffix and that the file can be written.

    Raises:
        InvalidOptionError: the name does not end in .html or .htm, or the file cannot be written.
    """
    if path.suffix.lower() not in PAGES:
        message = f"{path} is not a name for an HTML file; choose a name that ends in .html"
        raise InvalidOptionError(message)
    expect_writable(path, overwrite=overwrite)


@contextmanager
def new_file(target: Location, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a binary file for writing, compressed if its name ends in `.gz`.

    The file appears under its name only when the `with` block ends without an error.

    Raises:
        InvalidOptionError: see `expect_writable`.
        OSError: writing failed, for instance because the disk is full; no incomplete file remains.
    """
    expect_writable(target, overwrite=overwrite)
    with drafted(target) as plain:
        if target.suffix == ".gz":
            with gzip.GzipFile("", "wb", _COMPRESSION_LEVEL, plain, mtime=0) as compressed:
                yield cast("BinaryIO", compressed)
        else:
            yield plain


class Pieces(Protocol):
    """A file that accepts its content piece by piece."""

    def writelines(self, pieces: Iterable[bytes], /) -> None:
        """Write the pieces in order."""


@contextmanager
def new_large_file(target: Location, *, overwrite: bool = False) -> Iterator[Pieces]:
    """Like `new_file`, but `.gz` files are compressed twice as fast and become a third larger.

    Raises:
        InvalidOptionError, OSError: see `new_file`.
    """
    expect_writable(target, overwrite=overwrite)
    with drafted(target) as plain:
        if target.suffix == ".gz":
            compressed = _Compressed(plain)
            yield compressed
            plain.write(compressed.gzip.end())
        else:
            yield plain


class _Compressed:
    def __init__(self, plain: BinaryIO) -> None:
        self._plain = plain
        self.gzip = _native.GzipWriter()

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self._plain.writelines(map(self.gzip.compressed, pieces))
