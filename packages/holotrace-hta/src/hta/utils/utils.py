"""Small functions, at HTA's import path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from holotrace.enrich.kernels.kernel_kind import kind_of_name
from holotrace.schema import EventKind, KernelKind
from hta.facade.imports.elsewhere import names_of
from hta.facade.trace.names import shorten_name
from hta.facade.trace.patterns import (
    CommunicateKernelGroupingPattern,
    ComputeKernelGroupingPattern,
    MemoryKernelGroupingPattern,
)

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

__all__ = [
    "CommunicateKernelGroupingPattern",
    "ComputeKernelGroupingPattern",
    "IdleTimeType",
    "KernelType",
    "MemoryKernelGroupingPattern",
    "flatten_column_names",
    "get_kernel_type",
    "get_memory_kernel_type",
    "get_symbol_column_names",
    "get_value_from_dict",
    "is_comm_kernel",
    "is_compute_kernel",
    "is_computer_kernel",
    "is_memory_kernel",
    "merge_kernel_intervals",
    "normalize_gpu_stream_numbers",
    "normalize_path",
    "shorten_name",
]

_WAITS = re.compile(r"(Stream|Event|Context|Device) Sync|Stream Wait Event")
_COPIES = re.compile(r"(Memcpy \w+|Memset)")
_NO_STREAM = -1
_UNKNOWN_COPY = "Memcpy Unknown"


class KernelType(Enum):
    """The kind of device work."""

    COMMUNICATION = 0
    MEMORY = 1
    COMPUTATION = 2
    OTHER = 3


class IdleTimeType(Enum):
    """The cause of a stream's idle time."""

    HOST_WAIT = 0
    KERNEL_WAIT = 1
    OTHER = 2


def get_kernel_type(name: str) -> str:
    """Return the name of the `KernelType` to which device work with this name belongs."""
    kind = None if _WAITS.match(name) else kind_of_name(name, EventKind.ACCELERATOR)
    return (KernelKind.OTHER if kind is None else kind).name


def get_memory_kernel_type(name: str) -> str:
    """Return a copy's or memset's name without source and destination, such as `Memcpy HtoD`; `Memcpy Unknown` for others."""
    match = _COPIES.match(name)
    return match[0] if match else _UNKNOWN_COPY


def is_comm_kernel(name: str) -> bool:
    """Return whether device work with this name communicates."""
    return get_kernel_type(name) == KernelKind.COMMUNICATION.name


def is_memory_kernel(name: str) -> bool:
    """Return whether device work with this name copies or sets memory."""
    return get_kernel_type(name) == KernelKind.MEMORY.name


def is_compute_kernel(name: str) -> bool:
    """Return whether device work with this name is computation."""
    return get_kernel_type(name) == KernelKind.COMPUTATION.name


is_computer_kernel = is_compute_kernel
"""HTA's earlier spelling."""


def normalize_gpu_stream_numbers(df: pd.DataFrame) -> None:
    """Convert the column `stream`, if there is one, to integers in place, with -1 for values that are not numbers."""
    if "stream" in df.columns:
        df["stream"] = pd.to_numeric(df["stream"], errors="coerce").fillna(_NO_STREAM).astype(int)


def merge_kernel_intervals(kernel_df: pd.DataFrame) -> pd.DataFrame:
    """Return `ts` and `end` of the merged intervals of events with `ts` and `dur`; touching intervals are merged too."""
    ordered = kernel_df.sort_values("ts")
    starts, ends = ordered["ts"].to_numpy(), (ordered["ts"] + ordered["dur"]).cummax().to_numpy()
    begins = np.flatnonzero(np.append(np.ones(min(1, len(starts)), np.bool_), starts[1:] > ends[:-1]))
    return pd.DataFrame({"ts": starts[begins], "end": ends[np.append(begins[1:], len(ends))[: len(begins)] - 1]})


def normalize_path(path: str) -> str:
    """Expand a leading `~` or `.` in a path."""
    return str(Path(path).expanduser().absolute()) if path.startswith(("~", ".")) else path


def flatten_column_names(df: pd.DataFrame) -> None:
    """Join the levels of a frame's column names with `_`, in place."""
    df.columns = pd.Index(
        ["_".join(map(str, name)).rstrip("_") if isinstance(name, tuple) else name for name in df.columns]
    )


def get_symbol_column_names(df: pd.DataFrame) -> tuple[str, str]:
    """Return the names of the columns that contain event names and categories as text; "" for a missing column."""
    name, category = (
        next((column for column in candidates if column in df.columns and _holds_texts(df[column])), "")
        for candidates in (("s_name", "name"), ("s_cat", "cat"))
    )
    return name, category


def get_value_from_dict(d: Mapping[str, Any], key: str, default: Any = None) -> Any:  # noqa: ANN401 -- HTA's signature
    """Return the value at a path such as `distributedInfo.rank` in nested dicts."""
    value: Any = d
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return default
        value = value[part]
    return value


def _holds_texts(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column)
