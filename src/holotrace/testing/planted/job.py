"""Simulate a job with planted delays: write its trace files, and compute how much waiting each delay costs.

The cost of a cause is how much longer all ranks together wait in the job than in the same job without this cause. This
true cost does not depend on how an analysis attributes waiting. If the planted delays are the only reason why ranks
wait, an exact analysis reports the true cost. If ranks also wait for other reasons, as in a pipeline, the analysis may
report a different cost, because several causes may be responsible for the same part of a wait.
"""

from __future__ import annotations

import gzip
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holotrace.testing.job_events import BASE_NS
from holotrace.testing.job_plan import HostClock
from holotrace.testing.kineto_json import Event, document, microseconds
from holotrace.testing.planted.course import Activity, Course
from holotrace.testing.planted.delay_costs import DelayCosts
from holotrace.testing.planted.options import FIRST_STEP, Cause, PlantedOptions
from holotrace.testing.planted.programs import program
from holotrace.testing.planted.rank_course import Meetings, PlannedCall, RankCourse, Row

_COMPRESSION_LEVEL = 1
_SOMETIMES = 0.2


@dataclass(frozen=True)
class CauseTruth:
    """The cost of a planted cause.

    waited_ns   how much waiting the cause adds, summed over all ranks
    others_ns   the same sum over all ranks except the delayed rank, whose own waits the cause may shorten
    """

    cause: Cause
    waited_ns: int
    others_ns: int


class PlantedJob:
    """A simulated job with planted delays, and the truth about it."""

    def __init__(self, options: PlantedOptions) -> None:
        self.options = options
        self._course = Course()
        meetings = Meetings(self._course)
        self._ranks = [self._rank_course(rank, meetings) for rank in range(options.ranks)]

    def _rank_course(self, rank: int, meetings: Meetings) -> RankCourse:
        self._course.rank = rank
        rank_course = RankCourse(rank, self.options, meetings)
        steps = program(rank_course, self.options)
        for step in range(FIRST_STEP, FIRST_STEP + self.options.steps):
            steps.step(step)
        return rank_course

    @cached_property
    def waited_ns(self) -> npt.NDArray[np.int64]:
        """The total time that each rank waits for other ranks."""
        return self._waited(self.times)

    @cached_property
    def causes(self) -> tuple[CauseTruth, ...]:
        """The planted causes with their costs."""
        return tuple(self._truth(number, cause) for number, cause in enumerate(self.options.causes))

    @cached_property
    def times(self) -> npt.NDArray[np.int64]:
        """The true time of each point of the simulation."""
        return self._course.times()

    @cached_property
    def delay_costs(self) -> Counter[tuple[int, Activity]]:
        """For each activity of each rank, how long all ranks together wait because of it, in nanoseconds."""
        calls = [call for rank_course in self._ranks for call in rank_course.calls]
        return DelayCosts(self._course, calls, self.times).total()

    @cached_property
    def critical_path(self) -> Counter[tuple[int, Activity]]:
        """How much of the job's critical path each activity of each rank takes, in nanoseconds."""
        spent: Counter[tuple[int, Activity]] = Counter()
        point = int(self.times.argmax())
        while (before := self._course.binding(point, self.times)) is not None:
            activity = self._course.activities[point]
            spent[self._course.ranks[point], activity] += before[1]
            point = before[0]
        return spent

    @cached_property
    def missing_rank(self) -> int | None:
        """The rank whose file is missing."""
        return self._harmless_rank if self.options.damage == "missing_rank" else None

    def write(self, folder: Path) -> Path:
        """Write the trace file of each rank; equal options give equal files."""
        folder.mkdir(parents=True, exist_ok=True)
        for rank_course in self._ranks:
            if rank_course.rank != self.missing_rank:
                content = gzip.compress(self._content(rank_course), _COMPRESSION_LEVEL, mtime=0)
                (folder / f"rank{rank_course.rank}.pt.trace.json.gz").write_bytes(content)
        return folder

    def _truth(self, number: int, cause: Cause) -> CauseTruth:
        saved = self.waited_ns - self._waited(self._course.times(without=[number]))
        return CauseTruth(cause, int(saved.sum()), int(np.delete(saved, cause.rank).sum()))

    def _waited(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.array([_waits(rank_course.calls, times) for rank_course in self._ranks], np.int64)

    @cached_property
    def _clocks(self) -> list[HostClock]:
        dice = random.Random(f"{self.options.seed} clocks")  # noqa: S311 -- not a secret
        host_count = -(-self.options.ranks // self.options.ranks_per_host)
        offset_ns, drift_ppb = self.options.clock_offset_ns, self.options.clock_drift_ppb
        others = (
            HostClock(round(dice.uniform(-1, 1) * offset_ns), round(dice.uniform(-1, 1) * drift_ppb))
            for _ in range(1, host_count)
        )
        return [HostClock(), *others]

    @cached_property
    def _harmless_rank(self) -> int:
        """The last rank without a planted cause."""
        culprits = {cause.rank for cause in self.options.causes}
        return max(set(range(self.options.ranks)) - culprits, default=self.options.ranks - 1)

    def _content(self, rank_course: RankCourse) -> bytes:
        rank = rank_course.rank
        clock = self._clocks[rank // self.options.ranks_per_host]
        shown = [clock.shows(time) - BASE_NS for time in self.times[_points(rank_course.rows)].tolist()]
        rows = self._recorded(rank_course.rows, rank)
        events = (_event(row, rank, shown[2 * place], shown[2 * place + 1]) for place, row in rows)
        return document(self._header(rank), events, {"traceName": f"rank{rank}.pt.trace.json"})

    def _recorded(self, rows: list[Row], rank: int) -> Iterator[tuple[int, Row]]:
        """Yield the rows that the damage leaves in the file, with their positions among all rows."""
        damage, is_harmless = self.options.damage, rank == self._harmless_rank
        dice = random.Random(f"{self.options.seed} damage {rank}")  # noqa: S311 -- not a secret
        for place, row in enumerate(rows):
            is_lost = {
                "cut": is_harmless and 3 * place < len(rows),
                "missing_sends": is_harmless
                and row.name.endswith(("SendRecv", ":send"))
                and dice.random() < _SOMETIMES,
                "missing_launches": row.name == "cudaLaunchKernel" and dice.random() < _SOMETIMES,
            }
            if not is_lost.get(damage, False):
                yield place, row

    def _header(self, rank: int) -> Event:
        options = self.options
        groups = {"0": ("default_pg", tuple(range(options.ranks)))}
        if options.backend == "nccl":
            groups["1"] = ("tp", options.tensor_group(rank))
            groups["2"] = ("dp", options.data_group(rank))
            groups["3"] = ("pp", options.pipeline_group(rank))
        configured = [
            {"pg_name": name, "pg_desc": description, "pg_size": len(ranks), "ranks": list(ranks)}
            for name, (description, ranks) in groups.items()
        ]
        return {
            "schemaVersion": 1,
            "deviceProperties": [],
            "with_stack": int(options.has_stacks),
            "record_shapes": 1,
            "distributedInfo": {
                "backend": options.backend,
                "rank": rank,
                "world_size": options.ranks,
                "pg_count": len(configured),
                "pg_config": configured,
            },
            "host_name": f"node-{rank // options.ranks_per_host:03}",
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_NS,
        }


def _waits(calls: Iterable[PlannedCall], times: npt.NDArray[np.int64]) -> int:
    return sum(int(times[call.arrived] - times[call.start]) for call in calls)


def _points(rows: list[Row]) -> list[int]:
    return [point for row in rows for point in (row.start, row.end)]


def _event(row: Row, rank: int, start_ns: int, end_ns: int) -> dict[str, Any]:
    process = 4_000 + rank
    track = (process, process + row.thread) if row.stream < 0 else (row.args["device"], row.stream)
    return {
        "ph": "X",
        "cat": row.category,
        "name": row.name,
        "pid": track[0],
        "tid": track[1],
        "ts": microseconds(start_ns),
        "dur": microseconds(end_ns - start_ns),
        "args": row.args,
    }
