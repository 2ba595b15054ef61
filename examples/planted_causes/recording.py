"""Process groups, the profiler and the files of a recording."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed as dist
from planting import Planted
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, schedule

UNRECORDED_STEPS = 3
RECORDED_STEPS = 3
SHORTEST_FRAME_US = 50


@contextmanager
def process_group(rank: int, ranks: int, meeting: str) -> Iterator[None]:
    """Join the group of all ranks.

    Each process uses only one thread, so that the processes do not slow each other down.
    """
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    dist.barrier()
    time.sleep(1.5)  # the processes have just loaded PyTorch: let the machine settle
    yield
    dist.barrier()
    dist.destroy_process_group()


def recorded_steps(path: Path, planted: Planted) -> Iterator[int]:
    """Yield the numbers of the steps to train, and record the last steps with shapes, stacks and modules."""
    with PoliteProfile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=UNRECORDED_STEPS - 1, warmup=1, active=RECORDED_STEPS, repeat=1),
        record_shapes=True,
        with_stack=True,
        with_modules=True,
        experimental_config=_ExperimentalConfig(record_python_gc_info=True),
        on_trace_ready=lambda profiler: write(profiler, path),
    ) as profiler:
        for step in range(UNRECORDED_STEPS + RECORDED_STEPS):
            planted.step = step
            yield step
            profiler.step()


class PoliteProfile(profile):
    """A profiler that lowers its process's priority before it stops, so stopping does not slow other ranks."""

    def stop_trace(self) -> None:
        """Stop recording."""
        if hasattr(os, "sched_setscheduler"):  # Linux
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        super().stop_trace()


def write(profiler: profile, path: Path) -> None:
    """Write the recording without most of its Python frames, which would make up nine tenths of the file.

    Frames shorter than 50 µs are left out, except frames of modules. Frames called by a short frame are
    even shorter, so they are left out too.
    """
    with TemporaryDirectory() as folder:
        plain = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(plain))
        trace = json.loads(plain.read_bytes())
    trace["traceEvents"] = [event for event in trace["traceEvents"] if not is_short_frame(event)]
    text = json.dumps(trace, separators=(",", ":")).replace(',{"ph":', ',\n{"ph":')
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def is_short_frame(event: dict[str, Any]) -> bool:
    """Return whether the event is a Python frame to leave out."""
    return (
        event.get("cat") == "python_function"
        and event["dur"] < SHORTEST_FRAME_US
        and not event["name"].startswith("nn.Module: ")
    )
