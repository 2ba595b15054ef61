"""`discover` finds the files of a job and the rank of each file."""

from __future__ import annotations

import gzip
import json
import logging
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.errors import (
    DuplicateRankError,
    HolotraceError,
    InvalidOptionError,
    NotATraceError,
    TraceNotFoundError,
    UnreadableTraceError,
)
from holotrace.ingest.discover import JobFiles, TraceSource, discover, natural_order

WriteTrace = Callable[..., Path]


def read_nothing(path: str) -> int | None:
    """Return None, as `peek` does for a file that states no rank."""
    del path
    return None


def names_by_rank(source: TraceSource) -> dict[int, str]:
    """Return {rank: file name}."""
    return {rank: Path(path).name for rank, path in discover(source, read_nothing).files.items()}


def skipped_names(source: TraceSource) -> dict[str, str]:
    """Return {file name: reason}."""
    return {Path(file.path).name: file.reason for file in discover(source, read_nothing).skipped}


def test_file_names_sort_in_natural_order() -> None:
    """Natural order puts a2 before a10, with and without leading zeros, and numbers before letters."""
    names = ["b", "a10", "a2", "a", "a02b", "10", "9"]
    assert sorted(names, key=natural_order) == ["9", "10", "a", "a2", "a02b", "a10", "b"]


@given(st.lists(st.text()))
def test_every_name_can_be_sorted(names: list[str]) -> None:
    """Natural order works for any text, with any characters and the digits of any script."""
    in_order = sorted(names, key=natural_order)
    assert all(natural_order(one) <= natural_order(next_one) for one, next_one in pairwise(in_order))


def test_a_single_file_is_a_job_of_one(write_trace: WriteTrace) -> None:
    """A single file gets the rank that it states, or rank 0 if it states none."""
    assert names_by_rank(write_trace("trace.json")) == {0: "trace.json"}
    assert names_by_rank(str(write_trace("other.json", rank=5))) == {5: "other.json"}


def test_the_header_takes_precedence_over_the_name(write_trace: WriteTrace) -> None:
    """A file named rank3.json gets rank 5 if its distributedInfo states rank 5."""
    assert names_by_rank(write_trace("rank3.json", rank=5)) == {5: "rank3.json"}


def test_rank_minus_one_does_not_count(write_trace: WriteTrace) -> None:
    """A rank of -1 in the header, written by a process without a process group, is ignored; the file name is used."""
    assert names_by_rank(write_trace("rank3.json", rank=-1)) == {3: "rank3.json"}


def test_a_number_too_large_for_a_rank_does_not_count(write_trace: WriteTrace) -> None:
    """A rank of 2**31 in the header is ignored, because tables store ranks as int32."""
    assert names_by_rank(write_trace("rank3.json", rank=2**31)) == {3: "rank3.json"}


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n", " : ")])
def test_white_space_in_the_header_does_not_matter(tmp_path: Path, separators: tuple[str, str]) -> None:
    """The rank in distributedInfo is read in any layout; keys called `rank` elsewhere are ignored."""
    event = {"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1, "args": {"rank": 7}}
    for name, info in (("a.json", {"distributedInfo": {"rank": 4}}), ("b.json", {"user": {"rank": 9}})):
        document = json.dumps(info | {"traceEvents": [event]}, separators=separators)
        (tmp_path / name).write_text(document, encoding="utf-8")
    assert names_by_rank(tmp_path) == {0: "b.json", 4: "a.json"}


def test_a_header_longer_than_the_first_piece(write_trace: WriteTrace) -> None:
    """The rank is found even after more than 1 MiB of process groups in the header."""
    groups = [{"pg_name": str(number), "ranks": list(range(100))} for number in range(10_000)]
    path = write_trace("a.json", distributedInfo={"pg_config": groups, "rank": 6})
    assert path.stat().st_size > 1 << 20
    assert names_by_rank(path) == {6: "a.json"}


def test_files_without_a_rank_get_free_numbers(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Files without a rank get the smallest free numbers, in the natural order of their names."""
    for name in ("t10.json", "t9.json", "t1.json"):
        write_trace(name)
    write_trace("rank1.json")
    write_trace("z.json", rank=0)
    assert names_by_rank(tmp_path) == {0: "z.json", 1: "rank1.json", 2: "t1.json", 3: "t9.json", 4: "t10.json"}


def test_a_file_is_read_for_its_rank_only_if_needed(write_trace: WriteTrace, tmp_path: Path) -> None:
    """A file is read completely to find its rank only if neither its beginning nor its name states the rank."""
    write_trace("a.json")
    write_trace("b.json")
    write_trace("rank0.json")
    write_trace("c.json", rank=1)
    files_read: list[str] = []

    def read_rank(path: str) -> int | None:
        files_read.append(Path(path).name)
        return 7 if path.endswith("a.json") else None

    job = discover(tmp_path, read_rank)
    assert {rank: Path(path).name for rank, path in job.files.items()} == {
        0: "rank0.json",
        1: "c.json",
        2: "b.json",
        7: "a.json",
    }
    assert files_read == ["a.json", "b.json"]


def test_a_folder_is_searched_by_content(write_trace: WriteTrace, tmp_path: Path) -> None:
    """The traces in a folder are recognised whatever their names are; subfolders and hidden files are ignored."""
    write_trace("rank0.pt.trace.json")
    write_trace("rank1", rank=1)
    for rank, packed in ((2, "rank2.json.gz"), (3, "rank3.gz"), (4, "rank4.json")):
        (tmp_path / packed).write_bytes(gzip.compress(write_trace("plain.json", rank=rank).read_bytes()))
    (tmp_path / "plain.json").unlink()
    write_trace(".hidden.json")
    write_trace("deeper/rank9.json")
    assert list(names_by_rank(tmp_path)) == [0, 1, 2, 3, 4]
    assert skipped_names(tmp_path) == {}


def test_other_files_are_skipped_with_the_reason(write_trace: WriteTrace, tmp_path: Path) -> None:
    """In a folder, every file that is not a trace of a rank is skipped, with a reason that says what the file is."""
    write_trace("rank0.json")
    nodes = {"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "now", "start_ts": 1, "nodes": [{"id": 1}]}
    contents: dict[str, str] = {
        "et.json": json.dumps(nodes),
        "truth.json": json.dumps({"schema": "holotrace-synthetic-job", "ranks": 8}),
        "memory.raw.json": "[[-1, 1, 512, 7], [5, 2, 512, 7]]",
        "empty.json": "",
        "notes": "Dear reader",
        "snapshot.pickle": "x",
        "report.html": "<html>",
        "crashed.json.tmp": '{"traceEvents": [',
        "rank0_with_counters.json": rank_0_again(tmp_path),
        "overlaid_critical_path_rank0.json": rank_0_again(tmp_path),
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "timeline.json.gz").write_bytes(gzip.compress(b"[[1, 2], [[0, 1]]]"))
    assert names_by_rank(tmp_path) == {0: "rank0.json"}
    reasons = skipped_names(tmp_path)
    assert set(reasons) == {*contents, "timeline.json.gz"}
    assert reasons["et.json"] == "not a profiler trace: a PyTorch execution trace"
    assert reasons["truth.json"] == "not a profiler trace: a JSON object without traceEvents"
    assert reasons["empty.json"] == "not a profiler trace: an empty file"
    assert "memory snapshot" in reasons["snapshot.pickle"]
    assert "unfinished" in reasons["crashed.json.tmp"]
    assert "counters added" in reasons["rank0_with_counters.json"]
    assert "critical path" in reasons["overlaid_critical_path_rank0.json"]
    assert all(reason.startswith("not a profiler trace: ") for reason in reasons.values())


def rank_0_again(folder: Path) -> str:
    """Return the content of the trace of rank 0."""
    return (folder / "rank0.json").read_text(encoding="utf-8")


def test_several_recordings_of_a_rank_in_a_folder(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Of several recordings of a rank, only the recording with the latest time in its name is opened."""
    times = {"s": 1_694_128_201, "ms": 1_694_128_300_000, "ns": 1_694_128_250_000_000_000}
    spans = {unit: write_trace(f"worker0.{time}.pt.trace.json") for unit, time in times.items()}
    write_trace("worker1.1694128201545.pt.trace.json")
    assert names_by_rank(tmp_path) == {0: spans["ms"].name, 1: "worker1.1694128201545.pt.trace.json"}
    reasons = skipped_names(tmp_path)
    assert set(reasons) == {spans["s"].name, spans["ns"].name}
    assert f"the newest, {spans['ms'].name}, was opened" in reasons[spans["s"].name]
    command = reasons[spans["s"].name].rpartition("holotrace.open_trace(")[2].rstrip(")")
    assert command == repr({0: str(spans["s"])})


def test_recordings_without_a_time_in_their_name(write_trace: WriteTrace, tmp_path: Path) -> None:
    """If the names contain no times, the recording that was written last is opened."""
    for age_s, name in enumerate(["b.json", "c.json", "a.json"]):
        time_s = 1_700_000_000 - age_s
        os.utime(write_trace(name, rank=4), (time_s, time_s))
    assert names_by_rank(tmp_path) == {4: "b.json"}
    assert set(skipped_names(tmp_path)) == {"a.json", "c.json"}


def test_a_pattern_finds_files_in_many_folders(write_trace: WriteTrace, tmp_path: Path) -> None:
    """`*` matches within one folder, `**` also in subfolders; files that are not traces are skipped."""
    write_trace("node0/rank0.json")
    write_trace("node1/deep/rank1.json")
    (tmp_path / "node0/notes.txt").write_text("a text", encoding="utf-8")
    assert names_by_rank(f"{tmp_path}/node*/*") == {0: "rank0.json"}
    assert names_by_rank(f"{tmp_path}/**/*.json") == {0: "rank0.json", 1: "rank1.json"}
    assert skipped_names(f"{tmp_path}/node*/*") == {"notes.txt": "not a profiler trace: a text file"}


def test_an_existing_name_is_not_a_pattern(write_trace: WriteTrace) -> None:
    """If a file is actually named `run[1]*.json`, that name opens the file instead of serving as a pattern."""
    assert names_by_rank(write_trace("run[1]*.json")) == {0: "run[1]*.json"}


def test_a_list_keeps_its_order_for_free_numbers(write_trace: WriteTrace) -> None:
    """Files without a rank are numbered in the order of the list; a repeated file is ignored."""
    paths = [write_trace(name) for name in ("c.json", "a.json", "b.json")]
    assert names_by_rank(paths) == {0: "c.json", 1: "a.json", 2: "b.json"}
    assert names_by_rank([*paths, paths[0]]) == {0: "c.json", 1: "a.json", 2: "b.json"}


def test_a_list_of_two_files_of_one_rank_is_refused(write_trace: WriteTrace) -> None:
    """For two files of rank 2, the error names both and shows how to assign ranks."""
    first, second = write_trace("a.json", rank=2), write_trace("rank2.json")
    with pytest.raises(DuplicateRankError) as caught:
        discover([first, second], read_nothing)
    assert str(caught.value) == (
        f"{first} and {second} are both rank 2. Leave one out, or assign the ranks yourself: "
        f"holotrace.open_trace({{2: {str(first)!r}, 3: {str(second)!r}}})"
    )


def test_the_ranks_of_a_dict_take_precedence(write_trace: WriteTrace) -> None:
    """The ranks in a dict {rank: file} override the ranks in the files."""
    first, second = str(write_trace("rank0.json", rank=0)), str(write_trace("rank1.json", rank=0))
    assert discover({9: second, 4: first}, read_nothing) == JobFiles({4: first, 9: second})


def test_whole_numbers_of_numpy_are_ranks(write_trace: WriteTrace) -> None:
    """The ranks in a dict may be NumPy integers."""
    path = str(write_trace("a.json"))
    assert discover({np.int64(3): path}, read_nothing).files == {3: path}


@pytest.mark.parametrize("rank", [-1, "0", 1.0, True, None, 2**31])
def test_a_rank_is_a_whole_number_from_zero(write_trace: WriteTrace, rank: Any) -> None:
    """A rank in a dict raises an error if it is negative, above int32, a bool, a float, a string or None."""
    with pytest.raises(InvalidOptionError, match="a rank is a whole number from 0"):
        discover({rank: write_trace("a.json")}, read_nothing)


def test_a_file_named_by_itself_must_be_a_trace(tmp_path: Path) -> None:
    """A JSON file without events raises an error, whether it is given as a path, in a list or in a dict."""
    path = tmp_path / "a.json"
    path.write_text('{"nodes": []}', encoding="utf-8")
    sources: list[TraceSource] = [path, [path], {0: path}]
    for source in sources:
        with pytest.raises(NotATraceError, match=r"a\.json is not a profiler trace: a JSON object"):
            discover(source, read_nothing)


def test_a_pipe_is_not_a_trace(write_trace: WriteTrace, tmp_path: Path) -> None:
    """Pipes and broken links are skipped in a folder, but raise errors if named directly; pipes are never opened."""
    write_trace("rank0.json")
    os.mkfifo(tmp_path / "rank1.json")
    (tmp_path / "rank2.json").symlink_to(tmp_path / "missing.json")
    for source in (tmp_path, f"{tmp_path}/*"):
        assert names_by_rank(source) == {0: "rank0.json"}
        reasons = skipped_names(source)
        assert "a pipe" in reasons["rank1.json"]
        assert "a link to a file that does not exist" in reasons["rank2.json"]
    for name, what in (("rank1.json", "a pipe"), ("rank2.json", "a link")):
        with pytest.raises(NotATraceError, match=f"{name} is not a profiler trace: {what}"):
            discover(tmp_path / name, read_nothing)


def test_a_folder_within_a_list_is_refused(tmp_path: Path) -> None:
    """A folder in a list raises an error, because a list may contain only files."""
    with pytest.raises(NotATraceError, match="is a folder"):
        discover([tmp_path], read_nothing)


def test_a_missing_file_suggests_its_neighbours(write_trace: WriteTrace, tmp_path: Path) -> None:
    """The error for a missing file suggests the most similar name or, if none is similar, lists the folder's files."""
    write_trace("rank0.json")
    with pytest.raises(TraceNotFoundError, match=r"does not exist; did you mean rank0\.json\?$"):
        discover(tmp_path / "rank_0.json", read_nothing)
    with pytest.raises(TraceNotFoundError, match=rf"does not exist; {tmp_path} contains: rank0\.json$"):
        discover(tmp_path / "no" / "such" / "folder", read_nothing)


@pytest.mark.parametrize("source", ["/no/such/*.json", [], {}, "", " ", "a\0b.json"])
def test_a_source_without_files_is_an_error(source: TraceSource) -> None:
    """Patterns without a match, empty lists and dicts, and empty or invalid names raise a TraceNotFoundError."""
    with pytest.raises(TraceNotFoundError):
        discover(source, read_nothing)


def test_a_folder_without_traces_is_an_error_that_lists_its_files(tmp_path: Path) -> None:
    """For a folder without traces, the error says that the folder is empty, or lists its files and subfolders."""
    with pytest.raises(TraceNotFoundError, match=r"is an empty folder; name the folder"):
        discover(tmp_path, read_nothing)
    (tmp_path / "run1").mkdir()
    with pytest.raises(TraceNotFoundError, match=r"contains no trace, only: run1/$"):
        discover(tmp_path, read_nothing)
    for number in range(12):
        (tmp_path / f"note{number}.txt").write_text("a text", encoding="utf-8")
    with pytest.raises(TraceNotFoundError) as caught:
        discover(tmp_path, read_nothing)
    assert "note9.txt (not a profiler trace: a text file); 2 more. Subfolders are not searched: run1" in str(
        caught.value
    )


def test_an_unreadable_file_does_not_hide_the_others(
    write_trace: WriteTrace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Opening a folder skips a damaged file with a warning; opening the damaged file itself raises an error."""
    write_trace("rank0.json")
    damaged = tmp_path / "rank1.json.gz"
    damaged.write_bytes(gzip.compress(write_trace("x.json").read_bytes())[:12])
    (tmp_path / "x.json").unlink()
    with caplog.at_level(logging.WARNING, "holotrace"):
        assert list(names_by_rank(tmp_path)) == [0]
    assert skipped_names(tmp_path)["rank1.json.gz"].startswith("cannot be read: ")
    assert "rank1.json.gz cannot be read" in caplog.messages[0]
    with pytest.raises(UnreadableTraceError, match=r"rank1\.json\.gz cannot be read"):
        discover(damaged, read_nothing)


def test_a_file_that_fails_when_read_for_its_rank_is_skipped(write_trace: WriteTrace, tmp_path: Path) -> None:
    """If reading a file to find its rank fails, the file is skipped, and the other file in the folder is opened."""
    write_trace("a.json")
    write_trace("b.json")

    def read_rank(path: str) -> int | None:
        if path.endswith("a.json"):
            message = f"{path} cannot be read: Input/output error"
            raise UnreadableTraceError(message)
        return None

    job = discover(tmp_path, read_rank)
    assert {rank: Path(path).name for rank, path in job.files.items()} == {0: "b.json"}
    assert [Path(file.path).name for file in job.skipped] == ["a.json"]


@given(st.text())
def test_any_text_is_a_path_or_a_holotrace_error(text: str) -> None:
    """For any text that names no file, a HolotraceError is raised, and no other error."""
    with pytest.raises(HolotraceError, match=r"."):
        discover(f"/no/such/folder/{text}", read_nothing)


@pytest.mark.parametrize(
    "timeline",
    [
        [[-1, 1, 37888, 7], [-1, 1, 512, 7]],
        [[1726077563878112, 1726077563878112], [[0, 102440608], [0, 102228128]]],
    ],
)
def test_a_memory_timeline_is_named(tmp_path: Path, timeline: list[object]) -> None:
    """PyTorch's memory timeline, as raw events or as a chart, is not a trace; the error says what it is."""
    path = tmp_path / "memory.json"
    path.write_text(json.dumps(timeline))

    with pytest.raises(NotATraceError, match="a memory timeline"):
        names_by_rank(path)
    with pytest.raises(TraceNotFoundError, match="a memory timeline"):
        names_by_rank(tmp_path)
