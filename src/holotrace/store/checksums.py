"""Checksums of what is kept, XXH3 in hexadecimal, and manifests that carry their own."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holotrace import _native

_SEAL = '{{"checksum": "{}",'
_SEALED = re.compile(rb'\{"checksum": "([0-9a-f]{16})",')


@dataclass(frozen=True)
class TableSums:
    """What a table kept as an Arrow file has to be: its length, and the checksums of its structure and its columns."""

    byte_count: int
    structure: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> TableSums:
        """Read the whole file.

        Raises:
            OSError: it cannot be read, or is not an Arrow file.
        """
        structure, columns = _native.arrow_checksums(path)
        return cls(path.stat().st_size, structure, tuple(columns))

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> TableSums:
        """Read what `vars` made of one.

        Raises:
            KeyError, TypeError: it is something else.
        """
        return cls(raw["byte_count"], raw["structure"], tuple(raw["columns"]))

    def fit(self, path: Path, columns: Collection[int]) -> bool:
        """Whether these columns of the file, by their numbers, are as they were written; the others are not read.

        Raises:
            OSError: it cannot be read, or is not an Arrow file.
        """
        wanted = sorted(columns)
        structure, found = _native.arrow_checksums(path, wanted)
        return (structure, found) == (self.structure, [self.columns[number] for number in wanted])


def file_checksum(path: Path) -> str:
    """Return the checksum of a file.

    Raises:
        OSError: it cannot be read.
    """
    return _native.file_checksum(path)


def checksum(data: bytes) -> str:
    """Return the checksum of bytes, equal to that of a file that holds them."""
    return _native.checksum(data)


def sealed(content: Mapping[str, Any], *, indent: int | None = None) -> bytes:
    """Return a JSON object that begins with the checksum of all its other bytes."""
    text = json.dumps(content, indent=indent)[1:].encode()
    return _SEAL.format(checksum(text)).encode() + text


def unsealed(data: bytes) -> dict[str, Any]:
    """Return what `sealed` was given.

    Raises:
        ValueError: a byte was changed, or it is something else.
    """
    seal = _SEALED.match(data)
    if seal is None or checksum(data[seal.end() :]) != seal[1].decode():
        message = "its checksum does not fit" if seal else "it has no checksum"
        raise ValueError(message)
    return dict(json.loads(b"{" + data[seal.end() :]))


def is_sealed(data: bytes) -> bool:
    """Whether a file claims a checksum, be it right or wrong."""
    return _SEALED.match(data) is not None


def column_numbers(names: Sequence[str], wanted: Collection[str]) -> list[int]:
    """Return where the wanted columns are among those of a table."""
    return [number for number, name in enumerate(names) if name in wanted]
