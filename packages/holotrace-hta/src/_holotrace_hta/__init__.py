"""Warns on `import hta` if Meta's files have replaced holotrace-hta's files, or are mixed with them.

Meta's HTA and holotrace-hta both install the package `hta`, and pip silently lets one overwrite the other. Meta's files
would also overwrite a check inside `hta`, so `holotrace_hta.pth` calls `watch` when Python starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType

OURS = "holotrace-hta"
META = ("HolisticTraceAnalysis", "traceinsight")
"""The names of Meta's HTA on PyPI: https://pypi.org/project/HolisticTraceAnalysis, https://pypi.org/project/traceinsight."""


class _Watch:
    """An import finder that never finds a module: it only checks for mixed files on the first `import hta`."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        del path, target
        if name == "hta":
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not _Watch]
            warn_of_mixed_files()


def watch() -> None:
    """Make the first `import hta` check for mixed files."""
    if _Watch not in sys.meta_path:
        sys.meta_path.insert(0, _Watch)


def warn_of_mixed_files() -> None:
    """Warn if Meta's HTA is also installed, or if its removal also deleted some of holotrace-hta's files."""
    problem = _problem()
    if problem:
        import warnings  # noqa: PLC0415 -- this module is loaded whenever Python starts

        warnings.warn(problem, stacklevel=2)


def _problem() -> str:
    theirs = [f"{name} {version}" for name in META if (version := _version(name))]
    missing = _missing_files()
    if theirs:
        names = " ".join(distribution.split()[0] for distribution in theirs)
        return (
            f"{OURS} and Meta's {' and '.join(theirs)} both install the package hta, and their files are mixed now. "
            f"Run `pip uninstall -y {names} {OURS}`, then install the one you want"
        )
    if missing:
        return (
            f"another package has removed files of {OURS}: {missing[0]}{' and others' if missing[1:] else ''}. "
            f"Run `pip install --force-reinstall --no-deps {OURS}`"
        )
    return ""


def _version(name: str) -> str | None:
    from importlib import metadata  # noqa: PLC0415 -- this module is loaded whenever Python starts

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _missing_files() -> list[str]:
    from importlib import metadata  # noqa: PLC0415 -- this module is loaded whenever Python starts

    try:
        distribution = metadata.distribution(OURS)
    except metadata.PackageNotFoundError:
        return []
    record = distribution.read_text("RECORD") or ""  # since Python 3.12, `metadata.files` omits missing files
    files = [line.split(",")[0] for line in record.splitlines()]
    return [file for file in files if file.endswith(".py") and not os.path.exists(str(distribution.locate_file(file)))]  # noqa: PTH110 -- pathlib is slow to import
