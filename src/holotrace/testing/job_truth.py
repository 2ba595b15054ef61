"""Compute the truth about a simulated job from its plan, by plain counting instead of the library's algorithms.

The times of a rank are on its host's clock, so they are exactly the times in its file. The times of the job (when
collectives end, how long ranks wait for each other) are true times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from holotrace.testing import job_plan
from holotrace.testing.job_plan import JobPlan, PlannedCollective, RankPlan

SCHEMA = "holotrace.testing.job_truth/1"
"""Value of the key `schema`, which identifies truth files."""

GAP_THRESHOLD_NS = 30_000
"""Idle time between a launch and the start of its work counts as `kernel_wait` if shorter than this, else `other`."""

_KINDS = ("computation", "communication", "memory")


@dataclass(frozen=True)
class ShownWork:
    """Device work, with the times in its rank's file."""

    kind: str
    stream: int
    launch_start_ns: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class StepTruth:
    """A training step, as marked by the host."""

    step: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class CollectiveTruth:
    """A collective: its ranks, the rank that arrived last, and the true end time.

    The ranks of the group are consecutive, so the first and the last member define the group.
    """

    collective: str
    group: str
    first_member: int
    last_member: int
    sequence: int
    last_to_arrive: int
    end_true_ns: int


@dataclass(frozen=True)
class RankTruth:
    """The truth about one rank.

    window_ns             from the first start to the last end of device work
    busy_ns, idle_ns      time within the window with device work, and without device work
    computation_ns, communication_ns, memory_ns
                          time with at least one computation, communication or memory operation
    overlap_ns            time with both computation and communication
    states_ns             {kinds of work that run at the same time, joined by ` + `: time}
    idle_by_stream_ns     {stream: {host_wait, kernel_wait, other: time}}
    idle_of_device_ns     {host_wait, kernel_wait, other: time}, for the gaps in which no stream has work
    kernel_counts         {kind: number of kernels, copies and memsets}
    collective_wait_ns    true time that the rank spends in collectives before their last rank arrives
    """

    rank: int
    file: str
    host: str
    device: int
    clock_offset_ns: int
    clock_drift_ppb: int
    start_ns: int
    window_ns: int
    busy_ns: int
    idle_ns: int
    computation_ns: int
    communication_ns: int
    memory_ns: int
    overlap_ns: int
    states_ns: dict[str, int]
    idle_by_stream_ns: dict[str, dict[str, int]]
    idle_of_device_ns: dict[str, int]
    kernel_counts: dict[str, int]
    collective_wait_ns: int
    steps: tuple[StepTruth, ...]


@dataclass(frozen=True)
class JobTruth:
    """The truth about a job.

    straggler_rank        the rank whose computation takes straggler_delay_ns longer in every step; null if there is none
    launch_design_ns      the constants that determine the timing of host and device, by name
    """

    schema: str
    seed: int
    layer_count: int
    straggler_rank: int | None
    straggler_delay_ns: int
    launch_design_ns: dict[str, int]
    collectives: tuple[CollectiveTruth, ...]
    ranks: tuple[RankTruth, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the truth as a dict of values that JSON supports."""
        return asdict(self)


def job_truth(plan: JobPlan, files: list[tuple[str, str]]) -> JobTruth:
    """Compute the truth about a job; `files` contains the host and the file name of each rank."""
    waits = _collective_waits(plan.collectives)
    options = plan.options
    return JobTruth(
        schema=SCHEMA,
        seed=options.seed,
        layer_count=options.layers,
        straggler_rank=options.straggler_rank,
        straggler_delay_ns=options.straggler_delay_ns if options.straggler_rank is not None else 0,
        launch_design_ns=_launch_design(),
        collectives=tuple(map(_collective_truth, plan.collectives)),
        ranks=tuple(
            _rank_truth(rank_plan, options.device_of(rank_plan.rank), waits[rank_plan.rank], *file)
            for rank_plan, file in zip(plan.ranks, files, strict=True)
        ),
    )


def shown_works(rank_plan: RankPlan) -> list[ShownWork]:
    """Return the device work of a rank, sorted by start, with times on the clock of the rank's host."""
    shows = rank_plan.clock.shows
    works = [
        ShownWork(
            planned.work.kind,
            planned.work.stream,
            shows(planned.launch_start_ns),
            shows(planned.start_ns),
            shows(planned.end_ns),
        )
        for planned in rank_plan.works
    ]
    return sorted(works, key=lambda work: (work.start_ns, work.end_ns))


def state_lengths(works: Iterable[ShownWork]) -> Counter[frozenset[str]]:
    """Return, for each set of kinds of work, how long all of them and no others ran; for the empty set, the idle time.

    The set of running work changes only when work starts or ends, so it is enough to update a count of the running
    work of each kind at these times.
    """
    changes = sorted(
        change for work in works for change in ((work.start_ns, 1, work.kind), (work.end_ns, -1, work.kind))
    )
    running: Counter[str] = Counter()
    lengths: Counter[frozenset[str]] = Counter()
    for (moment_ns, step, kind), (next_ns, _, _) in pairwise(changes):
        running[kind] += step
        lengths[frozenset(+running)] += next_ns - moment_ns
    return lengths


def idle_split(works: Iterable[ShownWork]) -> dict[str, int]:
    """Split the idle time of each gap at the launch of the work that ends the gap.

    The part before the launch is `host_wait`. The part after the launch is `kernel_wait` if it is shorter than
    GAP_THRESHOLD_NS, otherwise `other`.
    """
    split = {"host_wait": 0, "kernel_wait": 0, "other": 0}
    free_ns = None
    for work in works:
        if free_ns is not None and work.start_ns > free_ns:
            launched_ns = max(free_ns, work.launch_start_ns)
            rest_ns = work.start_ns - launched_ns
            split["host_wait"] += launched_ns - free_ns
            split["kernel_wait" if rest_ns < GAP_THRESHOLD_NS else "other"] += rest_ns
        free_ns = work.end_ns if free_ns is None else max(free_ns, work.end_ns)
    return split


def _rank_truth(plan: RankPlan, device: int, collective_wait_ns: int, host: str, file: str) -> RankTruth:
    works = shown_works(plan)
    lengths = state_lengths(works)
    window_ns = max(work.end_ns for work in works) - works[0].start_ns
    idle_ns = lengths.pop(frozenset(), 0)

    def time_with(*kinds: str) -> int:
        return sum(length for running, length in lengths.items() if running.issuperset(kinds))

    return RankTruth(
        rank=plan.rank,
        file=file,
        host=host,
        device=device,
        clock_offset_ns=plan.clock.offset_ns,
        clock_drift_ppb=plan.clock.drift_ppb,
        start_ns=works[0].start_ns,
        window_ns=window_ns,
        busy_ns=window_ns - idle_ns,
        idle_ns=idle_ns,
        computation_ns=time_with("computation"),
        communication_ns=time_with("communication"),
        memory_ns=time_with("memory"),
        overlap_ns=time_with("computation", "communication"),
        states_ns={_state_name(kinds): length for kinds, length in sorted(lengths.items(), key=_by_name) if length},
        idle_by_stream_ns=_idle_by_stream(works),
        idle_of_device_ns=idle_split(works),
        kernel_counts=dict(sorted(Counter(work.kind for work in works).items())),
        collective_wait_ns=collective_wait_ns,
        steps=_steps(plan),
    )


def _idle_by_stream(works: list[ShownWork]) -> dict[str, dict[str, int]]:
    by_stream = sorted(((work.stream, work) for work in works), key=itemgetter(0))
    return {
        str(stream): idle_split(work for _, work in pairs) for stream, pairs in groupby(by_stream, key=itemgetter(0))
    }


def _steps(plan: RankPlan) -> tuple[StepTruth, ...]:
    shows = plan.clock.shows
    return tuple(StepTruth(step.step, shows(step.start_ns), shows(step.end_ns)) for step in plan.steps)


def _state_name(kinds: frozenset[str]) -> str:
    return " + ".join(kind for kind in _KINDS if kind in kinds)


def _by_name(item: tuple[frozenset[str], int]) -> str:
    return _state_name(item[0])


def _collective_waits(collectives: Iterable[PlannedCollective]) -> Counter[int]:
    waits: Counter[int] = Counter()
    for collective in collectives:
        waits.update(dict(zip(collective.members, collective.waited_ns, strict=True)))
    return waits


def _collective_truth(collective: PlannedCollective) -> CollectiveTruth:
    return CollectiveTruth(
        collective.name,
        collective.group,
        collective.members[0],
        collective.members[-1],
        collective.sequence,
        collective.last_to_arrive,
        collective.end_ns,
    )


def _launch_design() -> dict[str, int]:
    return {
        "launch_call": job_plan.LAUNCH_CALL_NS,
        "launch_latency": job_plan.LAUNCH_LATENCY_NS,
        "stream_gap": job_plan.STREAM_GAP_NS,
        "data_loading": job_plan.DATA_LOADING_NS,
    }
