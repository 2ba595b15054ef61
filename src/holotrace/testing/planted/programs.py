"""Simulate the steps of a job's ranks on GPUs with NCCL or on CPUs with gloo, including the planted delays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from holotrace.testing.planted.options import CauseKind, PlantedOptions
from holotrace.testing.planted.rank_course import (
    BACKWARD,
    COMPUTE,
    DATA,
    MAIN,
    RECEIVE_NEXT,
    RECEIVE_PREVIOUS,
    SEND_NEXT,
    SEND_PREVIOUS,
    TENSOR,
    WORKERS,
    Group,
    RankCourse,
)

_LOADING_NS = 500_000
_COPY_NS = 60_000
_OPTIMIZER_NS = 150_000
_TENSOR_TRANSFER_NS = 40_000
_DATA_TRANSFER_NS = 120_000
_SEND_TRANSFER_NS = 25_000
_GLOO_TRANSFER_NS = 200_000

FORWARD_KERNEL = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"
BACKWARD_KERNEL = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nt_n_tilesize128x128x64"
SLOW_KERNEL = "void at::native::index_put_with_sort_kernel<c10::BFloat16>(long*, long*)"
COPY_KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::CopyFunctor>(int)"
OPTIMIZER_KERNEL = "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>(int)"
SLOW_OPERATOR = "aten::index_put_"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
COLLECTION = "Python GC"
AUGMENT = "data.py(33): augment"
SLEEP = "<built-in function sleep>"


class Program(ABC):
    """The steps of one rank."""

    def __init__(self, course: RankCourse, options: PlantedOptions) -> None:
        self.course, self.options = course, options
        self.rank = course.rank
        self.stage = options.stage_of(self.rank)
        self._causes = [(number, cause) for number, cause in enumerate(options.causes) if cause.rank == self.rank]
        self._step = 0

    def step(self, number: int) -> None:
        """Simulate a training step."""
        self._step = number
        annotation = self.course.within("user_annotation", f"ProfilerStep#{number}")
        with annotation, self.course.function("train.py(61): train_step"):
            self._prepare()
            self._compute()
            self._update()

    def _compute(self) -> None:
        for direction, microbatch in schedule(self.stage, self.options.pipeline, self.options.microbatches):
            if direction == "forward":
                self._receive(forward=True)
                self._forward(microbatch)
                self._send(forward=True)
            else:
                self._receive(forward=False)
                self._backward(microbatch)
                self._send(forward=False)

    def _prepare(self) -> None:
        """Load a batch, and simulate the host's planted delays."""
        course = self.course
        with course.within("user_annotation", LOADER):
            course.operator("aten::stack", _LOADING_NS, self._delays("slow_loading"))
        for cause, delay_ns in self._delays("garbage_collection"):
            with course.within("python_function", COLLECTION):
                course.delay(cause, delay_ns)
        for cause, delay_ns in self._delays("python_function"):
            with course.function(AUGMENT), course.function(SLEEP):
                course.delay(cause, delay_ns)
        for cause, delay_ns in self._delays("host_gap"):
            course.delay(cause, delay_ns)

    def _forward(self, microbatch: int) -> None:
        for layer in range(self.options.layers):
            with self.course.function(f"nn.Module: Block_{layer}"):
                self._layer(microbatch, layer, forward=True)

    @abstractmethod
    def _backward(self, microbatch: int) -> None:
        """Run the backward pass of a microbatch."""

    @abstractmethod
    def _layer(self, microbatch: int, layer: int, *, forward: bool) -> None:
        """Run one layer of a microbatch."""

    @abstractmethod
    def _receive(self, *, forward: bool) -> None:
        """Receive from the neighbouring stage."""

    @abstractmethod
    def _send(self, *, forward: bool) -> None:
        """Send to the neighbouring stage."""

    @abstractmethod
    def _update(self) -> None:
        """Sum the gradients and run the optimizer."""

    def _delays(
        self, kind: CauseKind, *, microbatch: int | None = None, layer: int | None = None
    ) -> list[tuple[int, int]]:
        """Return the causes of a kind that are planted in this step, with their delays.

        With `microbatch` or `layer`, return only the causes that delay this microbatch or this layer.
        """
        return [
            (number, cause.delay_ns)
            for number, cause in self._causes
            if cause.kind == kind
            and cause.happens_in(self._step)
            and microbatch in (None, cause.microbatch)
            and layer in (None, cause.layer)
        ]

    def _neighbour(self, *, forward: bool, sends: bool) -> int | None:
        """Return the rank that this rank sends to or, if `sends` is false, receives from; None at a pipeline's end."""
        stage = self.stage + (1 if forward == sends else -1)
        stages = self.options.pipeline_group(self.rank)
        return stages[stage] if 0 <= stage < len(stages) else None

    def _layer_ns(self, *, forward: bool) -> int:
        return self.options.layer_ns * (1 if forward else 2)

    def _microbatch_delays(self, microbatch: int) -> list[tuple[int, int]]:
        """Return the causes that slow this microbatch down, each with its delay per layer."""
        slow = self._delays("slow_microbatch", microbatch=microbatch)
        return [(number, delay_ns // self.options.layers) for number, delay_ns in slow]


class DeviceProgram(Program):
    """The steps of a rank with a GPU: the host launches a whole step in advance, then waits for the loss."""

    def _prepare(self) -> None:
        self.course.host_delay = self._host_delay()
        super()._prepare()
        self.course.kernel("aten::copy_", COPY_KERNEL, _COPY_NS, late=self._delays("late_start"))

    def _host_delay(self) -> tuple[int, int] | None:
        """Return the cause that makes the host slow, and how much it delays each launch; None without such a cause.

        With this delay, launching the kernels of a step takes `delay_ns` longer than running them.
        """
        for cause, delay_ns in self._delays("slow_host"):
            layers = self.options.layers * self.options.microbatches
            return cause, (delay_ns + 3 * layers * self.options.layer_ns) // (2 * layers)
        return None

    def _layer(self, microbatch: int, layer: int, *, forward: bool) -> None:
        course, name = self.course, FORWARD_KERNEL if forward else BACKWARD_KERNEL
        delays = self._microbatch_delays(microbatch) if forward else []
        course.kernel("aten::mm", name, self._layer_ns(forward=forward), delays=delays)
        slow = self._delays("slow_kernel", microbatch=microbatch, layer=layer) if forward else []
        if slow:
            course.kernel(SLOW_OPERATOR, SLOW_KERNEL, 1_000, delays=slow)
        if self.options.tensor > 1:
            group = Group("1", "tp", self.options.tensor_group(self.rank))
            course.wait(TENSOR, COMPUTE)
            course.communicate("allreduce", group, stream=TENSOR, transfer_ns=_TENSOR_TRANSFER_NS, elements=1 << 20)
            course.wait(COMPUTE, TENSOR)

    def _backward(self, microbatch: int) -> None:
        self.course.thread = BACKWARD
        for layer in reversed(range(self.options.layers)):
            self._layer(microbatch, layer, forward=False)
            if microbatch == self.options.microbatches - 1 and self.options.data > 1:
                self.course.wait(DATA, COMPUTE)
                self.course.communicate(
                    "allreduce", self._data_group(), stream=DATA, transfer_ns=_DATA_TRANSFER_NS, elements=1 << 22
                )
        self.course.thread = MAIN

    def _receive(self, *, forward: bool) -> None:
        peer = self._neighbour(forward=forward, sends=False)
        if peer is not None:
            stream = RECEIVE_PREVIOUS if forward else RECEIVE_NEXT
            self._pass_on("recv", (peer, self.rank), stream)
            self.course.wait(COMPUTE, stream)

    def _send(self, *, forward: bool) -> None:
        peer = self._neighbour(forward=forward, sends=True)
        if peer is not None:
            self._pass_on("send", (self.rank, peer), SEND_NEXT if forward else SEND_PREVIOUS)

    def _pass_on(self, family: str, ends: tuple[int, int], stream: int) -> None:
        group = Group("3", "pp", self.options.pipeline_group(self.rank))
        self.course.wait(stream, COMPUTE)
        self.course.communicate(
            family, group, stream=stream, transfer_ns=_SEND_TRANSFER_NS, elements=1 << 18, ends=ends
        )

    def _update(self) -> None:
        course = self.course
        course.wait(COMPUTE, DATA)
        with course.within("user_annotation", "Optimizer.step#AdamW.step"):
            course.kernel("aten::_fused_adamw_", OPTIMIZER_KERNEL, _OPTIMIZER_NS)
        course.synchronise()

    def _data_group(self) -> Group:
        return Group("2", "dp", self.options.data_group(self.rank))


class HostProgram(Program):
    """The steps of a rank that computes on the CPU."""

    def _layer(self, microbatch: int, layer: int, *, forward: bool) -> None:
        slow = self._delays("slow_kernel", microbatch=microbatch, layer=layer) if forward else []
        delays = self._microbatch_delays(microbatch) if forward else []
        self.course.operator("aten::addmm" if forward else "aten::mm", self._layer_ns(forward=forward), delays)
        if slow:
            self.course.operator(SLOW_OPERATOR, 1_000, slow)

    def _backward(self, microbatch: int) -> None:
        ends = []
        for layer in reversed(range(self.options.layers)):
            self._layer(microbatch, layer, forward=False)
            if microbatch == self.options.microbatches - 1 and self.options.data > 1:
                ends.append(self._all_reduce(layer))
        if ends:
            self.course.wait_on_host(ends)

    def _all_reduce(self, layer: int) -> int:
        group = Group("0", "default_pg", tuple(range(self.options.ranks)))
        return self.course.all_reduce_on_host(group, WORKERS[layer % 2], 1_000 + layer, _GLOO_TRANSFER_NS)

    def _receive(self, *, forward: bool) -> None:
        peer = self._neighbour(forward=forward, sends=False)
        if peer is not None:
            self.course.receive_on_host(peer, int(not forward), 4_096, _SEND_TRANSFER_NS)

    def _send(self, *, forward: bool) -> None:
        peer = self._neighbour(forward=forward, sends=True)
        if peer is not None:
            self.course.send_on_host(peer, int(not forward), 4_096, _SEND_TRANSFER_NS)

    def _update(self) -> None:
        if self.options.pipeline > 1:
            self.course.wait_on_host([self._all_reduce(self.options.layers)])
        with self.course.within("user_annotation", "Optimizer.step#AdamW.step"):
            self.course.operator("aten::_fused_adamw_", _OPTIMIZER_NS)


def program(course: RankCourse, options: PlantedOptions) -> Program:
    """Return the program of a rank."""
    return DeviceProgram(course, options) if options.backend == "nccl" else HostProgram(course, options)


def schedule(stage: int, stages: int, microbatches: int) -> Iterator[tuple[str, int]]:
    """Yield the forward and backward passes of a stage in 1F1B order.

    Source: https://arxiv.org/abs/2104.04473, figure 4.

    >>> list(schedule(1, 2, 2))
    [('forward', 0), ('backward', 0), ('forward', 1), ('backward', 1)]
    """
    ahead = min(stages - stage - 1, microbatches)
    yield from (("forward", number) for number in range(ahead))
    for number in range(microbatches - ahead):
        yield "forward", ahead + number
        yield "backward", number
    yield from (("backward", number) for number in range(microbatches - ahead, microbatches))
