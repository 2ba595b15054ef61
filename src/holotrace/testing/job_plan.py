"""Simulate the start and end times of a training job's calls and device work.

All times are true times, not the times that host clocks show. The host of each rank makes calls one after another, and
launches work ahead of its device. Work begins when its stream is free, its dependencies have ended, and its launch has
reached the device. A collective begins on each rank as soon as that rank is ready for it. It ends on all ranks at the
same time, `duration_ns` after it has begun on the last rank.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from holotrace.errors import InvalidOptionError
from holotrace.testing.training_step import (
    COMPUTE_STREAM,
    GATHER_STREAM,
    REDUCE_STREAM,
    WORLD_GROUP,
    Call,
    DeviceWork,
    TrainingStep,
    training_step,
)

Thread = Literal["main", "backward"]

BEGIN_NS = 1_795_209_476_000_000_000
"""True time of the start of a job's recording."""

FIRST_STEP = 10
"""Number of the first recorded step; during earlier steps, the profiler waited and warmed up."""

OPERATOR_NS = 1_500
"""Host time that an operator takes before it calls a nested operator, and again after the nested one returns."""

LAUNCH_CALL_NS = 3_000
"""Host time of a launching call."""

LAUNCH_LATENCY_NS = 4_500
"""Time from the start of a launching call until its work can begin on an idle device."""

STREAM_GAP_NS = 1_100
"""Time from the end of a kernel or copy to the start of the next work on its stream, or of work that depends on it."""

DATA_LOADING_NS = 640_000
"""Host time to fetch a batch; meanwhile, the device is idle."""

_WAKE_UP_NS = 6_000
_JITTER = 0.03


@dataclass(frozen=True)
class JobOptions:
    """The options of a simulated job; `holotrace.testing.write_job` describes them."""

    ranks: int
    steps: int
    layers: int
    straggler_rank: int | None
    straggler_delay_ns: int
    ranks_per_host: int
    clock_offset_ns: int
    clock_drift_ppb: int
    seed: int

    def __post_init__(self) -> None:
        for name in ("ranks", "steps", "layers", "ranks_per_host"):
            if getattr(self, name) < 1:
                message = f"{name}={getattr(self, name)}: must be at least 1; give a larger number"
                raise InvalidOptionError(message)
        if self.straggler_rank is not None and not 0 <= self.straggler_rank < self.ranks:
            message = f"straggler_rank={self.straggler_rank}: the ranks are 0 to {self.ranks - 1}"
            raise InvalidOptionError(message)

    def extra_ns_per_computation(self, rank: int) -> int:
        """Return how much longer a forward or backward kernel takes on this rank; 0 if it is not the straggler."""
        if rank != self.straggler_rank:
            return 0
        return self.straggler_delay_ns // training_step(self.layers).autograd_work_count

    def device_of(self, rank: int) -> int:
        """Return the device ordinal of a rank on its host."""
        return rank % self.ranks_per_host

    def host_of(self, rank: int) -> int:
        """Return the number of the host that a rank runs on."""
        return rank // self.ranks_per_host

    def group_of(self, group: str, rank: int) -> range:
        """Return the ranks of the process group to which a rank belongs; `group` is the name of the group."""
        if group == WORLD_GROUP:
            return range(self.ranks)
        first = rank - rank % self.ranks_per_host
        return range(first, min(first + self.ranks_per_host, self.ranks))


@dataclass(frozen=True)
class HostClock:
    """The clock of one host: `offset_ns` ahead of true time at `BEGIN_NS`; it gains `drift_ppb` ns per second."""

    offset_ns: int = 0
    drift_ppb: int = 0

    def shows(self, true_ns: int) -> int:
        """Return the time that this clock shows at a true time, in whole nanoseconds."""
        return true_ns + self.offset_ns + (true_ns - BEGIN_NS) * self.drift_ppb // 1_000_000_000


@dataclass
class PlannedWork:
    """Device work and the call that launches it; `start_ns` and `end_ns` are 0 until the work has run."""

    work: DeviceWork
    launch_start_ns: int
    launch_end_ns: int
    start_ns: int = 0
    end_ns: int = 0
    sequence: int = 0


@dataclass(frozen=True)
class PlannedCall:
    """A host operation; `spans` contains the start and end of each of its operators, outermost first."""

    call: Call
    step: int
    thread: Thread
    spans: tuple[tuple[int, int], ...]
    works: tuple[PlannedWork, ...]


@dataclass(frozen=True)
class Span:
    """A span of the main thread: an annotation, or a call in which the thread waits."""

    name: str
    step: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class PlannedCollective:
    """One operation of a process group: when it began on each member, and when it ended on all members."""

    name: str
    group: str
    members: range
    sequence: int
    start_ns: tuple[int, ...]
    end_ns: int

    @property
    def last_to_arrive(self) -> int:
        """The rank that arrived last, for which all other ranks waited."""
        return self.members[self.start_ns.index(max(self.start_ns))]

    @property
    def waited_ns(self) -> tuple[int, ...]:
        """The time that each member waited for the last member to arrive."""
        return tuple(max(self.start_ns) - start_ns for start_ns in self.start_ns)


@dataclass
class RankPlan:
    """Everything that happens on one rank, in true time."""

    rank: int
    clock: HostClock
    calls: list[PlannedCall] = field(default_factory=list)
    steps: list[Span] = field(default_factory=list)
    annotations: list[Span] = field(default_factory=list)
    waits: list[Span] = field(default_factory=list)

    @property
    def works(self) -> list[PlannedWork]:
        """All device work, in launch order."""
        return [work for call in self.calls for work in call.works]


@dataclass(frozen=True)
class JobPlan:
    """Everything that happens in a job, in true time."""

    options: JobOptions
    ranks: tuple[RankPlan, ...]
    collectives: tuple[PlannedCollective, ...]


def plan_job(options: JobOptions) -> JobPlan:
    """Simulate the job step by step; each step is simulated on all ranks before the next step."""
    step = training_step(options.layers)
    clocks = _clocks(options)
    machines = [_Machine(rank, clocks[options.host_of(rank)], options) for rank in range(options.ranks)]
    meeting = _Meeting(options, machines)
    for number in range(FIRST_STEP, FIRST_STEP + options.steps):
        _play_step(number, step, machines, meeting)
    return JobPlan(options, tuple(machine.plan for machine in machines), tuple(meeting.held))


def _play_step(number: int, step: TrainingStep, machines: list[_Machine], meeting: _Meeting) -> None:
    reductions = [machine.play_until_gradients(number, step) for machine in machines]
    for one_per_rank in zip(*reductions, strict=True):
        meeting.hold(one_per_rank)
    meeting.hold([machine.play_update(step) for machine in machines])
    for machine in machines:
        machine.finish_step(step)


def _clocks(options: JobOptions) -> list[HostClock]:
    """Return the clock of each host; only the first host's clock shows true time."""
    dice = random.Random(f"{options.seed} clocks")  # noqa: S311 -- not a secret
    host_count = math.ceil(options.ranks / options.ranks_per_host)
    others = (
        HostClock(
            round(dice.uniform(-1, 1) * options.clock_offset_ns), round(dice.uniform(-1, 1) * options.clock_drift_ppb)
        )
        for _ in range(1, host_count)
    )
    return [HostClock(), *others]


class _Machine:
    """The host and the device of a rank during the simulation."""

    def __init__(self, rank: int, clock: HostClock, options: JobOptions) -> None:
        self.plan = RankPlan(rank, clock)
        self.free_ns = dict.fromkeys((COMPUTE_STREAM, REDUCE_STREAM, GATHER_STREAM), 0)
        self._dice = random.Random(f"{options.seed} rank {rank}")  # noqa: S311 -- not a secret
        self._host_ns = BEGIN_NS + round(self._dice.random() * 20_000)
        self._step = FIRST_STEP
        self._step_start_ns = 0
        self._extra_ns = options.extra_ns_per_computation(rank)

    def play_until_gradients(self, number: int, step: TrainingStep) -> list[PlannedWork]:
        """Simulate a step up to the launch of the last all-reduce; return the all-reduces, which run later."""
        self._step, self._step_start_ns = number, self._host_ns
        self._annotated("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", ())
        self._annotated("Optimizer.zero_grad#AdamW.zero_grad", step.load)
        self._annotated("DistributedDataParallel.forward", step.forward)
        reductions = []
        for calls, all_reduce in step.gradients:
            for call in calls:
                self._play(call, "backward")
            reductions.append(self._launch_collective(all_reduce, "backward", self.free_ns[COMPUTE_STREAM]))
        return reductions

    def play_update(self, step: TrainingStep) -> PlannedWork:
        """Simulate the optimizer, which waits for all gradients; return the all-gather, which is simulated later."""
        self.free_ns[COMPUTE_STREAM] = max(self.free_ns[COMPUTE_STREAM], self.free_ns[REDUCE_STREAM])
        self._annotated("Optimizer.step#AdamW.step", step.update)
        return self._launch_collective(step.gather, "main", self.free_ns[COMPUTE_STREAM])

    def finish_step(self, step: TrainingStep) -> None:
        """Copy the loss to the host when the parameters have been gathered, and wait for the copy."""
        self.free_ns[COMPUTE_STREAM] = max(self.free_ns[COMPUTE_STREAM], self.free_ns[GATHER_STREAM])
        self._play(step.loss_out, "main")
        wait_start_ns = self._host_ns
        self._host_ns = max(wait_start_ns, self.free_ns[COMPUTE_STREAM]) + _WAKE_UP_NS
        self.plan.waits.append(Span("cudaStreamSynchronize", self._step, wait_start_ns, self._host_ns))
        self._host_ns += self._about(OPERATOR_NS)
        self.plan.steps.append(Span(f"ProfilerStep#{self._step}", self._step, self._step_start_ns, self._host_ns))

    def _annotated(self, name: str, calls: Iterable[Call]) -> None:
        start_ns = self._host_ns
        self._host_ns += self._about(DATA_LOADING_NS if name.startswith("enumerate") else OPERATOR_NS)
        for call in calls:
            self._play(call, "main")
        self._host_ns += self._about(OPERATOR_NS)
        self.plan.annotations.append(Span(name, self._step, start_ns, self._host_ns))

    def _play(self, call: Call, thread: Thread) -> None:
        """Launch the device work of a call, and run it on the device."""
        for planned in self._launch(call, thread):
            extra_ns = self._extra_ns if call.is_autograd else 0
            stream = planned.work.stream
            planned.start_ns = max(self.free_ns[stream] + STREAM_GAP_NS, planned.launch_start_ns + LAUNCH_LATENCY_NS)
            planned.end_ns = planned.start_ns + self._about(planned.work.duration_ns) + extra_ns
            self.free_ns[stream] = planned.end_ns

    def _launch_collective(self, call: Call, thread: Thread, ready_ns: int) -> PlannedWork:
        """Launch a collective that starts when its stream is free, but not before `ready_ns`."""
        (planned,) = self._launch(call, thread)
        free_ns = max(self.free_ns[planned.work.stream], ready_ns)
        planned.start_ns = max(free_ns + STREAM_GAP_NS, planned.launch_start_ns + LAUNCH_LATENCY_NS)
        return planned

    def _launch(self, call: Call, thread: Thread) -> tuple[PlannedWork, ...]:
        """Run the operators of a call on the host, and launch the device work of the call."""
        starts = [self._pass_time(OPERATOR_NS) for _ in call.operators]
        self._pass_time(OPERATOR_NS)
        works = tuple(self._launch_one(work) for work in call.works)
        ends = [self._pass_time(OPERATOR_NS) for _ in call.operators]
        spans = tuple(zip(starts, reversed(ends), strict=True))
        self.plan.calls.append(PlannedCall(call, self._step, thread, spans, works))
        return works

    def _launch_one(self, work: DeviceWork) -> PlannedWork:
        start_ns = self._pass_time(LAUNCH_CALL_NS)
        planned = PlannedWork(work, start_ns, self._host_ns)
        self._pass_time(OPERATOR_NS)
        return planned

    def _pass_time(self, duration_ns: int) -> int:
        """Advance the host's time; return the previous time."""
        before_ns = self._host_ns
        self._host_ns += self._about(duration_ns)
        return before_ns

    def _about(self, duration_ns: int) -> int:
        return duration_ns + int(duration_ns * _JITTER * self._dice.random())


class _Meeting:
    """Runs the collectives, in which ranks wait for each other."""

    def __init__(self, options: JobOptions, machines: Sequence[_Machine]) -> None:
        self.held: list[PlannedCollective] = []
        self._options = options
        self._machines = machines
        self._sequences: dict[tuple[str, int], int] = {}

    def hold(self, one_per_rank: Sequence[PlannedWork]) -> None:
        """Run a collective that all ranks have launched, either once in the group of all ranks or once per host."""
        group = one_per_rank[0].work.collective.group
        step = self._options.ranks if group == WORLD_GROUP else self._options.ranks_per_host
        for first in range(0, self._options.ranks, step):
            self._run(group, self._options.group_of(group, first), one_per_rank)

    def _run(self, group: str, members: range, one_per_rank: Sequence[PlannedWork]) -> None:
        sequence = self._sequences[group, members[0]] = self._sequences.get((group, members[0]), 0) + 1
        parts = [one_per_rank[rank] for rank in members]
        for rank, part in zip(members, parts, strict=True):
            self._arrive(rank, part)
        end_ns = max(part.start_ns for part in parts) + parts[0].work.duration_ns
        for rank, part in zip(members, parts, strict=True):
            part.end_ns, part.sequence = end_ns, sequence
            self._machines[rank].free_ns[part.work.stream] = end_ns
        starts = tuple(part.start_ns for part in parts)
        self.held.append(PlannedCollective(parts[0].work.collective.name, group, members, sequence, starts, end_ns))

    def _arrive(self, rank: int, part: PlannedWork) -> None:
        """Make a collective start on a rank only after the previous collective on the same stream has ended."""
        part.start_ns = max(part.start_ns, self._machines[rank].free_ns[part.work.stream] + STREAM_GAP_NS)
