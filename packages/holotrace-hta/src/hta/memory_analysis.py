"""MemoryAnalysis with HTA's interface: reads raw memory timelines of torch.profiler."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from holotrace import _native
from holotrace.drawing.theme import template
from holotrace.errors import NotATraceError, TraceNotFoundError, UnreadableTraceError
from holotrace.export.new_file import expect_writable, new_file
from holotrace.locations import expect_writable_folder, native_source

CATEGORIES = (
    "Parameter",
    "Optimizer state",
    "Input",
    "Temporary",
    "Activation",
    "Gradient",
    "Autograd",
    "Unknown",
)
"""Categories of memory blocks, ordered by their numbers in the file."""


class Category(Enum):
    """Categories of memory blocks, with HTA's names."""

    INPUT = 1
    TEMPORARY = 2
    ACTIVATION = 3
    GRADIENT = 4
    AUTOGRAD_DETAIL = 5
    PARAMETER = 6
    OPTIMIZER_STATE = 7


_GIB = 1 << 30
_PLOT_PATH = Path("images", "memory_plot.html")

_Numbers: TypeAlias = npt.NDArray[np.int64]


class MemoryAnalysis:
    """A raw memory timeline, as `export_memory_timeline("memory.raw.json.gz")` writes it.

    Args:
        path: the file, plain or gzip: a JSON list of `[time in ns, action, signed bytes, category]`.

    Raises:
        TraceNotFoundError: the file does not exist.
        UnreadableTraceError: the file is not readable.
        NotATraceError: the file is not a raw memory timeline.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._columns = _timeline(*_read(path))

    def get_memory_timeline(self) -> pd.DataFrame:
        """Return the number of bytes in each category over time.

        Returns:
            One row per time at which a category changes, in the order of the file, with the columns ts (ns), the eight
            `CATEGORIES`, and their sum `Total`. Memory allocated before the recording started appears at the first
            recorded time.
        """
        return pd.DataFrame(self._columns)

    def get_peak(self) -> pd.Series:
        """Return the first row with the highest total, or an empty series if the timeline is empty."""
        frame = self.get_memory_timeline()
        if frame.empty:
            return pd.Series(dtype="int64")
        peak: pd.Series = frame.iloc[int(frame["Total"].to_numpy().argmax())]
        return peak

    def plot_memory_timeline(self, save_graph: bool = False) -> pd.DataFrame:  # noqa: FBT001, FBT002 -- HTA's
        """Plot the memory of each category, stacked, in GiB over time in ms; show the plot and return the frame.

        Args:
            save_graph: also write `images/memory_plot.html` in the current folder; replaces an existing file.

        Raises:
            InvalidOptionError: the folder is not writable.
        """
        if save_graph:
            _expect_room()
        frame = self.get_memory_timeline()
        figure = _figure(frame)
        if save_graph:
            _PLOT_PATH.parent.mkdir(exist_ok=True)
            with new_file(_PLOT_PATH, overwrite=True) as file:
                file.write(figure.to_html(include_plotlyjs=True).encode())
        figure.show()
        return frame


def _expect_room() -> None:
    if _PLOT_PATH.parent.exists():
        expect_writable(_PLOT_PATH, overwrite=True)
    else:
        expect_writable_folder(Path.cwd())


def _read(path: str) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Return the time, the signed bytes and the category of each event."""
    try:
        with native_source(path) as source:
            times, sizes, categories = _native.memory_events(source)
    except FileNotFoundError as error:
        message = f"{path} does not exist"
        raise TraceNotFoundError(message) from error
    except OSError as error:
        message = f"{path} cannot be read: {error}"
        raise UnreadableTraceError(message) from error
    except _native.NotATraceError as error:
        message = f"{path} is not a raw memory timeline: {error}"
        raise NotATraceError(message) from error
    if len(categories) and not 0 <= categories.min() <= categories.max() < len(CATEGORIES):
        message = f"{path} is not a raw memory timeline: it has categories outside 0 to {len(CATEGORIES) - 1}"
        raise NotATraceError(message)
    return times, sizes, categories


def _timeline(times: _Numbers, sizes: _Numbers, categories: _Numbers) -> dict[str, _Numbers]:
    """Add up the changes of each category; return the sums after the last change at each distinct time."""
    ends = np.flatnonzero(np.append(np.diff(times) != 0, np.ones(min(1, len(times)), np.bool_)))
    recorded = times[times >= 0]
    change_times = np.where(times < 0, recorded.min() if len(recorded) else 0, times)[ends]
    narrow = categories.astype(np.int8)
    by_category = {name: np.where(narrow == number, sizes, 0).cumsum()[ends] for number, name in enumerate(CATEGORIES)}
    return {"ts": change_times, **by_category, "Total": sizes.cumsum()[ends]}


def _figure(frame: pd.DataFrame) -> go.Figure:
    times = (frame["ts"] - frame["ts"].min()) / 1_000_000
    lines = [
        go.Scatter(x=times, y=frame[name] / _GIB, name=name, stackgroup="memory", line={"shape": "hv", "width": 0.5})
        for name in CATEGORIES
    ]
    axes = {"xaxis": {"title": {"text": "time (ms)"}}, "yaxis": {"title": {"text": "memory (GiB)"}}}
    return go.Figure(lines, layout={"template": template("light"), "title": {"text": "Memory by category"}, **axes})
