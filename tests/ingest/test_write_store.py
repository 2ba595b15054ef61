"""A store gives the same tables and results as its traces, and never contains a partly written rank."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

import holotrace
from holotrace.catalogue import ANALYSES
from holotrace.errors import HolotraceError, InvalidOptionError, NotATraceError, UnreadableTraceError
from holotrace.execution.executor import InProcessExecutor
from holotrace.ingest import write_store
from holotrace.locations import drafted, located
from holotrace.schema import READER_VERSION, TABLES
from holotrace.store import job_store, store_files
from holotrace.store.job_store import is_store, read_contents
from holotrace.store.tables import parquet_tables
from holotrace.store.tables.checksums import sealed, unsealed
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder
from jobs import gpu_job

REAL = (
    "cupti",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            "amd_mi250",
            "cpu_only",
            "critical_path/event_sync",
            "ddp_gloo_4rank",
            "mtia_inference",
            "two_rank_128",
        )
    ),
)


def stored(trace: Trace, folder: Path) -> Trace:
    """Store a trace; open the store."""
    holotrace.write_store(trace, folder / "job.store")
    return holotrace.open_trace(folder / "job.store")


def outcome(analysis, trace: Trace) -> object:
    """Return the result or the error of an analysis."""
    try:
        return vars(analysis.compute(trace))
    except HolotraceError as error:
        return {"error": str(error)}


def assert_equal_results(analysis, first: Trace, second: Trace) -> None:
    """Check that all tables and findings are equal."""
    expected, actual = outcome(analysis, first), outcome(analysis, second)
    assert expected.keys() == actual.keys()
    for name, value in expected.items():
        if isinstance(value, pl.DataFrame):
            assert_frame_equal(actual[name], value)
        else:
            assert actual[name] == value


@pytest.mark.parametrize("name", REAL)
def test_a_store_gives_the_same_as_its_traces(name, real_traces, tmp_path) -> None:
    """For all kinds of devices, a store gives the same tables, headers, health and results as its traces."""
    trace = holotrace.open_trace(real_traces / name, cache=False)
    again = stored(trace, tmp_path)
    assert list(again.ranks) == list(trace.ranks)
    for rank, expected in trace.ranks.items():
        actual = again.ranks[rank]
        assert (actual.header, actual.health, actual.source) == (expected.header, expected.health, expected.source)
        for table in TABLES:
            assert_frame_equal(actual.table(table), expected.table(table))
    for analysis in ANALYSES:
        assert_equal_results(analysis, trace, again)


@pytest.mark.slow
def test_workers_read_the_store(tmp_path) -> None:
    """Worker processes can read the ranks of a store; the result is the same as without a store."""
    trace = stored(gpu_job().build(), tmp_path)
    with holotrace.processes(2) as executor:
        result = holotrace.temporal_breakdown(trace, executor=executor)
    assert_frame_equal(result.per_device, holotrace.temporal_breakdown(gpu_job().build()).per_device)


def is_kernel(rank_trace) -> object:
    """Select the kernels."""
    return (rank_trace.table("events", ["kind"])["kind"] == holotrace.EventKind.KERNEL).to_numpy()


def test_events_of_a_store_can_be_selected(tmp_path) -> None:
    """`where` selects the same events in a store as in its traces."""
    trace = gpu_job().build()
    chosen = stored(trace, tmp_path).where(is_kernel)
    assert_frame_equal(chosen.ranks[0].table("events"), trace.where(is_kernel).ranks[0].table("events"))


def test_events_of_a_store_can_be_chosen_by_name(tmp_path) -> None:
    """Selecting events by kind and name gives the same events from a store as from memory."""
    trace = gpu_job().build()
    gemm = (trace.ranks[1].strings == "gemm").arg_true().cast(pl.UInt32)
    in_store = stored(trace, tmp_path).ranks[1]
    of_store = (in_store.strings == "gemm").arg_true().cast(pl.UInt32)
    kinds, columns = [holotrace.EventKind.KERNEL], ["start_ns", "duration_ns"]

    expected = trace.ranks[1].events_of(kinds, columns, names=gemm)
    assert expected.height == 1
    assert_frame_equal(in_store.events_of(kinds, columns, names=of_store), expected)
    assert in_store.events_of(kinds, columns, names=of_store.clear()).is_empty()


def test_other_engines_can_read_a_store(tmp_path) -> None:
    """DuckDB, Polars and pandas can read a store: Hive partitions of Parquet files with dictionary-encoded strings."""
    stored(gpu_job().build(), tmp_path)
    pattern = str(tmp_path / "job.store" / "rank=*" / "events.parquet")
    rows = duckdb.read_parquet(pattern, hive_partitioning=True).filter("rank = 1").project("rank, kind, name")
    assert rows.fetchall() == [(1, "kernel", "gemm")]
    scanned = pl.scan_parquet(pattern, hive_partitioning=True)
    assert scanned.filter(pl.col("rank") == 1).select("kind", "name").collect().rows() == [("kernel", "gemm")]
    file = tmp_path / "job.store" / "rank=1" / "events.parquet"
    assert pd.read_parquet(file)["name"].tolist() == ["gemm"]
    encodings = {column.path_in_schema: column.encodings for column in _columns(pq.ParquetFile(file))}
    assert "RLE_DICTIONARY" in encodings["name"]


def _columns(file: pq.ParquetFile) -> list:
    group = file.metadata.row_group(0)
    return [group.column(index) for index in range(group.num_columns)]


def test_long_tables_have_several_row_groups(tmp_path, monkeypatch) -> None:
    """A table of more than 100 rows, written in batches of 7, has several row groups in the right order."""
    monkeypatch.setattr(parquet_tables, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(parquet_tables, "_ROWS_OF_A_GROUP", 14)
    builder = TraceBuilder()
    for start in range(100):
        builder.kernel(f"kernel {start % 9}", start_us=start, duration_us=1)
    trace = builder.build()
    again = stored(trace, tmp_path)
    assert pq.ParquetFile(tmp_path / "job.store" / "rank=0" / "events.parquet").metadata.num_row_groups > 1
    assert_frame_equal(again.ranks[0].table("events"), trace.ranks[0].table("events"))


def test_a_second_run_changes_nothing(tmp_path) -> None:
    """Writing a store again from unchanged traces changes neither bytes nor time stamps."""
    gpu_job().write(tmp_path / "traces")
    holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    before = snapshot(tmp_path / "job.store")
    done = holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    assert ([rank.rank for rank in done.written], [rank.rank for rank in done.unchanged]) == ([], [0, 1])
    assert snapshot(tmp_path / "job.store") == before


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the modification time and content of every file."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_changed_file_is_read_again(tmp_path) -> None:
    """After the file of rank 1 changes, only rank 1 is written again."""
    paths = gpu_job().write(tmp_path / "traces")
    holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    TraceBuilder().rank(1).kernel("other", start_us=0, duration_us=3).write(tmp_path / "new")
    (new,) = (tmp_path / "new").iterdir()
    shutil.move(new, paths[1])
    done = holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    assert ([rank.rank for rank in done.written], [rank.rank for rank in done.unchanged]) == ([1], [0])
    again = holotrace.open_trace(tmp_path / "job.store").ranks[1]
    assert again.texts(again.table("events")["name"]).to_list() == ["other"]


def test_ranks_can_be_added(tmp_path) -> None:
    """Storing rank 0 in a store that has rank 1 keeps rank 1."""
    gpu_job().write(tmp_path / "traces")
    for rank in (1, 0):
        holotrace.write_store(holotrace.open_trace(tmp_path / "traces", ranks=[rank]), tmp_path / "job.store")
    assert list(holotrace.open_trace(tmp_path / "job.store").ranks) == [0, 1]


def test_two_jobs_do_not_mix(tmp_path) -> None:
    """Storing rank 0 of another job raises an error that names both files; `overwrite=True` replaces the old rank."""
    gpu_job().write(tmp_path / "first")
    TraceBuilder().kernel("other", start_us=0, duration_us=3).write(tmp_path / "second")
    holotrace.write_store(holotrace.open_trace(tmp_path / "first"), tmp_path / "job.store")
    second = holotrace.open_trace(tmp_path / "second")
    with pytest.raises(InvalidOptionError, match=r"already has rank 0 from .*first.*, not from .*second"):
        holotrace.write_store(second, tmp_path / "job.store")
    assert len(holotrace.write_store(second, tmp_path / "job.store", overwrite=True).written) == 1
    assert list(holotrace.open_trace(tmp_path / "job.store").ranks) == [0, 1]


def test_an_unreadable_file_is_skipped_and_listed(tmp_path) -> None:
    """With on_error="skip", the store has the readable rank and lists the unreadable file."""
    paths = gpu_job().write(tmp_path / "traces")
    trace = holotrace.open_trace(tmp_path / "traces", on_error="skip")
    paths[1].write_text('{"traceEvents": 3}')
    done = holotrace.write_store(trace, tmp_path / "job.store")
    assert [rank.rank for rank in done.written] == [0]
    again = holotrace.open_trace(tmp_path / "job.store")
    assert (list(again.ranks), [Path(file.path).name for file in again.skipped]) == ([0], [paths[1].name])
    assert not (tmp_path / "job.store" / "rank=1").exists()


KILLED = """
import sys, time
import holotrace
from holotrace.store import rank_writing

write = rank_writing._write_table
tables = []

def slow(name, *rest):
    tables.append(name)
    if tables.count("kernels") == 2:
        rest[-1].write(b"PAR1")
        rest[-1].flush()
        print("writing", flush=True)
        time.sleep(60)
    return write(name, *rest)

rank_writing._write_table = slow
holotrace.write_store(holotrace.open_trace(sys.argv[1]), sys.argv[2])
"""


def test_a_killed_run_leaves_no_partial_rank(tmp_path) -> None:
    """If a run is killed while it writes rank 1, the store reports it as missing; the next run writes only rank 1."""
    gpu_job().write(tmp_path / "traces")
    store = tmp_path / "job.store"
    command = [sys.executable, "-c", KILLED, str(tmp_path / "traces"), str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 -- the test's own script
        assert process.stdout.readline() == "writing\n"
        os.kill(process.pid, signal.SIGKILL)
    assert (store / "rank=0" / "_holotrace_rank.json").is_file()
    assert not (store / "rank=1").exists()
    for path in store.glob("rank=*/*.parquet"):
        pq.ParquetFile(path)  # every table that has its final name is complete
    with pytest.raises(
        UnreadableTraceError, match=r"is unfinished: 1 rank is complete, but these ranks are missing: 1"
    ):
        holotrace.open_trace(store)
    done = holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), store)
    assert ([rank.rank for rank in done.written], [rank.rank for rank in done.unchanged]) == ([1], [0])
    assert sorted(path.name for path in store.iterdir()) == [
        "_holotrace_ranks",
        "_holotrace_store.json",
        "rank=0",
        "rank=1",
    ]
    assert_frame_equal(
        holotrace.temporal_breakdown(holotrace.open_trace(store)).per_device,
        holotrace.temporal_breakdown(gpu_job().build()).per_device,
    )


@pytest.mark.parametrize("damage", [b"", b"PAR1 no table PAR1"])
def test_a_damaged_table_is_one_clear_error(damage, tmp_path) -> None:
    """The error for a damaged table names the file and `holotrace ingest`; the next ingest writes this rank again."""
    gpu_job().write(tmp_path / "traces")
    holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    broken = tmp_path / "job.store" / "rank=0" / "events.parquet"
    broken.write_bytes(damage)
    with pytest.raises(
        UnreadableTraceError, match=r"rank=0/events.parquet cannot be read: .* run holotrace ingest again"
    ):
        holotrace.temporal_breakdown(holotrace.open_trace(tmp_path / "job.store"))
    done = holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    assert [rank.rank for rank in done.written] == [0]
    holotrace.temporal_breakdown(holotrace.open_trace(tmp_path / "job.store"))


@pytest.mark.slow
def test_a_changed_byte_of_any_file_is_one_clear_error(tmp_path) -> None:
    """If a byte of any file in a store changes, the error names the file, and the next run repairs it."""
    trace, store = TraceBuilder().kernel("gemm", start_us=0, duration_us=3).build(), tmp_path / "job.store"
    holotrace.write_store(trace, store)
    before = everything(holotrace.open_trace(store))
    for file in sorted(path for path in store.rglob("*") if path.is_file()):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 4
        file.write_bytes(content)
        with pytest.raises(UnreadableTraceError, match=rf"{file.name}.* run holotrace ingest again"):
            everything(holotrace.open_trace(store))
        holotrace.write_store(trace, store)
        assert everything(holotrace.open_trace(store)) == before


def everything(trace: Trace) -> list[object]:
    """Return all tables, headers and health records of a job."""
    return [
        [
            {name: rank_trace.table(name).to_dict(as_series=False) for name in TABLES},
            rank_trace.header,
            rank_trace.health,
        ]
        for rank_trace in trace.ranks.values()
    ]


@pytest.mark.parametrize("address", ["{folder}/job.store", "memory://{folder}/job.store"])
def test_sql_refuses_damaged_files(address, tmp_path) -> None:
    """A query on a table with a changed byte fails, because the checksum is verified before DuckDB reads the table."""
    store = located(address.format(folder=tmp_path.name if "memory" in address else tmp_path))
    holotrace.write_store(gpu_job().build(), store)
    kernels = store / "rank=1" / "kernels.parquet"
    content = bytearray(kernels.read_bytes())
    content[len(content) // 2] ^= 1
    with drafted(kernels) as file:
        file.write(content)
    with pytest.raises(
        UnreadableTraceError, match=r"rank=1/kernels.parquet cannot be read: its checksum does not match"
    ):
        holotrace.sql(holotrace.open_trace(store), "SELECT count(*) FROM stored.kernels")
    assert holotrace.sql(holotrace.open_trace(store), "SELECT count(*) FROM stored.strings").height == 1


def test_a_rank_that_is_written_again_does_not_mix(tmp_path) -> None:
    """If an open rank is written again, reading it raises an error instead of mixing columns of two versions."""
    paths = gpu_job().write(tmp_path / "traces")
    holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    before = holotrace.open_trace(tmp_path / "job.store").ranks[0]
    before.table("events", ["start_ns"])
    TraceBuilder().kernel("other", start_us=0, duration_us=3).write(tmp_path / "new")
    shutil.move(next((tmp_path / "new").iterdir()), paths[0])
    holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    with pytest.raises(UnreadableTraceError, match=r"rank 0 of .*job\.store was written again while it was in use"):
        before.table("events", ["name"])


def test_two_jobs_that_start_at_once_do_not_mix(tmp_path, monkeypatch) -> None:
    """If two jobs write to one empty store, the job that finishes later gets an error; the other job's ranks stay."""
    gpu_job().write(tmp_path / "first")
    gpu_job().write(tmp_path / "second")
    store = tmp_path / "job.store"
    write = write_store._write

    def write_late(*arguments: object, **options: object) -> object:
        """Let the other job write all its ranks before this job writes."""
        monkeypatch.setattr(write_store, "_write", write)
        holotrace.write_store(holotrace.open_trace(tmp_path / "first"), store)
        return write(*arguments, **options)

    monkeypatch.setattr(write_store, "_write", write_late)
    with pytest.raises(InvalidOptionError, match=r"already has rank 0 from .*first.*, not from .*second"):
        holotrace.write_store(holotrace.open_trace(tmp_path / "second"), store)
    holotrace.write_store(holotrace.open_trace(tmp_path / "first"), store)
    assert {rank.source for rank in read_contents(store).ranks.values()} == {
        str(path) for path in (tmp_path / "first").iterdir()
    }


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_store_has_the_permissions_of_its_traces(mode, tmp_path) -> None:
    """Everyone who may read the traces may also read the store made from them, as far as the umask allows."""
    for path in gpu_job().write(tmp_path / "traces"):
        path.chmod(mode)
    before = os.umask(0o002)
    try:
        holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    finally:
        os.umask(before)
    kept = [path for path in (tmp_path / "job.store").rglob("*") if path.name != "_holotrace_store.json"]
    files = {stat.S_IMODE(path.stat().st_mode) for path in kept if path.is_file()}
    folders = {stat.S_IMODE(path.stat().st_mode) for path in kept if path.name.startswith("rank=")}
    assert (files, folders) == ({mode}, {mode | (mode & 0o444) >> 2})


def test_a_rank_is_synced_before_it_is_renamed(tmp_path, monkeypatch) -> None:
    """A rank's files and folder are synced before the folder is renamed, so that they survive a power failure.

    Then the store's folder is synced, and finally the rank's record is written.
    """
    calls: list[str] = []
    sync, rename, replace = os.fsync, Path.rename, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: calls.append(named(number)) or sync(number))
    monkeypatch.setattr(Path, "rename", lambda path, to: calls.append(f"to {to.name}") or rename(path, to))
    monkeypatch.setattr(Path, "replace", lambda path, to: calls.append(f"to {to.name}") or replace(path, to))
    holotrace.write_store(TraceBuilder().kernel("gemm", start_us=0, duration_us=3).build(), tmp_path / "job.store")
    renamed, recorded = calls.index("to rank=0"), len(calls) - calls[::-1].index("to 0.json")
    synced = {*calls[:renamed]}
    assert {path.name for path in (tmp_path / "job.store" / "rank=0").iterdir()} <= synced
    assert any(name.startswith(".tmp-") for name in synced)
    assert "job.store" in calls[renamed:recorded]


def named(number: int) -> str:
    """Return the name of the open file with the given descriptor."""
    return Path(f"/proc/self/fd/{number}").readlink().name


def test_flipped_bytes_are_one_clear_error(tmp_path) -> None:
    """Reading a table with 196 zeroed bytes raises an error."""
    stored(gpu_job().build(), tmp_path)
    broken = tmp_path / "job.store" / "rank=0" / "events.parquet"
    content = bytearray(broken.read_bytes())
    content[4:200] = bytes(196)
    broken.write_bytes(content)
    with pytest.raises(UnreadableTraceError, match="cannot be read"):
        holotrace.temporal_breakdown(holotrace.open_trace(tmp_path / "job.store"))


@pytest.mark.parametrize("name", ["_holotrace_store.json", "_holotrace_ranks/0.json", "rank=0/_holotrace_rank.json"])
@pytest.mark.parametrize("content", ["", "[]", '{"format": "holotrace store"}', '{"ranks": [{}]}'])
def test_a_damaged_manifest_is_one_clear_error(name, content, tmp_path) -> None:
    """The error for a damaged manifest or record says to run `holotrace ingest`, which repairs it."""
    gpu_job().write(tmp_path / "traces")
    holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    (tmp_path / "job.store" / name).write_text(content)
    with pytest.raises(UnreadableTraceError, match=r"is damaged; run holotrace ingest again"):
        holotrace.temporal_breakdown(holotrace.open_trace(tmp_path / "job.store"))
    done = holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    assert len(done.written) == (name == "rank=0/_holotrace_rank.json")
    assert list(holotrace.open_trace(tmp_path / "job.store").ranks) == [0, 1]


@pytest.mark.parametrize(
    ("name", "value"), [("rank", "../../elsewhere"), ("rank", -1), ("rank", 2**31), ("rank", None), ("source", 3)]
)
def test_an_invalid_rank_makes_a_store_damaged(name, value, tmp_path) -> None:
    """A record with an invalid rank, such as a path, raises an error, because a store may come from a stranger."""
    stored(gpu_job().build(), tmp_path)
    state = tmp_path / "job.store" / "_holotrace_ranks" / "0.json"
    state.write_bytes(sealed(unsealed(state.read_bytes()) | {name: value}))
    with pytest.raises(UnreadableTraceError, match="is damaged"):
        holotrace.open_trace(tmp_path / "job.store")


def test_a_store_of_another_version_is_an_error(tmp_path, monkeypatch) -> None:
    """Opening a store written by another version raises an error, and the next run writes both ranks again."""
    gpu_job().write(tmp_path / "traces")
    holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    monkeypatch.setattr(store_files, "VERSION", store_files.VERSION + 1)
    with pytest.raises(NotATraceError, match="was written by another version of holotrace; run holotrace ingest again"):
        holotrace.open_trace(tmp_path / "job.store")
    assert len(holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store").written) == 2


def test_a_newer_reader_reads_again(tmp_path, monkeypatch) -> None:
    """A store made by an older reader can be opened, but the next `write_store` by a newer one rewrites both ranks."""
    gpu_job().write(tmp_path / "traces")
    holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    for module in (store_files, job_store):
        monkeypatch.setattr(module, "READER_VERSION", READER_VERSION + 1)
    holotrace.temporal_breakdown(holotrace.open_trace(tmp_path / "job.store"))
    assert len(holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store").written) == 2


def test_only_new_folders_become_stores(tmp_path) -> None:
    """Writing a store to a folder with other files, or to the path of a file, raises an error."""
    gpu_job().write(tmp_path / "traces")
    (tmp_path / "notes.txt").write_text("mine")
    for existing in (tmp_path / "traces", tmp_path / "notes.txt"):
        with pytest.raises(InvalidOptionError, match="already exists and is not a holotrace store; name a new folder"):
            holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), existing)


class Overtaken(InProcessExecutor):
    """An executor that starts a second run, which stores the other rank before the first run finishes."""

    def __init__(self, other) -> None:
        self.other = other

    def submit(self, fn, /, *args, **kwargs) -> Future:
        """Run the task `fn`; after the first task, also start the second run and wait until it finishes."""
        future = super().submit(fn, *args, **kwargs)
        if self.other:
            other, self.other = self.other, None
            other()
        return future


def test_runs_that_write_different_ranks_of_a_store(tmp_path) -> None:
    """Two runs that each store one rank, as in a job array, leave both ranks in the store."""
    gpu_job().write(tmp_path / "traces")
    store = tmp_path / "job.store"
    first, second = (holotrace.open_trace(tmp_path / "traces", ranks=[rank]) for rank in (0, 1))
    holotrace.write_store(first, store, executor=Overtaken(lambda: holotrace.write_store(second, store)))
    assert list(holotrace.open_trace(store).ranks) == [0, 1]
    assert len(holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), store).unchanged) == 2


def test_a_repaired_file_is_no_longer_skipped(tmp_path) -> None:
    """When a skipped file becomes readable, the next run stores its rank and no longer lists it as skipped."""
    paths = gpu_job().write(tmp_path / "traces")
    whole = paths[1].read_bytes()
    trace = holotrace.open_trace(tmp_path / "traces", on_error="skip")
    paths[1].write_text('{"traceEvents": 3}')
    assert len(holotrace.write_store(trace, tmp_path / "job.store").contents.skipped) == 1
    paths[1].write_bytes(whole)
    done = holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    assert ([rank.rank for rank in done.written], done.contents.skipped) == ([1], ())


def no_room(*_: object) -> int:
    """Raise the operating system's error for a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_a_full_disk_ends_the_work(on_error, tmp_path, monkeypatch) -> None:
    """A full disk raises an error even with on_error="skip", and the store stays unfinished."""
    gpu_job().write(tmp_path / "traces")
    trace = holotrace.open_trace(tmp_path / "traces", on_error=on_error)
    monkeypatch.setattr(parquet_tables._Written, "write", no_room)
    with pytest.raises(InvalidOptionError, match=r"job.store cannot be written: .*No space left on device"):
        holotrace.write_store(trace, tmp_path / "job.store")
    monkeypatch.undo()
    with pytest.raises(UnreadableTraceError, match="is unfinished"):
        holotrace.open_trace(tmp_path / "job.store")


def test_a_store_that_appears_meanwhile_is_used(tmp_path, monkeypatch) -> None:
    """If another run creates the store after this run has looked for it, the store gets the ranks of both runs."""
    gpu_job().write(tmp_path / "traces")
    first, second = (holotrace.open_trace(tmp_path / "traces", ranks=[rank]) for rank in (0, 1))
    looks: list[Path] = []

    def look(store: Path) -> bool:
        looks.append(store)
        if len(looks) > 1:
            return is_store(store)
        holotrace.write_store(first, store)
        return False

    monkeypatch.setattr(write_store, "is_store", look)
    holotrace.write_store(second, tmp_path / "job.store")
    assert list(holotrace.open_trace(tmp_path / "job.store").ranks) == [0, 1]


class OnAnotherMachine(InProcessExecutor):
    """An executor whose workers cannot see a folder on the caller's machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def submit(self, fn, /, *args, **kwargs) -> Future:
        """Move the folder away while the task runs."""
        away = self.folder.with_name("away")
        if self.folder.exists():
            self.folder.rename(away)
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            if away.exists():
                away.rename(self.folder)


def test_workers_that_do_not_see_the_store(tmp_path) -> None:
    """If workers cannot see the store's folder, an error is raised, and no rank is written elsewhere."""
    store = tmp_path / "job.store"
    with pytest.raises(InvalidOptionError, match=r"does not see .*job.store; name a folder that all machines share"):
        holotrace.write_store(gpu_job().build(), store, executor=OnAnotherMachine(store))
    assert sorted(path.name for path in store.iterdir()) == ["_holotrace_ranks", "_holotrace_store.json"]


def test_a_store_or_a_selection_cannot_be_stored(tmp_path) -> None:
    """Storing a trace that was opened from a store, or a selection of events, raises an error and creates no folder."""
    again = stored(gpu_job().build(), tmp_path)
    with pytest.raises(InvalidOptionError, match="comes from a store; to copy the store, copy its folder"):
        holotrace.write_store(again, tmp_path / "second.store")
    with pytest.raises(InvalidOptionError, match="has a selection of events"):
        holotrace.write_store(gpu_job().build().where(is_kernel), tmp_path / "second.store")
    assert not (tmp_path / "second.store").exists()


@pytest.mark.slow
def test_a_store_behind_a_url(tmp_path) -> None:
    """A store at a URL gives the same results as its traces, accepts SQL, and can be overwritten."""
    trace = gpu_job().build()
    address = f"memory://{tmp_path.name}/job.store"
    assert len(holotrace.write_store(trace, address).written) == 2
    again = holotrace.open_trace(address)
    for analysis in ANALYSES:
        assert_equal_results(analysis, trace, again)
    assert holotrace.sql(
        again, "SELECT rank, count(*) AS kernels FROM stored.kernels GROUP BY rank ORDER BY rank"
    ).rows() == [
        (0, 3),
        (1, 1),
    ]
    assert len(holotrace.write_store(gpu_job().build(), address, overwrite=True).written) == 2


def test_writing_a_store_does_not_fill_the_cache(tmp_path, monkeypatch) -> None:
    """Writing a store adds no entry to the cache."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    gpu_job().write(tmp_path / "traces")
    holotrace.write_store(holotrace.open_trace(tmp_path / "traces"), tmp_path / "job.store")
    assert not list((tmp_path / "cache").rglob("*.arrow"))
