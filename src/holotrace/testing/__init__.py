"""Traces for tests: built by hand, made as a whole job with known truth, or drawn by Hypothesis.

`holotrace.testing.strategies` needs Hypothesis and is imported by its own name.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holotrace.testing.builder import TraceBuilder
    from holotrace.testing.job_truth import JobTruth, RankTruth
    from holotrace.testing.synthetic import write_job

__all__ = ["JobTruth", "RankTruth", "TraceBuilder", "write_job"]

_HOMES = {
    "JobTruth": "holotrace.testing.job_truth",
    "RankTruth": "holotrace.testing.job_truth",
    "TraceBuilder": "holotrace.testing.builder",
    "write_job": "holotrace.testing.synthetic",
}


if not TYPE_CHECKING:  # type checkers would take any name for one that this function finds

    def __getattr__(name: str) -> Any:  # noqa: ANN401 -- the names have no common type
        """Import a public name when it is first used, so that `python -m holotrace.testing.synthetic` loads it once."""
        if name not in _HOMES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names, and those that every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
