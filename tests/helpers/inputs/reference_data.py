"""Real traces and results of other tools, from a large set outside the repository or a small set inside it."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

TESTS = Path(__file__).parents[2]
BESIDE_THE_REPOSITORY = TESTS.parent.parent / "shared"
IN_THE_REPOSITORY = TESTS / "reference"
BUILD = TESTS.parent / "build"

VARIABLES = {"traces": "HOLOTRACE_REAL_TRACES", "goldens": "HOLOTRACE_GOLDENS"}
"""Environment variables that name the folders of the large set: its traces, and the results of other tools."""


class SmallSet(type(Path())):  # type: ignore[misc]  # the class of a path depends on the operating system
    """A folder of the small set. A test is skipped if it asks for a recording that only the large set contains.

    If a folder contains any files, its recording is complete. A missing file is then an error, and no test is skipped.
    """

    def __truediv__(self, name: Any) -> SmallSet:
        """Return the path; skip the test if only the large set contains the recording."""
        return _held(super().__truediv__(name))

    def glob(self, pattern: str, **options: Any) -> Iterator[SmallSet]:
        """Return the matching paths; skip the test if only the large set contains the recording."""
        matches = list(super().glob(pattern, **options))
        if not matches:
            _held(self.joinpath(*takewhile(_is_literal, Path(pattern).parts)))
        return iter(matches)


def folder_of(kind: str) -> Path:
    """Return the folder of the large set if it exists; otherwise, return the folder of the small set.

    An environment variable sets the folder of the large set; the default is a folder beside the repository.
    """
    large = Path(os.environ.get(VARIABLES[kind]) or BESIDE_THE_REPOSITORY / kind)
    return large if large.is_dir() else SmallSet(small_folder_of(kind))


def small_folder_of(kind: str) -> Path:
    """Return the folder `traces` or `goldens` of the small set; unpack the 2,000 goldens from their archive first."""
    return _unpacked(IN_THE_REPOSITORY / "goldens.tar.xz") if kind == "goldens" else IN_THE_REPOSITORY / kind


@cache
def _unpacked(archive: Path) -> Path:
    """Unpack an archive on first use; return the folder with its content."""
    folder = BUILD / f"reference-{hashlib.sha256(archive.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        BUILD.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=BUILD) as part, tarfile.open(archive) as tar:
            # Python 3.12 warns if no filter is set, but 3.11.3 has none: https://docs.python.org/3/library/tarfile.html
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(part)  # noqa: S202 -- an archive of this repository
            with suppress(OSError):  # another worker may have unpacked the archive first
                Path(part).rename(folder)
    return folder / "goldens"


def _held(path: SmallSet) -> SmallSet:
    if not path.exists() and _holds_only_folders(_nearest(path)):
        part = path.relative_to(_root(path))
        pytest.skip(f"{part} is only in the large set; name its folders in {' and '.join(VARIABLES.values())}")
    return path


def _root(path: Path) -> Path:
    """Return the parent folder that contains `traces` or `goldens`."""
    parents = Path(path).parents
    return next(parent for parent in parents if (parent / "traces").is_dir() or (parent / "goldens").is_dir())


def _nearest(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.exists())


def _holds_only_folders(path: Path) -> bool:
    return path.is_dir() and all(entry.is_dir() for entry in path.iterdir())


def _is_literal(name: str) -> bool:
    return not any(sign in name for sign in "*?[")
