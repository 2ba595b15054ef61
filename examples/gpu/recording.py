"""Profile a few steps, and time the same steps without the profiler."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TIMED_STEPS = 10


@dataclass
class Scenario:
    """A step to record, with the options of the profiler.

    step      runs one step
    options   arguments of `torch.profiler.profile`
    truth     facts to store beside the trace
    """

    step: Callable[[], Any]
    options: dict[str, Any] = field(default_factory=dict)
    truth: dict[str, Any] = field(default_factory=dict)
    steps: int = 2
    warm_up_steps: int = 3


def record(scenario: Scenario, folder: Path, name: str = "rank0") -> None:
    """Write FOLDER/NAME.pt.trace.json.gz, and FOLDER/NAME.truth.json with the step time measured without the profiler."""
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(scenario.warm_up_steps):
        scenario.step()
    truth = {"step_ms_without_profiler": step_ms(scenario.step), **scenario.truth, "torch": torch.__version__}
    trace = folder / f"{name}.pt.trace.json.gz"
    options: dict[str, Any] = {"record_shapes": True, **scenario.options}
    with profile(
        activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if DEVICE == "cuda" else [])],
        schedule=schedule(wait=0, warmup=1, active=scenario.steps, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(trace)),
        **options,
    ) as profiler:
        for _ in range(scenario.steps + 1):
            scenario.step()
            profiler.step()
    (folder / f"{name}.truth.json").write_text(json.dumps(truth, indent=2) + "\n")


def step_ms(step: Callable[[], Any]) -> float:
    """Return the mean duration of a step without the profiler, in milliseconds."""
    synchronize()
    begin = time.perf_counter()
    for _ in range(TIMED_STEPS):
        step()
    synchronize()
    return round((time.perf_counter() - begin) / TIMED_STEPS * 1e3, 3)


def synchronize() -> None:
    """Wait for the GPU, if there is one."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()
