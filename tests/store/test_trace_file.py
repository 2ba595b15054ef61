"""`TraceFile` opens a trace file only when its data is needed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from holotrace.errors import InvalidOptionError
from holotrace.schema import TABLES, EventKind
from holotrace.store import trace_file
from holotrace.store.tables.arrow_tables import table_types
from holotrace.store.trace_file import TraceFile

OpenFile = Callable[..., TraceFile]
WriteTrace = Callable[..., Path]


class Recorder:
    """A progress display that records its calls."""

    def __init__(self) -> None:
        """Start without calls."""
        self.calls: list[tuple[str, object]] = []

    def start(self, total_bytes: int, description: str) -> None:
        """Record description and size."""
        self.calls.append((description, total_bytes))

    def advance(self, byte_count: int, /) -> None:
        """Record the number of bytes."""
        self.calls.append(("advance", byte_count))

    def finish(self) -> None:
        """Record the end of reading."""
        self.calls.append(("finish", None))


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_its_types(write_trace: WriteTrace, open_file: OpenFile, name: str, *, cache: bool) -> None:
    """Every table, empty or not, has the columns and types of the schema, with and without the cache."""
    path = write_trace("a.json", ["gemm"])
    for _ in range(2):
        assert open_file(path, cache=cache).table(name).schema == table_types(name)


def test_columns_have_the_requested_order(write_trace: WriteTrace, open_file: OpenFile) -> None:
    """Columns have the requested order, whichever columns were read before."""
    file = open_file(write_trace("a.json", ["gemm", "relu"]))
    assert file.table("events", ["start_ns"]).rows() == [(0,), (1_000,)]
    assert file.table("events", ["duration_ns", "start_ns"]).rows() == [(1_000, 0), (1_000, 1_000)]


@pytest.mark.parametrize(("few_events", "most_kept"), [(1_000, 1_000), (0, 1_000), (0, 0)])
def test_events_have_the_requested_kinds_and_names(
    write_trace: WriteTrace, open_file: OpenFile, monkeypatch: pytest.MonkeyPatch, few_events: int, most_kept: int
) -> None:
    """`events_of` returns the same events whether all, some or none of the file's columns are in memory."""
    monkeypatch.setattr(trace_file, "_FEW_EVENTS", few_events)
    monkeypatch.setattr(trace_file, "_MOST_KEPT_EVENTS", most_kept)
    file = open_file(write_trace("a.json", ["gemm", "relu"]))
    kernels = file.events_of([EventKind.KERNEL], ["start_ns", "name"])
    relu = kernels["name"][1:]
    assert kernels["start_ns"].to_list() == [0, 1_000]
    assert file.events_of([EventKind.KERNEL], ["start_ns"], relu).rows() == [(1_000,)]
    assert file.events_of([EventKind.KERNEL], ["start_ns"], relu + 1_000).is_empty()
    assert file.events_of([EventKind.MEMORY], ["start_ns"]).schema == {"start_ns": pl.Int64}


def test_unknown_columns_need_no_file(open_file: OpenFile, tmp_path: Path) -> None:
    """An unknown column name raises an error before the file is opened."""
    with pytest.raises(InvalidOptionError, match="no column 'dur'"):
        open_file(tmp_path / "missing.json").table("events", ["dur"])


def test_nothing_is_opened_before_it_is_needed(open_file: OpenFile, tmp_path: Path) -> None:
    """Creating a TraceFile for a missing path raises no error."""
    assert open_file(tmp_path / "missing.json").path == str(tmp_path / "missing.json")


def test_a_pickle_contains_no_data(
    write_trace: WriteTrace, open_file: OpenFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A pickled TraceFile has fewer than 1,000 bytes.

    After it is unpickled in another working folder, the TraceFile still opens the same file without using the cache.
    """
    path = write_trace("a.json", [f"kernel {number}" for number in range(1_000)])
    monkeypatch.chdir(tmp_path)
    file = open_file(Path(path.name), cache=False)
    file.table("events")
    pickled = pickle.dumps(file)
    monkeypatch.chdir("/")
    assert len(pickled) < 1_000
    assert pickle.loads(pickled).table("events").height == 1_000  # noqa: S301 -- the test pickled it
    assert not (tmp_path / "cache").exists()


def test_progress_counts_every_byte(write_trace: WriteTrace, open_file: OpenFile) -> None:
    """A progress display receives the file size, increments that add up to this size, and a final call.

    If the file is in the cache, the display is not called.
    """
    path = write_trace("a.json", ["gemm"])
    for _ in range(2):
        recorder = Recorder()
        open_file(path, progress=recorder).table("events")
        if recorder.calls:
            size = path.stat().st_size
            assert recorder.calls[0] == ("a.json", size)
            assert sum(step for name, step in recorder.calls if name == "advance" and isinstance(step, int)) == size
            assert recorder.calls[-1] == ("finish", None)
    assert recorder.calls == []


def test_an_interrupt_during_progress_stops_reading(
    write_trace: WriteTrace, open_file: OpenFile, cache_folder: Path
) -> None:
    """Ctrl-C during reading raises KeyboardInterrupt and leaves no cache entry."""

    class Interrupted(Recorder):
        """A progress display that simulates Ctrl-C."""

        def advance(self, byte_count: int, /) -> None:
            """Record the call, then raise KeyboardInterrupt."""
            super().advance(byte_count)
            raise KeyboardInterrupt

    progress = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        open_file(write_trace("a.json", ["gemm"]), progress=progress).table("events")
    assert progress.calls[-1] == ("finish", None)
    assert list(cache_folder.rglob("*.arrow")) == []


def test_a_forgotten_file_is_read_again(write_trace: WriteTrace, open_file: OpenFile) -> None:
    """After `forget`, reading the file again returns the same table."""
    file = open_file(write_trace("a.json", ["gemm"]))
    before = file.table("events")
    file.forget()
    assert file.table("events").equals(before)
