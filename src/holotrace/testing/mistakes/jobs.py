"""Simulate a training job: write its trace files, and compute its step time."""

from __future__ import annotations

import gzip
from functools import cached_property
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt

from holotrace.testing.job_events import BASE_NS
from holotrace.testing.kineto_json import Event, document
from holotrace.testing.mistakes.options import JobOptions
from holotrace.testing.mistakes.recorder import Recorder, events
from holotrace.testing.mistakes.training import Training
from holotrace.testing.planted.course import Course
from holotrace.testing.planted.rank_course import Meetings

_COMPRESSION_LEVEL = 1
_STEPS_NS: dict[str, float] = {}
"""Cached results of `step_ns_of`, keyed by the `repr` of the options."""


def step_ns_of(options: JobOptions) -> float:
    """Return how long a step of this job takes."""
    key = repr(options)
    if key not in _STEPS_NS:
        _STEPS_NS[key] = TrainingJob(options).step_ns
    return _STEPS_NS[key]


class TrainingJob:
    """A simulated job: everything that its ranks do, and when."""

    def __init__(self, options: JobOptions) -> None:
        self.options = options
        self._course = Course()
        meetings = Meetings(self._course)
        self._ranks = [self._recorded(rank, meetings) for rank in range(options.ranks)]

    def _recorded(self, rank: int, meetings: Meetings) -> Recorder:
        recorder = Recorder(rank, self.options, meetings)
        Training(recorder).run()
        return recorder

    @cached_property
    def times_ns(self) -> npt.NDArray[np.int64]:
        """The time of each point of the job's `Course`, in nanoseconds."""
        return self._course.times()

    @cached_property
    def step_ns(self) -> float:
        """The mean step time over all ranks; a step ends when the device has finished its work.

        If the script marks no steps, this is the length of the recording.
        """
        ends = [self.times_ns[recorder.step_ends] for recorder in self._ranks]
        if not self.options.annotated:
            return fmean(float(of_rank[-1] - self.times_ns[0]) for of_rank in ends)
        return fmean(float(of_rank[-1] - of_rank[0]) / (len(of_rank) - 1) for of_rank in ends)

    def write(self, folder: Path) -> Path:
        """Write the trace file of each rank; equal options give equal files."""
        folder.mkdir(parents=True, exist_ok=True)
        times = (self.times_ns - BASE_NS).tolist()
        for recorder in self._ranks:
            content = document(self._header(recorder.rank), events(recorder, times), {"traceName": "trace.json"})
            path = folder / f"rank{recorder.rank}.pt.trace.json.gz"
            path.write_bytes(gzip.compress(content, _COMPRESSION_LEVEL, mtime=0))
        return folder

    def _header(self, rank: int) -> Event:
        options = self.options
        return {
            "schemaVersion": 1,
            "deviceProperties": []
            if options.on_cpu
            else [options.gpu.properties(ordinal) for ordinal in range(options.ranks * options.devices_of_a_rank)],
            "with_stack": int(options.stacks),
            "record_shapes": int(options.shapes),
            "profile_memory": int(options.memory),
            **(self._distributed(rank) if options.ranks > 1 else {}),
            "host_name": f"node-{rank // options.ranks_per_host:03}",
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_NS,
        }

    def _distributed(self, rank: int) -> Event:
        options = self.options
        ranks = list(range(options.ranks))
        world = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": options.ranks, "ranks": ranks}
        return {
            "distributedInfo": {
                "backend": "nccl",
                "rank": rank,
                "world_size": options.ranks,
                "pg_count": 1,
                "pg_config": [world],
                "nccl_version": "2.28.9",
            }
        }
