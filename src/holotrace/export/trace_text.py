"""Read the text of a trace file, decompressed, piece by piece."""

from __future__ import annotations

import gzip
import importlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

from holotrace.errors import HolotraceError, InvalidOptionError, UnreadableTraceError
from holotrace.locations import Address, Location, address_text, located

PIECE = 1 << 20
"""Bytes read at a time."""

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_ZSTD_READERS = ("compression.zstd", "backports.zstd", "zstandard")
"""Modules that decompress zstd; the first is part of Python 3.14 (https://peps.python.org/pep-0784/)."""


def pieces(path: Address) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in order; if a compressed file is truncated, yield its readable part.

    Raises:
        UnreadableTraceError: the file cannot be opened or read.
        InvalidOptionError: the file is compressed with zstd, and no installed module can decompress it.
    """
    try:
        with _opened(located(path)) as file:
            yield from _pieces_of(file)
    except HolotraceError:
        raise
    except OSError as error:
        message = f"{address_text(path)} cannot be read: {error.strerror or error}"
        raise UnreadableTraceError(message) from error


def _pieces_of(file: BinaryIO) -> Iterator[bytes]:
    try:
        while piece := cast("io.BufferedReader", file).read1(PIECE):
            yield piece
    except (EOFError, zlib.error, gzip.BadGzipFile):  # truncated or damaged, but everything before this point is valid
        return


@contextmanager
def _opened(path: Location) -> Iterator[BinaryIO]:
    with path.open("rb") as plain:
        start = plain.read(len(_ZSTD))
        plain.seek(0)
        if start.startswith(_GZIP):
            with gzip.open(plain, "rb") as text:
                yield cast("BinaryIO", text)
        elif start == _ZSTD:
            with _zstd(path).open(plain, "rb") as text:
                yield text
        else:
            yield plain


def _zstd(path: Location) -> Any:  # noqa: ANN401 -- one of several modules
    for name in _ZSTD_READERS:
        with suppress(ImportError):
            return importlib.import_module(name)
    message = (
        f"{path} is compressed with zstd, and this Python has no module that decompresses zstd; decompress the file "
        f"first (zstd -d), or install one of {', '.join(_ZSTD_READERS[1:])}"
    )
    raise InvalidOptionError(message)
