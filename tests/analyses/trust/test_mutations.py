"""Tests of trust on damaged copies of real recordings: each kind of damage breaks exactly one rule."""

from __future__ import annotations

import gzip
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import holotrace

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDINGS = Path(__file__).parents[3] / "examples" / "gpu" / "traces"

Document = dict[str, Any]


def recorded(name: str, rank: int = 0) -> Document:
    """Return a real recording as plain Python objects."""
    document: Document = json.loads(gzip.decompress((RECORDINGS / name / f"rank{rank}.pt.trace.json.gz").read_bytes()))
    return document


def rules_of(folder: Path, *documents: Document | bytes) -> list[str]:
    """Write the files of a job and return the rules that the job breaks."""
    for rank, document in enumerate(documents):
        text = document if isinstance(document, bytes) else json.dumps(document).encode()
        (folder / f"rank{rank}.json").write_bytes(text)
    return broken(holotrace.open_trace(folder, cache=False))


def broken(trace: holotrace.Trace) -> list[str]:
    """Return the rules that a job breaks, without duplicates."""
    return sorted(set(holotrace.trust(trace).doubts["rule"]))


def events(document: Document, *categories: str) -> list[dict[str, Any]]:
    """Return the events of these categories, sorted by start."""
    chosen = [event for event in document["traceEvents"] if event.get("cat") in categories and event.get("ph") == "X"]
    return sorted(chosen, key=lambda event: event["ts"])


def device_work(document: Document) -> list[dict[str, Any]]:
    """Return the kernels, copies and memsets, sorted by start."""
    return events(document, "kernel", "gpu_memcpy", "gpu_memset")


def without(document: Document, dropped: list[dict[str, Any]]) -> Document:
    """Return the document without these events."""
    names = {id(event) for event in dropped}
    return {**document, "traceEvents": [event for event in document["traceEvents"] if id(event) not in names]}


def launch_of(document: Document, work: dict[str, Any]) -> dict[str, Any]:
    """Return the call that launched a kernel, copy or memset."""
    calls = events(document, "cuda_runtime", "cuda_driver")
    return next(call for call in calls if call["args"].get("correlation") == work["args"]["correlation"])


def replays(document: Document) -> list[list[dict[str, Any]]]:
    """Return the device work of each graph replay."""
    calls = [call for call in events(document, "cuda_runtime") if call["name"] == "cudaGraphLaunch"]
    numbers = [call["args"]["correlation"] for call in calls]
    return [[work for work in device_work(document) if work["args"]["correlation"] == number] for number in numbers]


def a_replay_loses_all_rows() -> tuple[str, Document]:
    """Drop all kernels of the third of six replays."""
    document = recorded("generation-graphs")
    return "incomplete_graph_replays", without(document, replays(document)[2])


def a_replay_loses_some_rows() -> tuple[str, Document]:
    """Drop every second kernel of the third of six replays."""
    document = recorded("generation-graphs")
    return "incomplete_graph_replays", without(document, replays(document)[2][::2])


def kernels_are_lost() -> tuple[str, Document]:
    """Drop five kernels in the middle but keep their launches."""
    document = recorded("training")
    kernels = events(document, "kernel")
    return "launches_without_work", without(document, kernels[200:205])


def a_kernel_is_stretched() -> tuple[str, Document]:
    """Stretch a kernel so that it ends 5 µs after the start of the next kernel on its stream."""
    document = recorded("small")
    kernels = events(document, "kernel")
    first, second = kernels[100:102]
    first["dur"] = second["ts"] + 5 - first["ts"]
    return "overlapping_work", document


def a_kernel_is_too_early() -> tuple[str, Document]:
    """Move a kernel to 2 µs before its launch; the device is idle at that time."""
    document = recorded("small")
    work = device_work(document)
    idle = [
        (before, after)
        for before, after in pairwise(work)
        if launch_of(document, after)["ts"] - 3 > before["ts"] + before["dur"] and after["cat"] == "kernel"
    ]
    kernel = idle[len(idle) // 2][1]
    kernel["ts"] = launch_of(document, kernel)["ts"] - 2
    return "starts_before_launch", document


def a_wait_ends_early() -> tuple[str, Document]:
    """Stretch the last kernel so that it ends 100 µs after the last cudaDeviceSynchronize."""
    document = recorded("training")
    [*_, wait] = [call for call in events(document, "cuda_runtime") if call["name"] == "cudaDeviceSynchronize"]
    kernel = max(device_work(document), key=lambda work: work["ts"] + work["dur"])
    kernel["dur"] = wait["ts"] + wait["dur"] + 100 - kernel["ts"]
    return "waits_end_early", document


def sequence_numbers_are_shared() -> tuple[str, Document]:
    """Give a backward operator the sequence number of another backward operator."""
    document = recorded("small")
    nodes = [op for op in events(document, "cpu_op") if op["name"].startswith("autograd::engine::evaluate_function: ")]
    numbered = [op for op in nodes if "Sequence number" in op["args"]]
    first = numbered[0]
    other = next(op for op in numbered if op["name"] != first["name"])
    other["args"]["Sequence number"] = first["args"]["Sequence number"]
    return "shared_sequence_numbers", document


def the_profiler_takes_a_tenth_of_a_step() -> tuple[str, Document]:
    """Add profiler overhead that takes a tenth of the first step."""
    document = recorded("small")
    step = next(event for event in events(document, "user_annotation") if event["name"].startswith("ProfilerStep"))
    row = {"ph": "X", "cat": "overhead", "name": "Buffer Flush", "pid": -1, "tid": 0}
    document["traceEvents"].append({**row, "ts": step["ts"] + 10, "dur": step["dur"] / 10})
    return "profiler_overhead", document


def the_profiler_stops_inside_a_step() -> tuple[str, Document]:
    """Move the end of the recording into the last step."""
    document = recorded("small")
    steps = [event for event in events(document, "user_annotation") if event["name"].startswith("ProfilerStep")]
    end = next(event for event in document["traceEvents"] if event["name"] == "Record Window End")
    end["ts"] = steps[-1]["ts"] + steps[-1]["dur"] / 2
    return "steps_with_profiler_start", document


def host_events_are_lost() -> tuple[str, Document]:
    """Drop all host events that start within a window of 3 ms, as an overflowing ring buffer would."""
    document = recorded("training")
    host = events(document, "cpu_op", "cuda_runtime", "cuda_driver", "python_function", "user_annotation")
    launches = [call for call in events(document, "cuda_runtime") if "LaunchKernel" in call["name"]]
    begin = launches[100]["ts"] + 1
    return "gaps_in_host_recording", without(document, [one for one in host if begin <= one["ts"] < begin + 3_000])


MUTATIONS: tuple[Callable[[], tuple[str, Document]], ...] = (
    a_replay_loses_all_rows,
    a_replay_loses_some_rows,
    kernels_are_lost,
    a_kernel_is_stretched,
    a_kernel_is_too_early,
    a_wait_ends_early,
    sequence_numbers_are_shared,
    the_profiler_takes_a_tenth_of_a_step,
    the_profiler_stops_inside_a_step,
    host_events_are_lost,
)


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_a_mutation_breaks_exactly_its_rule(tmp_path: Path, mutate: Callable[[], tuple[str, Document]]) -> None:
    """Each mutation of a healthy recording breaks its rule and no other rule."""
    rule, document = mutate()
    assert rules_of(tmp_path, document) == [rule]


@pytest.mark.parametrize("name", ["generation-graphs", "training", "small", "two_ranks-data_parallel"])
def test_the_recordings_are_healthy(name: str) -> None:
    """Without a mutation, the recordings break no rule."""
    assert broken(holotrace.open_trace(RECORDINGS / name)) == []


def test_a_file_that_ends_early(tmp_path: Path) -> None:
    """If a file is cut off before its first kernel, the doubt says it is unknown whether the job used a GPU."""
    text = gzip.decompress((RECORDINGS / "small" / "rank0.pt.trace.json.gz").read_bytes())
    (tmp_path / "rank0.json").write_bytes(text[: re.search(rb'"cat": "(kernel|gpu_)', text).start() - 300])
    doubts = holotrace.trust(holotrace.open_trace(tmp_path, cache=False)).doubts
    assert doubts["rule"].to_list() == ["cut_off_file"]
    assert doubts["sentence"][0].endswith("it ends before any device work, so it is unknown whether the job used a GPU")


def test_events_that_cannot_be_read(tmp_path: Path) -> None:
    """The reader drops an invalid event, and the rule `lost_events` reports this."""
    document = recorded("small")
    text = json.dumps(document).encode().replace(b'"ph": "X"', b'"ph": "X", "ts": {', 1)
    assert rules_of(tmp_path, text) == ["lost_events"]


def shifted(document: Document, by_us: float) -> Document:
    """Return the recording with all times moved by `by_us`."""
    moved = [{**event, "ts": event["ts"] + by_us} if "ts" in event else event for event in document["traceEvents"]]
    return {**document, "traceEvents": moved}


@pytest.mark.parametrize(("by_us", "rule"), [(3e6, "windows_apart"), (60e6, "different_jobs")])
def test_a_rank_is_shifted(tmp_path: Path, by_us: float, rule: str) -> None:
    """If rank 1 is shifted by 3 s, the recordings do not overlap; a shift of 60 s makes them look like two jobs."""
    ranks = (recorded("two_ranks-data_parallel", rank) for rank in (0, 1))
    assert rules_of(tmp_path, next(ranks), shifted(next(ranks), by_us)) == [rule]


@pytest.mark.parametrize(
    ("header", "rule"),
    [
        ({"cuda_driver_version": 12040}, "different_software"),
        ({"with_stack": 0}, "different_software"),
        ({"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]}, "different_software"),
        ({"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 64}}, "different_jobs"),
    ],
)
def test_a_rank_with_another_header(tmp_path: Path, header: dict[str, object], rule: str) -> None:
    """Another driver, option or GPU breaks the rule `different_software`; another world size, `different_jobs`."""
    ranks = [recorded("two_ranks-data_parallel", rank) for rank in (0, 1)]
    assert rules_of(tmp_path, ranks[0], {**ranks[1], **header}) == [rule]


def test_a_rank_without_a_file(tmp_path: Path) -> None:
    """If only two of four ranks have files, the job breaks `missing_ranks`; a single file breaks no rule."""
    infos = [{"backend": "nccl", "rank": rank, "world_size": 4} for rank in (0, 1)]
    ranks = [{**recorded("two_ranks-data_parallel", info["rank"]), "distributedInfo": info} for info in infos]

    assert rules_of(tmp_path, ranks[0]) == []
    assert rules_of(tmp_path, *ranks) == ["missing_ranks"]
