"""Which part of a recording a critical path is of, and where copies and graphs go, as the options say it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from holotrace.enrich.critical_path.path_graph import PathGraph
from holotrace.enrich.critical_path.window_activities import DATA_LOADING
from holotrace.enrich.job.job_time import origin_ns
from holotrace.errors import InvalidOptionError
from holotrace.export.critical_path_overlay import overlaid_path_name, write_critical_path_overlay
from holotrace.export.new_file import expect_writable
from holotrace.export.saved_path_graph import save_path_graph
from holotrace.locations import Location, expect_writable_folder
from holotrace.store.trace import RankTrace, Trace

_INSTANCE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_TIMES = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)-(\d{1,12}(?:\.\d{1,6})?)")
_NS_OF_A_MILLISECOND = 1_000_000


def parse_instance(text: str) -> int | tuple[int, int]:
    """Read which step or annotation is meant: `3`, or `3-5` for several in a row."""
    found = _INSTANCE.fullmatch(text)
    if found is None:
        message = f"{text!r} is no instance; write it like 3, or 3-5 for several in a row"
        raise typer.BadParameter(message)
    first, last = found.groups()
    return int(first) if last is None else (int(first), int(last))


def parse_times(text: str) -> tuple[int, int]:
    """Read a range of times in milliseconds such as `10-20.5`; return it in nanoseconds."""
    found = _TIMES.fullmatch(text)
    if found is None:
        message = f"{text!r} is no range of times; write it like 10-20.5, in milliseconds"
        raise typer.BadParameter(message)
    start, end = (round(float(part) * _NS_OF_A_MILLISECOND) for part in found.groups())
    return start, end


@dataclass(frozen=True)
class WindowOptions:
    """What `--annotation`, `--instance`, `--time-range-ms` and `--data-loading` say."""

    annotation: str | None
    instance: str | None
    time_range_ms: str | None
    data_loading: Sequence[str] | None

    def settings(self, trace: Trace) -> dict[str, Any]:
        """Return the arguments of `critical_path`; times count from the first event of the job."""
        settings: dict[str, Any] = {
            "annotation": self.annotation,
            "instance": None if self.instance is None else parse_instance(self.instance),
            "data_loading": tuple(self.data_loading or DATA_LOADING),
        }
        if self.time_range_ms is not None:
            start, end = parse_times(self.time_range_ms)
            origin = origin_ns(trace)
            settings["time_range_ns"] = (origin + start, origin + end)
        return settings


@dataclass(frozen=True)
class OutputOptions:
    """What `--overlay`, `--all-events`, `--all-edges`, `--save` and `--force` say."""

    overlay: Location | None
    all_events: bool
    all_edges: bool
    save: Location | None
    force: bool

    @property
    def are_wanted(self) -> bool:
        """Whether anything is to be written."""
        return self.overlay is not None or self.save is not None

    def check(self, trace: Trace) -> None:
        """Raise InvalidOptionError, before any work, where a file could not be written; make missing folders."""
        for folder in (each for each in (self.overlay, self.save) if each is not None):
            expect_writable_folder(folder if folder.exists() else folder.absolute().parent)
        paths = [path for each in trace.ranks.values() for path in self._paths(each).values()]
        if len(set(paths)) < len(paths):
            message = "files of several ranks have the same name, and so would their copies; write them one by one"
            raise InvalidOptionError(message)
        for path in paths:
            path.parent.mkdir(exist_ok=True)
            expect_writable(path, overwrite=self.force)

    def write(self, rank_trace: RankTrace, path_graph: PathGraph) -> Iterator[Location]:
        """Write what is wanted of a rank; yield the paths."""
        paths = self._paths(rank_trace)
        if "overlay" in paths:
            write_critical_path_overlay(
                rank_trace,
                path_graph,
                paths["overlay"],
                only_critical=not (self.all_events or self.all_edges),
                all_edges=self.all_edges,
                overwrite=self.force,
            )
            yield paths["overlay"]
        if "save" in paths:
            save_path_graph(rank_trace, path_graph, paths["save"], overwrite=self.force)
            yield paths["save"]

    def _paths(self, rank_trace: RankTrace) -> dict[str, Location]:
        overlay = None if self.overlay is None else self.overlay / overlaid_path_name(rank_trace.source)
        save = None if self.save is None else self.save / f"critical_path_rank{rank_trace.rank}.zip"
        return {name: path for name, path in (("overlay", overlay), ("save", save)) if path is not None}
