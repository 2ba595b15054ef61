"""The options of a simulated job, and the delays to plant in it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

from holotrace.errors import InvalidOptionError

Backend = Literal["nccl", "gloo"]

CauseKind = Literal[
    "slow_kernel",
    "slow_loading",
    "garbage_collection",
    "python_function",
    "late_start",
    "host_gap",
    "slow_host",
    "slow_microbatch",
]
"""The kinds of delays:

    slow_kernel         a layer (with gloo: an operator) takes longer on this rank
    slow_loading        the data loader takes longer
    garbage_collection  Python collects garbage before the forward pass
    python_function     a function of the training script sleeps before the forward pass
    late_start          the first kernel of the step starts long after its launch
    host_gap            before the forward pass, the host does nothing that the profiler records
    slow_host           the host takes longer for every operator, so the device waits for launches
    slow_microbatch     all layers take longer in one microbatch
"""

Damage = Literal["none", "missing_rank", "missing_sends", "missing_launches", "cut"]
"""Data missing from the recording:

    missing_rank      the file of one rank that causes no delay
    missing_sends     some sends (and, with NCCL, receives) of one rank that causes no delay
    missing_launches  on every rank, some of the calls that launch kernels
    cut               the first third of the events of one rank that causes no delay
"""

FIRST_STEP = 10

DEVICE_KINDS: tuple[CauseKind, ...] = (
    "slow_kernel",
    "slow_loading",
    "garbage_collection",
    "python_function",
    "late_start",
    "host_gap",
    "slow_host",
    "slow_microbatch",
)
HOST_KINDS: tuple[CauseKind, ...] = tuple(kind for kind in DEVICE_KINDS if kind not in ("late_start", "slow_host"))


@dataclass(frozen=True)
class Cause:
    """A delay planted on a rank.

    step        the step in which the delay happens; None for every step
    microbatch  for slow_microbatch and slow_kernel, the delayed microbatch
    layer       for slow_kernel, the delayed layer, counted within the rank's stage
    """

    kind: CauseKind
    rank: int
    delay_ns: int
    step: int | None = None
    microbatch: int = 0
    layer: int = 0

    def happens_in(self, step: int) -> bool:
        """Return whether the cause is planted in this step."""
        return self.step is None or self.step == step


@dataclass(frozen=True)
class PlantedOptions:
    """The options of a simulated job.

    data, tensor, pipeline  number of ranks along each axis; their product is the size of the job
    layers                  number of layers in each pipeline stage
    layer_ns                time to compute the forward pass of a layer in one microbatch; the backward pass takes twice as long
    clock_offset_ns         how far the hosts' clocks may be off, in either direction
    clock_drift_ppb         how much too fast or too slow the clocks may run, in parts per 10^9
    jitter                  how much a duration may vary in either direction, as a fraction of the duration
    has_stacks              whether Python functions and modules are recorded (with_stack=True)
    has_waits               whether stream waits are recorded (enable_cuda_sync_events)
    """

    backend: Backend = "nccl"
    data: int = 8
    tensor: int = 1
    pipeline: int = 1
    steps: int = 3
    microbatches: int = 1
    layers: int = 2
    layer_ns: int = 400_000
    ranks_per_host: int = 8
    clock_offset_ns: int = 0
    clock_drift_ppb: int = 0
    jitter: float = 0.002
    has_stacks: bool = True
    has_waits: bool = True
    causes: tuple[Cause, ...] = field(default=())
    damage: Damage = "none"
    seed: int = 0

    def __post_init__(self) -> None:
        for cause in self.causes:
            if not 0 <= cause.rank < self.ranks:
                message = f"a cause is planted on rank {cause.rank}: the ranks are 0 to {self.ranks - 1}"
                raise InvalidOptionError(message)

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.data * self.tensor * self.pipeline

    def stage_of(self, rank: int) -> int:
        """Return the pipeline stage of a rank."""
        return rank // (self.data * self.tensor)

    def tensor_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks that share the layers of this rank."""
        first = rank - rank % self.tensor
        return tuple(range(first, first + self.tensor))

    def data_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks with the same parameters as this rank."""
        stage_size = self.data * self.tensor
        first = self.stage_of(rank) * stage_size + rank % self.tensor
        return tuple(range(first, first + stage_size, self.tensor))

    def pipeline_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks of this rank's pipeline, which pass microbatches to each other."""
        stage_size = self.data * self.tensor
        return tuple(range(rank % stage_size, self.ranks, stage_size))

    @classmethod
    def drawn(cls, seed: int, *, most_ranks: int = 512) -> PlantedOptions:
        """Draw a job of 8 to `most_ranks` ranks; large jobs are rare."""
        dice = random.Random(f"planted {seed}")  # noqa: S311 -- not a secret
        sizes = [size for size in _SIZES if size <= most_ranks]
        ranks = dice.choices(sizes, [1 / size for size in sizes])[0]
        backend: Backend = dice.choices(("nccl", "gloo"), (3, 1))[0] if ranks <= _MOST_GLOO_RANKS else "nccl"
        tensor, pipeline = _axes(dice, backend, ranks)
        job = cls(
            backend=backend,
            data=ranks // tensor // pipeline,
            tensor=tensor,
            pipeline=pipeline,
            steps=dice.choice((2, 3, 4)) if ranks <= _MOST_GLOO_RANKS else 2,
            microbatches=1 if pipeline == 1 else dice.choice((pipeline, 2 * pipeline)),
            layers=dice.choice((2, 3)) if pipeline == 1 else 1,
            ranks_per_host=dice.choice((ranks, 8, 4)),
            clock_offset_ns=dice.choice((0, 1_000_000, 2_000_000_000)),
            clock_drift_ppb=dice.choice((0, 10_000, 50_000)),
            has_stacks=dice.random() < _OFTEN,
            has_waits=dice.random() < _OFTEN,
            damage=dice.choices(("none", "missing_rank", "missing_sends", "missing_launches", "cut"), (6, 1, 1, 1, 1))[
                0
            ],
            seed=seed,
        )
        return job.with_causes(dice)

    def with_causes(self, dice: random.Random) -> PlantedOptions:
        """Plant one cause or, less often, several causes, each on a different rank and in a different step."""
        count = min(self.steps, dice.choices((1, 2, 3), (6, 3, 1))[0])
        steps = dice.sample(range(FIRST_STEP, FIRST_STEP + self.steps), count)
        ranks = dice.sample(range(self.ranks), count)
        causes = tuple(
            self._cause(dice, rank, step if count > 1 else dice.choice((step, None)))
            for rank, step in zip(ranks, steps, strict=True)
        )
        return PlantedOptions(**{**self.__dict__, "causes": causes})

    def _cause(self, dice: random.Random, rank: int, step: int | None) -> Cause:
        return Cause(
            dice.choice(DEVICE_KINDS if self.backend == "nccl" else HOST_KINDS),
            rank,
            dice.choice((3_000_000, 8_000_000, 20_000_000)),
            step,
            microbatch=dice.randrange(self.microbatches),
            layer=dice.randrange(self.layers),
        )


_SIZES = (8, 16, 32, 64, 128, 256, 512)
_MOST_GLOO_RANKS = 64
_OFTEN = 0.7


def _axes(dice: random.Random, backend: Backend, ranks: int) -> tuple[int, int]:
    """Return the number of ranks along the tensor axis and along the pipeline axis."""
    if backend == "gloo":
        return 1, dice.choice((1, ranks if ranks <= _LONGEST_PIPELINE else 1))
    possible = [(tensor, pipeline) for tensor, pipeline in _AXES if tensor * pipeline <= ranks]
    return dice.choice(possible)


_AXES = ((1, 1), (1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (4, 1), (2, 2), (2, 4), (4, 2), (4, 8), (8, 4))
_LONGEST_PIPELINE = 8
