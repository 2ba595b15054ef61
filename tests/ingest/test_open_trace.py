"""`open_trace` opens the traces at a path."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import holotrace
from holotrace.errors import NotATraceError, UnknownRankError
from holotrace.ingest.open_trace import open_trace

WriteTrace = Callable[..., Path]


class Recorder:
    """A progress display that records the file names it receives."""

    def __init__(self) -> None:
        """Start with no files."""
        self.files: list[str] = []

    def start(self, total_bytes: int, description: str) -> None:
        """Record the description, which is a file name."""
        assert total_bytes > 0
        self.files.append(description)

    def advance(self, byte_count: int, /) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""


def test_a_folder_becomes_a_trace(write_trace: WriteTrace, tmp_path: Path) -> None:
    """A folder with three ranks and a text file opens as three ranks, in order, and one skipped file."""
    for rank in (2, 0, 10):
        write_trace(f"rank{rank}.json", rank=rank)
    (tmp_path / "notes.txt").write_text("a text", encoding="utf-8")
    trace = open_trace(tmp_path)
    assert {rank: Path(rank_trace.source).name for rank, rank_trace in trace.ranks.items()} == {
        0: "rank0.json",
        2: "rank2.json",
        10: "rank10.json",
    }
    assert [(Path(file.path).name, file.reason) for file in trace.skipped] == [
        ("notes.txt", "not a profiler trace: a text file")
    ]


def test_open_trace_is_public() -> None:
    """`holotrace.open_trace` is the function in `holotrace.ingest`."""
    assert holotrace.open_trace is open_trace


def test_files_are_read_when_needed(write_trace: WriteTrace) -> None:
    """If the beginning of a file states the rank, the file is read only once, when a table is first needed."""
    progress = Recorder()
    trace = open_trace(write_trace("a.json", rank=3), progress=progress)
    assert progress.files == []
    trace.ranks[3].table("events")
    assert trace.ranks[3].header.rank == 3
    assert progress.files == ["a.json"]


@pytest.mark.parametrize("cache", [True, False])
def test_a_file_read_for_its_rank_is_not_read_again(write_trace: WriteTrace, *, cache: bool) -> None:
    """A file that was read to find its rank is not read again for its tables, with or without a cache."""
    progress = Recorder()
    trace = open_trace(write_trace("a.json", collective_ranks=(5,)), progress=progress, cache=cache)
    assert list(trace.ranks) == [5]
    assert trace.ranks[5].table("events").height == 1
    assert progress.files == ["a.json"]


def test_most_collectives_decide_the_rank(write_trace: WriteTrace) -> None:
    """A file gets the rank that most of its collectives state or, in a tie, the smaller rank; -1 is ignored."""
    assert list(open_trace(write_trace("a.json", collective_ranks=(4, 6, 6))).ranks) == [6]
    assert list(open_trace(write_trace("b.json", collective_ranks=(4, 6))).ranks) == [4]
    assert list(open_trace(write_trace("c.json", collective_ranks=(-1, -1, 2))).ranks) == [2]
    assert list(open_trace(write_trace("d.json", collective_ranks=(-1,))).ranks) == [0]


def test_a_rank_after_the_events_counts(tmp_path: Path) -> None:
    """On-demand captures write distributedInfo after the events; its rank is used too."""
    event = '{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1, "dur": 1}'
    path = tmp_path / "libkineto_activities_1234.json"
    path.write_text(f'{{"traceEvents": [{event}], "distributedInfo": {{"rank": 11}}}}', encoding="utf-8")
    assert list(open_trace(path).ranks) == [11]


def test_some_ranks_of_a_job(write_trace: WriteTrace, tmp_path: Path) -> None:
    """`ranks=[2, 0]` opens two of three ranks; for an unknown rank, the error lists the existing ones."""
    for rank in range(3):
        write_trace(f"rank{rank}.json")
    assert list(open_trace(tmp_path, ranks=[2, 0]).ranks) == [0, 2]
    with pytest.raises(UnknownRankError, match="its ranks are: 0, 1, 2"):
        open_trace(tmp_path, ranks=[3])


def test_paths_stay_as_given(write_trace: WriteTrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is shown unchanged, and its file is found even from another folder or after pickling."""
    write_trace("run/a.json")
    monkeypatch.chdir(tmp_path)
    trace = open_trace("run")
    assert trace.ranks[0].source == "run/a.json"
    monkeypatch.chdir("/")
    assert trace.ranks[0].table("events").height == 1
    assert pickle.loads(pickle.dumps(trace)).ranks[0].table("events").height == 1  # noqa: S301 -- the test pickled it


def test_home_is_expanded(write_trace: WriteTrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leading ~ means the home folder."""
    write_trace("a.json")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_trace("~/a.json").ranks[0].table("events").height == 1


def test_a_file_of_a_dict_must_be_a_trace(tmp_path: Path) -> None:
    """A text file in a dict {rank: file} raises an error as soon as the trace is opened."""
    path = tmp_path / "a.json"
    path.write_text("no trace", encoding="utf-8")
    with pytest.raises(NotATraceError):
        open_trace({0: path})


REAL_JOBS = {
    "dlrm_8rank": ([0, 1, 2, 3, 4, 5, 6, 7], []),
    "ddp_gloo_4rank": ([0, 1, 2, 3], []),
    "two_rank_128": ([0, 1], []),
    "cpu_only": ([34], []),
    "execution_trace": ([0], ["benchmark_simple_add_et.json.gz"]),
    "tensorboard/resnet50_num_workers_4": ([0], ["worker0.1623212756351.pt.trace.json.gz"]),
    "mtia_inference": ([0], []),
}


@pytest.mark.parametrize(("folder", "expected"), REAL_JOBS.items())
def test_real_folders(real_traces: Path, folder: str, expected: tuple[list[int], list[str]]) -> None:
    """Folders of real recordings open with the expected ranks; other files and older recordings are skipped."""
    trace = open_trace(real_traces / folder)
    assert (list(trace.ranks), [Path(file.path).name for file in trace.skipped]) == expected
