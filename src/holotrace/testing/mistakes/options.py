"""The options of a simulated training job, including its mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from holotrace.testing.mistakes.devices import H100, GpuModel

Model = Literal["transformer", "images", "experts"]
Parallelism = Literal["data", "tensor", "experts"]


@dataclass(frozen=True)
class JobOptions:
    """The options of a simulated job.

    precision        precision of matrix products
    autocast         whether the weights are float32, and are converted to `precision` for each product
    compiled         whether torch.compile compiled the blocks of the network
    tokens           tokens per rank and step; for the model `images`, the number of images
    ranks_per_host   ranks on a host; with tensor parallelism, these ranks form a group
    annotated        whether the script marks its steps (`profiler.step()`); if not, the whole recording is one step
    on_cpu           whether the host computes everything, without a GPU
    microbatches     how often a step runs forward and backward before it updates the weights
    reads_loss       whether the script logs the loss of each step
    stacks           whether Python functions and modules are recorded (with_stack=True)
    shapes           whether the inputs of operators are recorded (record_shapes=True)
    memory           whether allocations are recorded (profile_memory=True)
    sync_events      whether stream waits are recorded (enable_cuda_sync_events)
    host_factor      factor on the host's time: how slow the processor is
    link_gb_per_s    bandwidth of each rank's link
    link_latency_ns  the minimum duration of a collective
    memory_before    bytes allocated before the recording begins
    unused_reserved  bytes that the allocator reserves but cannot use
    uneven           how much a rank's work in a step can differ from the mean over all ranks, as a fraction of the mean
    jitter           largest random change of each duration, as a fraction of the duration
    mistakes         the planted mistakes by name, each with an amount (a time in ns, a count or a fraction)
    mistake_rank     the only rank that makes the mistakes; None if all ranks make them
    remedies         good practices that most jobs lack, by name, with amounts as in `mistakes`
    """

    seed: int = 0
    gpu: GpuModel = H100
    model: Model = "transformer"
    precision: str = "bfloat16"
    autocast: bool = True
    compiled: bool = False
    layers: int = 4
    hidden: int = 2048
    heads: int = 16
    tokens: int = 8192
    sequence: int = 1024
    vocabulary: int = 32_000
    steps: int = 5
    annotated: bool = True
    on_cpu: bool = False
    microbatches: int = 1
    reads_loss: bool = False
    ranks: int = 1
    ranks_per_host: int = 8
    parallelism: Parallelism = "data"
    stacks: bool = True
    shapes: bool = True
    memory: bool = False
    sync_events: bool = False
    host_factor: float = 1.0
    link_gb_per_s: float = 200.0
    link_latency_ns: int = 25_000
    memory_before: int = 8 << 30
    unused_reserved: int = 1 << 30
    uneven: float = 0.0
    jitter: float = 0.01
    mistakes: Mapping[str, float] = field(default_factory=dict)
    mistake_rank: int | None = None
    remedies: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_half(self) -> bool:
        """Whether the activations have 16 bits."""
        return self.precision not in ("float64", "float32", "tf32")

    @property
    def element_bytes(self) -> int:
        """Size of one element of the activations, in bytes."""
        return 2 if self.is_half else 8 if self.precision == "float64" else 4

    @property
    def element_type(self) -> str:
        """Type of the activations, as the profiler writes it."""
        return {
            "bfloat16": "c10::BFloat16",
            "float16": "c10::Half",
            "float8": "c10::BFloat16",
            "float64": "double",
        }.get(self.precision, "float")

    @property
    def weight_type(self) -> str:
        """The profiler's name for the type of the loss and of the weights that the optimizer updates."""
        return "double" if self.precision == "float64" else "float"

    @property
    def devices_of_a_rank(self) -> int:
        """The number of devices that each rank uses."""
        return 2 if "data_parallel" in self.mistakes else 1

    def with_mistake(self, name: str, amount: float = 1.0, *, rank: int | None = None) -> JobOptions:
        """Return a copy of the options with this mistake and no other."""
        return replace(self, mistakes={name: amount}, mistake_rank=rank)

    def with_remedy(self, name: str, amount: float = 1.0) -> JobOptions:
        """Return a copy of the options with this remedy added."""
        return replace(self, remedies={**self.remedies, name: amount})
