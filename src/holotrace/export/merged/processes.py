"""The processes of a rank, their names, and their new pids in a merged trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import polars as pl

from holotrace.drawing.names import printable
from holotrace.store.trace import RankTrace

Pid: TypeAlias = int | str
"""A pid as it appears in a rank's file: a number, or a string such as `Spans`."""

_LAST = 1 << 62
_FEWEST_PIDS = 1_000


class Process(NamedTuple):
    """A process of a rank: its pid in the file, and a name such as `GPU 0` or `python 4001`."""

    pid: Pid
    name: str
    sort_index: int


def processes(rank_trace: RankTrace) -> tuple[Process, ...]:
    """Return the processes of a rank in the order of the sort indexes in its file.

    Processes without events or counters are left out: profilers write names even for devices on which nothing ran.
    """
    tracks = rank_trace.table("tracks", ["process_id", "process_text"])
    texts = rank_trace.texts(tracks["process_text"])
    pids = [
        text if number is None else number
        for number, text in zip(tracks["process_id"].to_list(), texts.to_list(), strict=True)
    ]
    described = _described(rank_trace, pids)
    used = pl.concat([rank_trace.table(table, ["track_id"]) for table in ("events", "counters")])["track_id"].unique()
    names = dict.fromkeys(pids[track] for track in used.sort())
    known = [_process(pid, described.get(pid, {})) for pid in names if pid is not None]
    return tuple(sorted(known, key=lambda process: (process.sort_index, str(process.pid))))


def new_pids(rank: int, known: Sequence[Process], step: int) -> dict[Pid, int]:
    """Return {pid in the file: pid in the merged trace}; rank r has pids between r * `step` and (r + 1) * `step`.

    >>> new_pids(3, [Process(4001, "python 4001", 0), Process(0, "GPU 0", 1)], 1_000)
    {4001: 3001, 0: 3002}
    """
    return {process.pid: rank * step + number for number, process in enumerate(known, 1)}


def pid_step(counts: Iterable[int]) -> int:
    """Return the distance between the pids of consecutive ranks: a power of ten that is large enough for every rank.

    >>> pid_step([8, 12]), pid_step([8, 4_000])
    (1000, 10000)
    """
    step = _FEWEST_PIDS
    while step <= 2 * max(counts, default=0):
        step *= 10
    return step


def _process(pid: Pid, described: Mapping[str, str | int]) -> Process:
    label, name = (str(described.get(f"process_{what}") or "").strip() for what in ("labels", "name"))
    own = label if label.startswith("GPU") else f"{name or ('process' if isinstance(pid, int) else '')} {pid}".strip()
    return Process(pid, printable(own), int(described.get("process_sort_index", _LAST)))


def _described(rank_trace: RankTrace, pids: Sequence[Pid | None]) -> dict[Pid | None, dict[str, str | int]]:
    """Return, for each pid, {name of a metadata event: its value}."""
    table = rank_trace.table("metadata", ["track_id", "name", "value", "sort_index"])
    named = table.with_columns(rank_trace.texts(table[column]).alias(column) for column in ("name", "value"))
    described: dict[Pid | None, dict[str, str | int]] = {}
    for row in named.select("track_id", "name", pl.coalesce(pl.col("sort_index").cast(pl.String), "value")).iter_rows():
        track, name, value = row
        if value is not None:
            described.setdefault(pids[track], {})[name] = value
    return described
