"""Critical paths can be saved to files and loaded again."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import fields
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal

from holotrace import critical_path_graph, open_trace
from holotrace.errors import InvalidOptionError, NotASavedPathError
from holotrace.export.saved_path_graph import load_path_graph, save_path_graph
from holotrace.store.trace import RankTrace
from holotrace.testing.builder import TraceBuilder


def rank_of(folder: Path, duration_us: int = 20) -> RankTrace:
    """Return a rank whose operator launches a kernel."""
    builder = TraceBuilder().operator("aten::mm", start_us=0, duration_us=duration_us)
    builder.kernel("gemm", start_us=30, duration_us=9, launch_us=5)
    return open_trace(builder.write(folder), cache=False).ranks[0]


@pytest.fixture
def rank_trace(tmp_path) -> RankTrace:
    """Return the rank whose path the tests save."""
    return rank_of(tmp_path / "job")


@pytest.fixture
def saved(rank_trace, tmp_path) -> Path:
    """Save the critical path of the rank; return the file's path."""
    save_path_graph(rank_trace, critical_path_graph(rank_trace), tmp_path / "path.zip")
    return tmp_path / "path.zip"


def with_member(saved: Path, name: str, content: bytes, **options: int) -> Path:
    """Return a copy of an archive with one member replaced, or removed if `content` is empty."""
    changed = saved.with_name("changed.zip")
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(changed, "w", **options) as new:
        members = {member: old.read(member) for member in old.namelist()} | {name: content}
        for member, data in members.items():
            if data:
                new.writestr(member, data)
    return changed


def with_manifest(saved: Path, **keys: object) -> Path:
    """Return a copy of an archive with changed values in its manifest."""
    with zipfile.ZipFile(saved) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    return with_member(saved, "manifest.json", json.dumps(manifest | keys).encode())


def test_everything_is_restored(rank_trace, saved) -> None:
    """Loading a saved path restores each table and number with its type."""
    written, read = critical_path_graph(rank_trace), load_path_graph(saved, rank_trace)

    for before, after in ((written, read), (written.graph, read.graph)):
        for name in (field.name for field in fields(before)):
            first, second = getattr(before, name), getattr(after, name)
            if isinstance(first, pl.DataFrame):
                assert_frame_equal(first, second, check_row_order=name != "names")
            elif isinstance(first, pl.Series):
                assert_series_equal(first, second)
            elif name != "graph":
                assert first == second


def test_other_tools_read_the_tables(saved) -> None:
    """A saved path is a zip archive of Parquet tables, with names as strings, and a JSON manifest."""
    with zipfile.ZipFile(saved) as archive:
        activities = pl.read_parquet(io.BytesIO(archive.read("activities.parquet")))
        manifest = json.loads(archive.read("manifest.json"))
    assert activities["name"].to_list() == ["aten::mm", "cudaLaunchKernel", "gemm"]
    assert (manifest["format"], manifest["version"], manifest["rank"]) == ("holotrace critical path", 1, 0)


def test_a_file_is_only_overwritten_on_request(rank_trace, saved) -> None:
    """Saving to an existing file raises an error unless `overwrite=True`."""
    with pytest.raises(InvalidOptionError, match="already exists"):
        save_path_graph(rank_trace, critical_path_graph(rank_trace), saved)
    save_path_graph(rank_trace, critical_path_graph(rank_trace), saved, overwrite=True)


def test_a_graph_belongs_to_the_trace_it_was_made_from(saved, tmp_path) -> None:
    """Loading a path with another trace raises an error, because the path refers to events by number."""
    with pytest.raises(InvalidOptionError, match="saved from a trace other than"):
        load_path_graph(saved, rank_of(tmp_path / "other", duration_us=21))


@pytest.mark.parametrize("length", [0, 10, 700, -20])
def test_a_truncated_file_is_a_clear_error(saved, rank_trace, length) -> None:
    """A file cut at 0, 10 or 700 bytes, or 20 bytes before its end, raises NotASavedPathError with the file's name."""
    saved.write_bytes(saved.read_bytes()[:length])
    with pytest.raises(NotASavedPathError, match=r"path\.zip is not a saved critical path that can be restored: "):
        load_path_graph(saved, rank_trace)


def test_a_flipped_bit_is_an_error(saved, rank_trace) -> None:
    """Checksums detect a flipped bit in a table."""
    content = bytearray(saved.read_bytes())
    content[content.index(b"PAR1") + 40] ^= 1
    saved.write_bytes(content)
    with pytest.raises(NotASavedPathError, match=r"Bad CRC-32|damaged"):
        load_path_graph(saved, rank_trace)


def parquet(table: pl.DataFrame) -> bytes:
    """Return a table as Parquet."""
    content = io.BytesIO()
    table.write_parquet(content)
    return content.getvalue()


@pytest.mark.parametrize(
    ("member", "content", "reason"),
    [
        ("manifest.json", b"", "it has no manifest.json"),
        ("manifest.json", b"[]", "not written by holotrace"),
        ("manifest.json", b'{"format":"x"}', "not written by holotrace"),
        ("manifest.json", b"{", "Expecting property name"),
        ("edges.parquet", b"", "it has no edges.parquet"),
        ("edges.parquet", b"PAR1", "edges.parquet is damaged"),
    ],
)
def test_a_foreign_archive_is_a_clear_error(saved, rank_trace, member, content, reason) -> None:
    """For another program's archive, the error says which member is missing, damaged or unexpected."""
    with pytest.raises(NotASavedPathError, match=reason):
        load_path_graph(with_member(saved, member, content), rank_trace)


def test_another_version_is_named(saved, rank_trace) -> None:
    """A file of format version 2 is refused, because this version of holotrace cannot read it."""
    with pytest.raises(NotASavedPathError, match="it has version 2, and this holotrace reads version 1"):
        load_path_graph(with_manifest(saved, version=2), rank_trace)


def test_compressed_members_are_rejected(saved, rank_trace) -> None:
    """Compressed members are refused, because a few KiB could expand to many GiB."""
    packed = with_member(
        saved, "manifest.json", b'{"format":"holotrace critical path"}', compression=zipfile.ZIP_DEFLATED
    )
    with pytest.raises(NotASavedPathError, match=r"its manifest\.json is compressed"):
        load_path_graph(packed, rank_trace)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"source": pl.lit(99, pl.UInt32)}, r"edges\.parquet refers to nodes that do not exist"),
        ({"activity": pl.lit(99, pl.UInt32)}, r"edges\.parquet refers to activities that do not exist"),
        ({"source": pl.lit("x")}, r"edges\.parquet has unexpected columns"),
    ],
)
def test_inconsistent_tables_are_rejected(saved, rank_trace, change, reason) -> None:
    """A table that refers to missing rows is refused even if its hash matches."""
    with zipfile.ZipFile(saved) as archive:
        edges = pl.read_parquet(io.BytesIO(archive.read("edges.parquet")))
        hashes = json.loads(archive.read("manifest.json"))["hashes"]
    content = parquet(edges.with_columns(**change))
    forged = with_member(saved, "edges.parquet", content)
    hashes["edges.parquet"] = hashlib.sha256(content).hexdigest()
    with pytest.raises(NotASavedPathError, match=reason):
        load_path_graph(with_manifest(forged.rename(saved), hashes=hashes), rank_trace)


def test_a_missing_file_is_a_system_error(tmp_path, rank_trace) -> None:
    """Loading a missing file raises FileNotFoundError."""
    with pytest.raises(FileNotFoundError):
        load_path_graph(tmp_path / "nothing.zip", rank_trace)


def test_an_archive_does_not_choose_where_to_write(saved, rank_trace, tmp_path) -> None:
    """Loading ignores a member named `../../escaped.parquet` and writes nothing."""
    before = sorted(tmp_path.rglob("*"))
    forged = with_member(saved, "../../escaped.parquet", b"x")
    load_path_graph(forged, rank_trace)
    assert sorted(tmp_path.rglob("*")) == sorted([*before, forged])
