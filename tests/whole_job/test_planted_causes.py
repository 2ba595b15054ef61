"""The recordings of `examples/planted_causes` agree with their truth.json, and all their calls are matched."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import holotrace
from recordings import opened
from reference_data import IN_THE_REPOSITORY

RECORDINGS = IN_THE_REPOSITORY / "traces" / "planted_causes"
TRUTHS = {path.parent.name: json.loads(path.read_text()) for path in sorted(RECORDINGS.glob("*/truth.json"))}
WITH_FUNCTION = [name for name, truth in TRUTHS.items() if truth["function"]]
TOLERANCE_NS = 300_000
"""The allowed difference between the durations of a function in the trace and in truth.json.

The profiler and the job measure the function separately, so they do not start and stop at the same instant.
"""
MOST_BYTES = 300_000


def _text(name: str, rank: int) -> bytes:
    return gzip.decompress((RECORDINGS / name / f"rank{rank}.json.gz").read_bytes())


def _events(name: str, rank: int) -> list[dict[str, Any]]:
    return [event for event in json.loads(_text(name, rank))["traceEvents"] if "dur" in event]


def _planted(name: str, function: str) -> dict[tuple[int, int], tuple[int, int]]:
    """Return how often and how long (in ns) the function ran, for each rank and step."""
    counts: Counter[tuple[int, int]] = Counter()
    durations: Counter[tuple[int, int]] = Counter()
    for rank in range(TRUTHS[name]["ranks"]):
        events = _events(name, rank)
        steps = _steps(events)
        for call in (event for event in events if event["name"] == function):
            key = rank, _step_of(call, steps)
            counts[key] += 1
            durations[key] += round(call["dur"] * 1_000)
    return {key: (count, durations[key]) for key, count in counts.items()}


def _steps(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["name"].startswith("ProfilerStep#")]


def _step_of(call: dict[str, Any], steps: list[dict[str, Any]]) -> int:
    """Return the number of the step in which a call began."""
    (step,) = [step["name"] for step in steps if step["ts"] <= call["ts"] < step["ts"] + step["dur"]]
    return int(step.removeprefix("ProfilerStep#"))


def test_ten_causes_and_a_healthy_job_for_each() -> None:
    """At least ten recordings have a planted cause, and each has a healthy twin."""
    planted = {name: truth for name, truth in TRUTHS.items() if truth["planted"]}

    assert len(planted) >= 10
    assert {truth["healthy"] for truth in planted.values()} == TRUTHS.keys() - planted.keys()


@pytest.mark.parametrize("name", WITH_FUNCTION)
def test_the_planted_function_ran_as_long_as_the_truth_says(name: str) -> None:
    """The function ran only on the ranks and in the steps that the truth lists, as often and as long as listed."""
    truth = TRUTHS[name]

    planted = _planted(name, truth["function"])

    expected = {(row["rank"], row["step"]): row for row in truth["planted"]}
    assert {key: count for key, (count, _) in planted.items()} == {
        key: row["call_count"] for key, row in expected.items()
    }
    for key, (_, duration_ns) in planted.items():
        assert duration_ns == pytest.approx(expected[key]["duration_ns"], abs=TOLERANCE_NS)


@pytest.mark.parametrize("name", WITH_FUNCTION)
def test_the_healthy_job_never_calls_the_planted_function(name: str) -> None:
    """In the healthy version of the job, no rank calls the function."""
    truth = TRUTHS[name]

    assert [rank for rank in range(truth["ranks"]) if truth["function"].encode() in _text(truth["healthy"], rank)] == []


def test_the_rank_with_long_sequences_computes_longer() -> None:
    """At least a fifth of the slow rank's excess CPU time is in the forward pass, in which no rank waits."""
    truth = TRUTHS["ddp_sequence_lengths"]
    (slow,) = {row["rank"] for row in truth["planted"]}
    forwards = [
        [event["dur"] * 1_000 for event in _events("ddp_sequence_lengths", rank) if event["name"] == "## forward ##"]
        for rank in range(truth["ranks"])
    ]

    for number, row in enumerate(truth["planted"]):
        others = median(durations[number] for rank, durations in enumerate(forwards) if rank != slow)
        assert row["duration_ns"] / 5 < forwards[slow][number] - others < row["duration_ns"]


def test_a_rank_that_is_slow_in_its_backward_pass_has_backward_ranges_like_the_others() -> None:
    """The other ranks wait for the slow rank in the backward all-reduce.

    Therefore, the backward ranges of all ranks are about equally long: they differ by less than 35 %.
    """
    ranges = [
        [event["dur"] for event in _events("ddp_slow_backward", rank) if event["name"] == "## backward ##"]
        for rank in range(TRUTHS["ddp_slow_backward"]["ranks"])
    ]

    for durations in zip(*ranges, strict=True):
        assert max(durations) < 1.35 * min(durations)


@pytest.mark.parametrize("name", TRUTHS)
def test_all_calls_of_a_recording_match(name: str) -> None:
    """Every collective, send and receive is matched on all participating ranks."""
    assert holotrace.collectives(opened(RECORDINGS / name)).coverage["matched_by"].null_count() == 0


@pytest.mark.parametrize("name", TRUTHS)
def test_a_recording_is_small(name: str) -> None:
    """A recording is no larger than MOST_BYTES."""
    assert sum(path.stat().st_size for path in Path(RECORDINGS / name).iterdir()) <= MOST_BYTES
