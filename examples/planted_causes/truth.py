"""Writes `truth.json`: the planted causes, as measured while the job ran."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import torch
from planting import Cause, Planted
from recording import RECORDED_STEPS, UNRECORDED_STEPS
from scenarios import Scenario

STEPS = range(UNRECORDED_STEPS, UNRECORDED_STEPS + RECORDED_STEPS)


def one_rank(planted: Planted) -> dict[str, Any]:
    """Return one rank's measurements for each recorded step."""
    return {
        "planted": [
            {"rank": planted.rank, "step": step, "duration_ns": planted.duration_ns[step], "call_count": count}
            for step, count in planted.call_count.items()
            if step in STEPS
        ],
        "computed_ns": planted.computed_ns,
    }


def write_truth(path: Path, name: str, scenario: Scenario, ranks: list[dict[str, Any]]) -> None:
    """Write the planted causes of all ranks."""
    planted = [row for rank in ranks for row in rank["planted"]] or longer_computation(scenario, ranks)
    content = {
        "scenario": name,
        "says": scenario.says,
        "healthy": scenario.healthy,
        "job": scenario.job.__name__,
        "pytorch": torch.__version__,
        "ranks": scenario.ranks,
        "recorded_steps": list(STEPS),
        "point": scenario.point or None,
        "function": frame_of(scenario.cause),
        "planted": planted,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def frame_of(cause: Cause | None) -> str | None:
    """Return the cause's name in the form in which the profiler writes Python frames."""
    return cause and f"{Path(cause.__code__.co_filename).name}({cause.__code__.co_firstlineno}): {cause.__name__}"


def longer_computation(scenario: Scenario, ranks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how much more CPU time each slow rank uses in each step than the median of the other ranks.

    In some scenarios, slow ranks compute more (for example, on longer sequences), but no function call is the cause.
    For these scenarios, `truth.json` contains this additional CPU time.
    """
    return [
        {
            "rank": slow,
            "step": step,
            "duration_ns": int(
                ranks[slow]["computed_ns"][step]
                - median(
                    rank["computed_ns"][step] for number, rank in enumerate(ranks) if number not in scenario.repeats
                )
            ),
            "call_count": 1,
        }
        for slow in scenario.repeats
        for step in STEPS
    ]
