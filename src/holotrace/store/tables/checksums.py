"""Checksums of stored files (XXH3, https://xxhash.com, in hexadecimal); each JSON file begins with its checksum."""

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
    """The expected length of a table's Arrow file, and the checksums of its structure and its columns."""

    byte_count: int
    structure: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> TableSums:
        """Compute the checksums of a file, reading all of it.

        Raises:
            OSError: the file cannot be read, or is not an Arrow file.
        """
        structure, columns = _native.arrow_checksums(path)
        return cls(path.stat().st_size, structure, tuple(columns))

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> TableSums:
        """Restore an object from the dict that `vars` returned for it.

        Raises:
            KeyError, TypeError: `raw` lacks a key, or a value has the wrong type.
        """
        return cls(raw["byte_count"], raw["structure"], tuple(raw["columns"]))

    def fit(self, path: Path, columns: Collection[int]) -> bool:
        """Return whether the columns with these numbers match their checksums; other columns are not read.

        Raises:
            OSError: the file cannot be read, or is not an Arrow file.
        """
        wanted = sorted(columns)
        structure, checksums = _native.arrow_checksums(path, wanted)
        return (structure, checksums) == (self.structure, [self.columns[number] for number in wanted])


def file_checksum(path: Path) -> str:
    """Return the checksum of a file.

    Raises:
        OSError: the file cannot be read.
    """
    return _native.file_checksum(path)


def checksum(data: bytes) -> str:
    """Return the checksum of bytes, equal to `file_checksum` of a file with this content."""
    return _native.checksum(data)


def sealed(content: Mapping[str, Any], *, indent: int | None = None) -> bytes:
    """Return a JSON object that begins with the checksum of its remaining bytes."""
    text = json.dumps(content, indent=indent)[1:].encode()
    return _SEAL.format(checksum(text)).encode() + text


def unsealed(data: bytes) -> dict[str, Any]:
    """Return the content that was passed to `sealed`.

    Raises:
        ValueError: a byte was changed, or `data` was not written with a checksum.
    """
    seal = _SEALED.match(data)
    if seal is None or checksum(data[seal.end() :]) != seal[1].decode():
        message = "its checksum does not match" if seal else "it has no checksum"
        raise ValueError(message)
    return dict(json.loads(b"{" + data[seal.end() :]))


def is_sealed(data: bytes) -> bool:
    """Return whether a file begins with a checksum, correct or not."""
    return _SEALED.match(data) is not None


def column_numbers(names: Sequence[str], wanted: Collection[str]) -> list[int]:
    """Return the positions of the wanted columns in a table."""
    return [number for number, name in enumerate(names) if name in wanted]
