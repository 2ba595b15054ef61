"""Tests of finding the captures of CUDA graphs."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from holotrace.errors import NotATraceError, TraceNotFoundError
from holotrace.ingest.open_trace import open_trace
from holotrace.store.captures import Capture
from holotrace.testing.builder import TraceBuilder


def replay(*ranks: int) -> TraceBuilder:
    """Return ranks that replay a CUDA graph in an inference step with a batch of 8 requests."""
    builder = TraceBuilder()
    for rank in ranks:
        builder.rank(rank).annotation("decode bs=8", start_us=0, duration_us=50)
        builder.runtime("cudaGraphLaunch", start_us=1, duration_us=1, correlation=5)
        builder.kernel("gemm", start_us=9, duration_us=1, correlation=5)
    return builder


def written(folder: Path, *names: str) -> None:
    """Write captures with the given names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(TraceBuilder().operator(f"op of {name}", start_us=0, duration_us=1).json())


def sources(captures: tuple[Capture, ...]) -> list[str]:
    """Return the file names of captures."""
    return [Path(capture.trace.source).name for capture in captures]


def test_captures_of_the_rank_and_the_padded_batch_are_read(tmp_path):
    """Each rank has its own captures; a batch of 8 uses the capture for 16, because 16 is the next larger size."""
    replay(0, 1).write(tmp_path)
    written(tmp_path / "capture_traces", *(f"bs_{size}_rank{rank}.json" for size in (4, 16, 32) for rank in (0, 1)))
    trace = open_trace(tmp_path, cache=False)

    assert {rank: sources(one.captures) for rank, one in trace.ranks.items()} == {
        0: ["bs_16_rank0.json"],
        1: ["bs_16_rank1.json"],
    }
    assert sources(pickle.loads(pickle.dumps(trace)).ranks[1].captures) == ["bs_16_rank1.json"]  # noqa: S301


def test_captures_in_the_same_folder_are_not_ranks(tmp_path):
    """A capture in the trace's folder is not opened as a rank: it is used with its rank and listed as skipped."""
    replay(0).write(tmp_path)
    written(tmp_path, "graph_capture_rank_0.17.pt.trace.json")
    trace = open_trace(tmp_path, cache=False)

    assert list(trace.ranks) == [0]
    assert sources(trace.ranks[0].captures) == ["graph_capture_rank_0.17.pt.trace.json"]
    assert [Path(file.path).name for file in trace.skipped] == ["graph_capture_rank_0.17.pt.trace.json"]


def test_a_folder_of_captures_alone_is_a_job(tmp_path):
    """A folder that contains only captures opens like a folder of traces."""
    written(tmp_path, "bs_8_rank0.json")

    assert list(open_trace(tmp_path, cache=False).ranks) == [0]


def test_no_capture_on_request_or_without_graphs(tmp_path):
    """No capture is read if the list of captures is empty, or if the rank has no graphs."""
    (path,) = replay(0).write(tmp_path / "replay")
    written(tmp_path / "replay" / "capture_traces", "bs_8_rank0.json")
    TraceBuilder().kernel("gemm", start_us=0, duration_us=1).write(tmp_path / "eager")
    written(tmp_path / "eager" / "capture_traces", "bs_8_rank0.json")

    assert open_trace(path, capture=[], cache=False).ranks[0].captures == ()
    assert open_trace(tmp_path / "eager", cache=False).ranks[0].captures == ()


def test_a_wrong_path_is_an_error(tmp_path):
    """If `capture` is wrong, the error says that the path does not exist, or that the file is not a capture."""
    (path,) = replay(0).write(tmp_path)
    (tmp_path / "notes.json").write_text('{"a": 1}')

    with pytest.raises(TraceNotFoundError, match=r"capture\.json does not exist"):
        open_trace(path, capture=tmp_path / "capture.json")
    with pytest.raises(NotATraceError, match="neither the recording of a capture nor a JSON file"):
        open_trace(path, capture=tmp_path / "notes.json", cache=False).ranks[0].captures  # noqa: B018


@pytest.mark.parametrize("details", ["", "[", '{"file": 3}', '[{"file": "x", "batch_size": "8"}]', "[" * 100_000])
def test_damaged_details_state_no_batch_size(tmp_path, details):
    """If the list of batch sizes is damaged, the batch sizes in the file names are used."""
    replay(0).write(tmp_path)
    written(tmp_path / "capture_traces", "bs_8_rank0.json", "bs_9_rank0.json")
    (tmp_path / "capture_traces" / "execution_details.json").write_text(details)

    assert sources(open_trace(tmp_path, cache=False).ranks[0].captures) == ["bs_8_rank0.json"]
