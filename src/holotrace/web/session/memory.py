"""Measure the memory of results and of this process."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl


def bytes_of(value: object) -> int:
    """Estimate the memory of a result from the tables and arrays in it."""
    if isinstance(value, (pl.DataFrame, pl.Series)):
        return int(value.estimated_size())
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, dict):
        return sum(map(bytes_of, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(bytes_of, value))
    return sum(map(bytes_of, vars(value).values())) if hasattr(value, "__dict__") else 64


def resident_bytes() -> int | None:
    """Return the memory of this process, excluding mapped files; None if the system does not report it."""
    try:
        fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except OSError:
        return None
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
