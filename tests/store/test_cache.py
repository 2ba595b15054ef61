"""An entry of the cache on disk is complete or missing, whatever other processes do."""

from __future__ import annotations

import gzip
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holotrace import _native
from holotrace.errors import InvalidOptionError, UnreadableTraceError
from holotrace.ingest.kineto import KinetoReader
from holotrace.schema import READER_VERSION, TABLES
from holotrace.store import trace_file
from holotrace.store.cache import (
    BESIDE_NAME,
    DEFAULT_LIMIT_BYTES,
    LIMIT_VARIABLE,
    Cache,
    CacheOption,
    Entry,
    Reading,
    user_cache_folder,
)
from holotrace.store.cache import entry as cache_entry
from holotrace.store.cache import room as cache_room
from holotrace.store.tables.arrow_tables import arrow_file
from holotrace.store.tables.checksums import sealed, unsealed
from holotrace.store.trace_file import TraceFile

OpenFile = Callable[..., TraceFile]
WriteTrace = Callable[..., Path]
DAY_S = 86_400


class CountingReader:
    """The real reader, but it counts its calls."""

    def __init__(self) -> None:
        """Start with no calls."""
        self.reads = 0
        self.hashes = 0

    def read(self, path: str, folder: Path | None, progress: Any) -> Reading:
        """Count the call, then read the file."""
        self.reads += 1
        return KinetoReader().read(path, folder, progress)

    def content_hash(self, path: str) -> str:
        """Count the call, then hash the file."""
        self.hashes += 1
        return KinetoReader().content_hash(path)


@pytest.fixture
def reader() -> CountingReader:
    """Return a reader that counts its calls."""
    return CountingReader()


def names_in(path: Path, reader: Any, *, cache: CacheOption = True) -> list[str]:
    """Open the trace again; return the names of its kernels."""
    file = TraceFile(str(path), reader, cache=cache)
    return file.table("strings")["text"].gather(file.table("events", ["name"])["name"]).to_list()


def entries_in(folder: Path) -> list[Path]:
    """Return the folders of all entries and leftovers in a cache."""
    return sorted(folder.glob("*/*"))


@pytest.fixture
def exact_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust even recent time stamps, because a test cannot make a file's ctime older."""
    monkeypatch.setattr(cache_entry, "_TIMESTAMP_RESOLUTION_NS", 0)


def make_settled(path: Path, age_s: float = 100) -> None:
    """Set the time stamp of a file to `age_s` seconds ago; the cache trusts time stamps that are this old."""
    time_s = time.time() - age_s
    os.utime(path, (time_s, time_s))


@pytest.mark.usefixtures("exact_clock")
def test_the_second_opening_reads_the_cache(write_trace: WriteTrace, reader: CountingReader) -> None:
    """An unchanged trace is read only once; the cache returns the same tables, header and health."""
    path = write_trace("a.json", ["gemm", "relu"], distributedInfo={"rank": 3})
    make_settled(path)
    first, second = (TraceFile(str(path), reader) for _ in range(2))
    for name in TABLES:
        assert first.table(name).equals(second.table(name))
    assert (first.header, first.health) == (second.header, second.health)
    assert first.health.row_counts["events"] == 2
    assert (reader.reads, reader.hashes) == (1, 0)


def test_an_entry_has_a_manifest_and_every_table(
    write_trace: WriteTrace, open_file: OpenFile, cache_folder: Path
) -> None:
    """An entry is named after content hash and reader version, and has a manifest and one file per table."""
    path = write_trace("a.json", ["gemm"])
    health = open_file(path).health
    (entry,) = entries_in(cache_folder)
    assert entry.name == f"{health.content_hash}-r{READER_VERSION}"
    assert {file.name for file in entry.iterdir()} == {"manifest.json"} | {f"{name}.arrow" for name in TABLES}


def test_a_changed_trace_is_read_again(write_trace: WriteTrace, reader: CountingReader, cache_folder: Path) -> None:
    """After a trace has changed, it is read again, and the new entry replaces the old one."""
    path = write_trace("a.json", ["gemm"])
    make_settled(path, 200)
    assert names_in(path, reader) == ["gemm"]
    write_trace("a.json", ["gemm", "relu"])
    make_settled(path, 100)
    assert names_in(path, reader) == ["gemm", "relu"]
    assert len(entries_in(cache_folder)) == 1


def test_a_change_within_the_resolution_of_time_stamps_is_noticed(
    write_trace: WriteTrace, reader: CountingReader
) -> None:
    """A file that is rewritten right after it was read is read again, even if size and time stamp are the same."""
    path = write_trace("a.json", ["gemm"])
    before = path.stat()
    assert names_in(path, reader) == ["gemm"]
    write_trace("a.json", ["relu"])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert names_in(path, reader) == ["relu"]


@pytest.mark.usefixtures("exact_clock")
def test_a_touched_trace_is_hashed_once_and_not_read(write_trace: WriteTrace, reader: CountingReader) -> None:
    """If a file has a new time stamp but the same content, it is hashed once and not read again."""
    path = write_trace("a.json", ["gemm"])
    make_settled(path, 200)
    names_in(path, reader)
    make_settled(path, 100)
    assert names_in(path, reader) == names_in(path, reader) == ["gemm"]
    assert (reader.reads, reader.hashes) == (1, 1)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.usefixtures("exact_clock")
def test_other_content_of_the_same_size_and_time_is_noticed(
    write_trace: WriteTrace, reader: CountingReader, *, replaced: bool
) -> None:
    """A file that was rewritten or replaced, with the same size and time stamp, is read again."""
    path = write_trace("a.json", ["gemm"])
    make_settled(path, 100)
    before = path.stat()
    assert names_in(path, reader) == ["gemm"]
    other = write_trace("b.json" if replaced else "a.json", ["relu"])
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert names_in(path, reader) == ["relu"]


def test_another_schema_or_reader_version_is_rebuilt(
    write_trace: WriteTrace, reader: CountingReader, cache_folder: Path
) -> None:
    """If an entry has another schema or reader version, the trace is read again."""
    path = write_trace("a.json", ["gemm"])
    make_settled(path)
    for key, value in {"reader_version": READER_VERSION + 1, "schema": "another"}.items():
        names_in(path, reader)
        (entry,) = entries_in(cache_folder)
        manifest = unsealed((entry / "manifest.json").read_bytes())
        (entry / "manifest.json").write_bytes(sealed(manifest | {key: value}))
        reader.reads = 0
        assert names_in(path, reader) == ["gemm"]
        assert reader.reads == 1


@pytest.mark.parametrize(
    "damage",
    ["no manifest", "manifest cut", "manifest nonsense", "no table", "table cut", "table zeroed", "folder emptied"],
)
def test_a_damaged_entry_is_rebuilt(
    write_trace: WriteTrace, reader: CountingReader, cache_folder: Path, damage: str
) -> None:
    """An entry with a damaged manifest or damaged tables is rebuilt once and is then complete."""
    path = write_trace("a.json", ["gemm"])
    make_settled(path)
    names_in(path, reader)
    (entry,) = entries_in(cache_folder)
    damage_entry(entry, damage)
    assert names_in(path, reader) == ["gemm"]
    assert names_in(path, reader) == ["gemm"]
    assert reader.reads == 2
    assert Entry.load(entry)


def damage_entry(entry: Path, damage: str) -> None:
    """Damage an entry; `damage` names the way."""
    manifest, events = entry / "manifest.json", arrow_file(entry, "events")
    size = events.stat().st_size
    if damage == "no manifest":
        manifest.unlink()
    elif damage == "manifest cut":
        manifest.write_bytes(manifest.read_bytes()[:50])
    elif damage == "manifest nonsense":
        manifest.write_text('{"tables": 7, "stamp": []}', encoding="utf-8")
    elif damage == "no table":
        events.unlink()
    elif damage == "table cut":
        os.truncate(events, size // 2)
    elif damage == "table zeroed":
        events.write_bytes(bytes(size))
    else:
        for file in entry.iterdir():
            file.unlink()


@pytest.mark.slow
def test_a_changed_byte_is_noticed_anywhere(
    write_trace: WriteTrace, reader: CountingReader, cache_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If three bytes in any file of an entry change, the entry is rebuilt, and a warning names the file."""
    path = write_trace("a.json", ["gemm", "relu"], distributedInfo={"rank": 3})
    before = everything_in(path, reader)
    (entry,) = entries_in(cache_folder)
    files = sorted(entry.iterdir())
    trials = [
        (file, at / 7) for file in files for at in range(8 if file.name in ("events.arrow", "manifest.json") else 1)
    ]
    for file, fraction in trials:
        content = bytearray(file.read_bytes())
        at = min(int(fraction * len(content)), len(content) - 1)
        content[at : at + 3] = bytes(byte ^ 0x11 for byte in content[at : at + 3])
        file.write_bytes(content)
        caplog.clear()
        reader.reads = 0
        assert everything_in(path, reader) == before, (file, fraction)
        assert reader.reads == 1, (file, fraction)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert file.name in caplog.text


def everything_in(path: Path, reader: Any) -> list[object]:
    """Return all tables, the header and the health record of a trace."""
    file = TraceFile(str(path), reader)
    return [*(file.table(name).to_dict(as_series=False) for name in TABLES), file.header, file.health]


@pytest.fixture
def column_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read small files column by column, as the library otherwise does only for large files."""
    monkeypatch.setattr(trace_file, "_FEW_EVENTS", 0)


@pytest.mark.slow
@pytest.mark.usefixtures("column_by_column")
def test_only_columns_that_are_read_are_checked(
    write_trace: WriteTrace, reader: CountingReader, cache_folder: Path
) -> None:
    """Damage in a column is noticed only when the column is read."""
    path = write_trace("a.json", ["gemm"])
    make_settled(path)
    TraceFile(str(path), reader).table("events", ["start_ns"])
    (entry,) = entries_in(cache_folder)
    damage_column(arrow_file(entry, "events"), "duration_ns")
    file = TraceFile(str(path), reader)
    assert file.table("events", ["start_ns"]).to_series().to_list() == [0]
    assert reader.reads == 1
    assert file.events_of([6], ["duration_ns"]).to_series().to_list() == [1_000]
    assert reader.reads == 2


def damage_column(file: Path, name: str) -> None:
    """Change one byte of the file, so that only the column `name` is damaged."""
    whole, index = file.read_bytes(), [column.name for column in TABLES["events"]].index(name)
    before = _native.arrow_checksums(file)
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with suppress(OSError):
            structure, columns = _native.arrow_checksums(file)
            if structure == before[0] and columns[index] != before[1][index]:
                return


@pytest.mark.usefixtures("column_by_column")
def test_an_entry_damaged_while_open_is_rebuilt(
    write_trace: WriteTrace, reader: CountingReader, cache_folder: Path
) -> None:
    """If the cache is cleared while a trace is open, the trace is read again."""
    path = write_trace("a.json", ["gemm"])
    make_settled(path)
    file = TraceFile(str(path), reader)
    assert file.table("events", ["start_ns"]).height == 1
    (entry,) = entries_in(cache_folder)
    damage_entry(entry, "folder emptied")
    assert file.table("events").height == 1
    assert reader.reads == 2


@pytest.mark.usefixtures("column_by_column")
def test_a_trace_that_changes_while_open_is_refused(write_trace: WriteTrace, cache_folder: Path) -> None:
    """If a trace changes while it is open, reading fails instead of mixing columns of two versions."""
    path = write_trace("a.json", ["gemm"])
    file = TraceFile(str(path), KinetoReader())
    assert file.table("events", ["start_ns"]).height == 1
    write_trace("a.json", ["gemm", "relu"])
    (entry,) = entries_in(cache_folder)
    damage_entry(entry, "folder emptied")
    with pytest.raises(UnreadableTraceError, match="was changed while it was in use"):
        file.table("events", ["name"])


def test_a_deleted_trace_is_an_error(write_trace: WriteTrace, open_file: OpenFile) -> None:
    """If a trace was deleted, the error names it, even if it is in the cache."""
    path = write_trace("a.json", ["gemm"])
    open_file(path).table("events")
    path.unlink()
    for cache in (True, False):
        with pytest.raises(UnreadableTraceError, match=r"a\.json"):
            open_file(path, cache=cache).table("events")


def test_without_cache_nothing_is_written(write_trace: WriteTrace, reader: CountingReader, cache_folder: Path) -> None:
    """With `cache=False`, no file is written, and the trace is read each time."""
    path = write_trace("a.json", ["gemm"])
    assert names_in(path, reader, cache=False) == names_in(path, reader, cache=False) == ["gemm"]
    assert reader.reads == 2
    assert not cache_folder.exists()
    assert [file.name for file in path.parent.iterdir()] == ["a.json"]


def test_a_cache_beside_the_trace(write_trace: WriteTrace, reader: CountingReader, cache_folder: Path) -> None:
    """`cache="beside"` stores the entry in a hidden folder beside the trace, not in the user's cache."""
    path = write_trace("a.json", ["gemm"])
    names_in(path, reader, cache="beside")
    assert len(entries_in(path.parent / BESIDE_NAME)) == 1
    assert not cache_folder.exists()


def test_a_cache_in_another_folder(
    write_trace: WriteTrace, reader: CountingReader, tmp_path: Path, cache_folder: Path
) -> None:
    """If `cache` is a path, the entry goes to that folder, which is created if it is missing."""
    path = write_trace("a.json", ["gemm"])
    names_in(path, reader, cache=tmp_path / "deep" / "own")
    assert len(entries_in(tmp_path / "deep" / "own")) == 1
    assert not cache_folder.exists()


@pytest.mark.parametrize("option", ["besides", "", 3, None])
def test_an_invalid_cache_option_is_refused(write_trace: WriteTrace, open_file: OpenFile, option: Any) -> None:
    """A misspelt option such as `cache="besides"` raises an error; it is not taken for the name of a folder."""
    with pytest.raises(InvalidOptionError, match="cache="):
        open_file(write_trace("a.json", ["gemm"]), cache=option).table("events")


def test_links_and_relative_paths_share_an_entry(
    write_trace: WriteTrace, reader: CountingReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace that was read by its path is not read again through a link or a relative path."""
    path = write_trace("a.json", ["gemm"])
    make_settled(path)
    names_in(path, reader)
    (tmp_path / "link.json").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    assert names_in(Path("link.json"), reader) == names_in(Path("a.json"), reader) == ["gemm"]
    assert reader.reads == 1


def test_the_user_folder_follows_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The user's cache is in HOLOTRACE_CACHE_DIR or, by default, in `holotrace` in the system's cache folder."""
    assert user_cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("HOLOTRACE_CACHE_DIR")
    assert user_cache_folder().is_absolute()
    assert "holotrace" in user_cache_folder().parts


def test_only_the_user_cache_has_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The user's cache has a default limit and other folders have none; an invalid limit raises an error."""
    trace = tmp_path / "a.json"
    options: list[CacheOption] = [True, "beside", tmp_path]
    caches = [Cache.from_option(option, trace) for option in options]
    assert [cache and cache.limit_bytes for cache in caches] == [DEFAULT_LIMIT_BYTES, None, None]
    monkeypatch.setenv(LIMIT_VARIABLE, "many")
    with pytest.raises(InvalidOptionError, match=LIMIT_VARIABLE):
        Cache.from_option(options[0], trace)


def test_least_recently_used_entries_are_removed_first(
    write_trace: WriteTrace, reader: CountingReader, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only two of three entries fit, the least recently used one is removed."""
    old, used, new = (write_trace(f"{name}.json", [name]) for name in ("old", "used", "new"))
    for path in (old, used):
        names_in(path, reader)
    for age_s, path in ((50, old), (40, used)):
        entry = Cache(cache_folder).find(path, reader.content_hash)
        assert entry is not None
        assert entry.folder is not None
        make_settled(entry.folder / "manifest.json", age_s)
    size = sum(file.stat().st_size for file in cache_folder.rglob("*.*")) // 2
    monkeypatch.setenv(LIMIT_VARIABLE, str(size * 5 // 2))
    names_in(new, reader)
    reads_before = reader.reads
    assert names_in(used, reader) == ["used"]
    assert reader.reads == reads_before
    assert names_in(old, reader) == ["old"]
    assert reader.reads == reads_before + 1


def test_a_job_of_many_ranks_measures_the_cache_once(
    write_trace: WriteTrace, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache is measured once for five new entries below the limit; once per entry would take quadratic time."""
    measurements: list[int] = []
    sweep = cache_room._remove_least_recently_used
    monkeypatch.setattr(
        cache_room, "_remove_least_recently_used", lambda *args, **kw: measurements.append(1) or sweep(*args, **kw)
    )
    for number in range(5):
        names_in(write_trace(f"{number}.json", ["gemm"]), KinetoReader())
    assert (len(measurements), len(entries_in(cache_folder))) == (1, 5)


KILLED = """
import os, sys
from holotrace.ingest.kineto import KinetoReader
from holotrace.store.tables.checksums import sealed, unsealed
from holotrace.store.trace_file import TraceFile

class Killed(KinetoReader):
    def read(self, path, folder, progress):
        super().read(path, folder, progress)
        os.kill(os.getpid(), 9)

TraceFile(sys.argv[1], Killed(), cache=True).table("events")
"""


def test_leftovers_of_a_killed_process_are_removed(write_trace: WriteTrace, cache_folder: Path) -> None:
    """When a process adds an entry, it removes the unfinished entry of a killed process, but not its own."""
    path = write_trace("a.json", ["gemm"])
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)  # noqa: S603 -- own code
    (left,) = entries_in(cache_folder)
    assert left.name.startswith(".tmp-")
    assert arrow_file(left, "events").stat().st_size > 0
    of_this_process = cache_folder / "home" / f".tmp-{os.getpid()}-0c"
    of_this_process.mkdir(parents=True)
    make_settled(of_this_process, 2 * DAY_S)
    TraceFile(str(write_trace("b.json", ["relu"])), KinetoReader()).table("events")
    assert not left.parent.exists()
    assert of_this_process.exists()


def test_a_folder_of_another_machine_stays_for_a_day(write_trace: WriteTrace, cache_folder: Path) -> None:
    """Another machine's unfinished entry is removed only a day after its last write, as it may still be in use."""
    fresh, old = (cache_folder / "home" / f".tmp-0000000{number}-1-0a0a0a0a" for number in (1, 2))
    for folder in (fresh, old):
        folder.mkdir(parents=True)
        (folder / "events.arrow").write_bytes(b"")
    make_settled(old / "events.arrow", 2 * DAY_S)
    for folder in (fresh, old):
        make_settled(folder, 2 * DAY_S)
    TraceFile(str(write_trace("b.json", ["relu"])), KinetoReader()).table("events")
    assert (fresh.exists(), old.exists()) == (True, False)


def test_unfinished_entries_count_toward_the_limit(
    write_trace: WriteTrace, reader: CountingReader, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unfinished entries count toward the limit, so an older entry is removed to make room for a new one."""
    first = write_trace("first.json", ["gemm"])
    names_in(first, reader)
    size = sum(file.stat().st_size for file in cache_folder.rglob("*.*"))
    written = cache_folder / "home" / f".tmp-{os.getpid()}-0c0c0c0c"
    written.mkdir(parents=True)
    (written / "events.arrow").write_bytes(bytes(size))
    monkeypatch.setenv(LIMIT_VARIABLE, str(size * 5 // 2))
    names_in(write_trace("second.json", ["relu"]), reader)
    assert sum(entry.name.startswith(".tmp-") for entry in entries_in(cache_folder)) == 1
    assert len(entries_in(cache_folder)) == 2
    names_in(first, reader)
    assert reader.reads == 3


@pytest.mark.parametrize("option", [True, "beside"])
def test_a_cache_is_private(write_trace: WriteTrace, tmp_path: Path, option: CacheOption) -> None:
    """The entry of a private trace is readable only by its owner, whatever the umask."""
    path = write_trace("a.json", ["gemm"])
    path.chmod(0o600)
    before = os.umask(0)
    try:
        TraceFile(str(path), KinetoReader(), cache=option).table("events")
    finally:
        os.umask(before)
    folder = path.parent / BESIDE_NAME if option == "beside" else tmp_path / "cache"
    kept = [path for home in folder.iterdir() for path in (home, *home.rglob("*"))]
    assert len(kept) == 3 + len(TABLES)
    assert {path.stat().st_mode & 0o077 for path in kept} == {0}


def test_a_cache_that_cannot_be_written_is_a_warning(
    write_trace: WriteTrace, reader: CountingReader, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If the cache folder cannot be created, two traces are read into memory, with only one warning."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "holotrace"):
        for name in ("a.json", "b.json"):
            path = write_trace(name, ["gemm"])
            assert names_in(path, reader, cache=tmp_path / "file" / "cache") == ["gemm"]
    (warning,) = caplog.records
    assert warning.name == "holotrace"
    assert "cannot be written" in warning.getMessage()


@pytest.mark.slow
def test_a_full_disk_is_a_warning(write_trace: WriteTrace, cache_folder: Path) -> None:
    """On a full disk, there is one warning, tables are read into memory, and no entry remains.

    A limit on the file size makes `write` fail like a full disk.
    """
    path = write_trace("a.json", [f"kernel {number}" for number in range(20_000)])
    code = f"""
import logging, resource, holotrace
logging.basicConfig()
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
print(holotrace.open_trace({{0: {str(path)!r}}}).ranks[0].table("events").height)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert (run.returncode, run.stdout.strip()) == (0, "20000"), run.stderr
    assert run.stderr.count("WARNING:holotrace:") == 1
    assert "cannot be written" in run.stderr
    assert list(cache_folder.rglob("*.arrow")) == []
    assert entries_in(cache_folder) == []


class InterruptingReader(KinetoReader):
    """The real reader, but after writing the tables it raises KeyboardInterrupt."""

    def read(self, path: str, folder: Path | None, progress: Any) -> Reading:
        """Read; then raise KeyboardInterrupt."""
        super().read(path, folder, progress)
        raise KeyboardInterrupt


def test_an_interrupt_leaves_nothing_behind(write_trace: WriteTrace, cache_folder: Path) -> None:
    """Ctrl-C after the tables are written propagates and leaves the cache empty."""
    path = write_trace("a.json", ["gemm"])
    with pytest.raises(KeyboardInterrupt):
        TraceFile(str(path), InterruptingReader()).table("events")
    assert list(cache_folder.rglob("*")) == []


def test_a_broken_trace_leaves_nothing_behind(cache_folder: Path, tmp_path: Path) -> None:
    """Opening a text file raises an error and leaves the cache empty."""
    path = tmp_path / "a.json"
    path.write_text("no trace", encoding="utf-8")
    with pytest.raises(ValueError, match="not a profiler trace"):
        TraceFile(str(path), KinetoReader()).table("events")
    assert list(cache_folder.rglob("*")) == []


_start: dict[str, threading.Barrier] = {}
"""The barrier at which the racing processes wait. The pool passes the barrier to each process when the process starts.
Later, this would need a socket, and the socket's path in a temporary folder may be too long."""


def _wait_at(barrier: threading.Barrier) -> None:
    _start["barrier"] = barrier


def _open_together(path: str) -> int:
    """Wait until all processes are ready, then open the trace and count its events."""
    file = TraceFile(path, KinetoReader())
    file.table  # noqa: B018 -- imports everything before the race
    _start["barrier"].wait(timeout=30)
    return file.table("events").height


@pytest.mark.slow
def test_processes_that_race_for_an_entry(write_trace: WriteTrace, cache_folder: Path) -> None:
    """Four processes that read one trace at once get the same events and leave one complete entry."""
    path = write_trace("a.json", [f"kernel {number}" for number in range(5_000)])
    context = multiprocessing.get_context("spawn")
    with context.Pool(4, _wait_at, (context.Barrier(4),)) as pool:
        assert pool.map(_open_together, [str(path)] * 4, chunksize=1) == [5_000] * 4
    (entry,) = entries_in(cache_folder)
    assert Entry.load(entry).tables.read("events", ["start_ns"]).height == 5_000


def test_losing_the_race_uses_the_winners_entry(write_trace: WriteTrace, cache_folder: Path) -> None:
    """If another process is first to add the entry, the slower process uses that entry and discards its own."""

    class SlowReader(KinetoReader):
        """A reader that lets another reader add the entry to the cache before it reads a trace itself."""

        def read(self, path: str, folder: Path | None, progress: Any) -> Reading:
            """Let another reader add the entry, then read the trace."""
            TraceFile(path, KinetoReader()).table("events")
            return super().read(path, folder, progress)

    path = write_trace("a.json", ["gemm"])
    assert TraceFile(str(path), SlowReader()).table("events").height == 1
    assert len(entries_in(cache_folder)) == 1


def test_compressed_traces_are_identified_by_their_bytes(
    write_trace: WriteTrace, reader: CountingReader, tmp_path: Path
) -> None:
    """The content hash of a gzip file is computed from the compressed bytes, so no decompression is needed."""
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(write_trace("a.json", ["gemm"]).read_bytes()))
    file = TraceFile(str(path), reader)
    assert file.health.format == "gzip"
    assert file.health.content_hash == KinetoReader().content_hash(str(path))


def test_columns_are_read_when_requested(write_trace: WriteTrace, open_file: OpenFile, cache_folder: Path) -> None:
    """Columns of `events` can still be read after the file of the table `memory` has been deleted."""
    path = write_trace("a.json", ["gemm"])
    file = open_file(path)
    file.table("events", ["start_ns"])
    (entry,) = entries_in(cache_folder)
    arrow_file(entry, "memory").unlink()
    assert file.table("events", ["duration_ns"]).to_series().to_list() == [1_000]
    assert isinstance(file.table("events"), pl.DataFrame)


def test_a_folder_named_like_a_pattern_works(write_trace: WriteTrace, tmp_path: Path) -> None:
    """The name of a cache folder is not a pattern: the second read finds the entry in the folder `run [1]*`."""
    path = write_trace("a.json", ["gemm"])
    reader = CountingReader()
    for _ in range(2):
        file = TraceFile(str(path), reader, cache=tmp_path / "run [1]*")
        assert (file.table("events").height, file.events_of([6], ["name"]).height) == (1, 1)
    assert reader.reads == 1
