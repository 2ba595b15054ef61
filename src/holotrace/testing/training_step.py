"""The work of one training step of a transformer on H100 GPUs with PyTorch's data parallelism.

The kernels have the names, launch configurations and relative durations of bfloat16 training with 2,048 tokens and a
width of 4,096. A step copies a batch to the device, clears gradients, and runs the forward and backward pass. During
the backward pass of each layer, the gradients of the layer above are reduced over all ranks. Then the step updates the
parameters, gathers them from the ranks on the same host, and copies the loss to the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

WorkKind = Literal["computation", "communication", "memory"]

COMPUTE_STREAM = 7
REDUCE_STREAM = 20
GATHER_STREAM = 24

WORLD_GROUP = "0"
HOST_GROUP = "1"

_WIDTH = 4096
_TOKENS = 2048
_LAYER_PARAMETERS = 12 * _WIDTH * _WIDTH // 8


@dataclass(frozen=True)
class LaunchShape:
    """The launch configuration of a kernel."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers_per_thread: int
    shared_memory_bytes: int = 0


@dataclass(frozen=True)
class Collective:
    """The args of a communication kernel on one rank; `elements` is the number of input elements."""

    name: str
    group: str
    elements: int
    dtype: str = "BFloat16"

    def elements_out(self, group_size: int) -> int:
        """Return the number of output elements on one rank."""
        return self.elements * group_size if self.name == "_allgather_base" else self.elements


@dataclass(frozen=True)
class DeviceWork:
    """One kernel, copy or memset.

    duration_ns   duration on an idle device; for communication, the time from the last rank's arrival to the end
    collective    args of the collective; used only if `kind` is communication
    """

    name: str
    kind: WorkKind
    duration_ns: int
    stream: int = COMPUTE_STREAM
    shape: LaunchShape | None = None
    byte_count: int = 0
    collective: Collective = Collective("", "", 0)

    @property
    def category(self) -> str:
        """The category of the event that records the work."""
        if self.kind != "memory":
            return "kernel"
        return "gpu_memset" if self.name.startswith("Memset") else "gpu_memcpy"

    @property
    def launch_name(self) -> str:
        """The name of the host call that launches the work."""
        if self.kind == "communication":
            return "cudaLaunchKernelExC"
        return {"kernel": "cudaLaunchKernel", "gpu_memset": "cudaMemsetAsync", "gpu_memcpy": "cudaMemcpyAsync"}[
            self.category
        ]


@dataclass(frozen=True)
class Call:
    """One host operation: nested operators, outermost first, and the work that the innermost operator launches.

    sequence   number of an autograd operation in the step; its forward and backward calls have the same number
    """

    operators: tuple[str, ...]
    works: tuple[DeviceWork, ...]
    input_dims: tuple[list[int], ...] = ()
    sequence: int | None = None

    @property
    def is_autograd(self) -> bool:
        """Whether the call is part of the forward or backward pass."""
        return self.sequence is not None


@dataclass(frozen=True)
class TrainingStep:
    """The calls of a step, in launch order.

    gradients   for each layer, from the last to the first: its backward calls and the all-reduce of its gradients
    """

    load: tuple[Call, ...]
    forward: tuple[Call, ...]
    gradients: tuple[tuple[tuple[Call, ...], Call], ...]
    update: tuple[Call, ...]
    gather: Call
    loss_out: Call

    @property
    def autograd_work_count(self) -> int:
        """The number of kernels that the forward and backward passes launch."""
        backward = [call for calls, _ in self.gradients for call in calls]
        return sum(len(call.works) for call in (*self.forward, *backward))


@dataclass(frozen=True)
class _Autograd:
    """An operation of a layer, with its forward and backward passes."""

    operators: tuple[str, ...]
    forward: DeviceWork
    node: str
    backward_operator: str
    backward: tuple[DeviceWork, ...]
    input_dims: tuple[list[int], ...] = ()

    def forward_call(self, sequence: int) -> Call:
        """Return the host operation of the forward pass."""
        return Call(self.operators, (self.forward,), self.input_dims, sequence)

    def backward_call(self, sequence: int) -> Call:
        """Return the host operation of the backward pass."""
        operators = (f"autograd::engine::evaluate_function: {self.node}", self.node, self.backward_operator)
        return Call(operators, self.backward, (), sequence)


def training_step(layers: int) -> TrainingStep:
    """Return a training step of a model with this many layers."""
    operations = [_EMBEDDING, *_LAYER * layers, *_HEAD]
    numbered = [(operation, number) for number, operation in enumerate(operations)]
    return TrainingStep(
        load=_LOAD,
        forward=tuple(operation.forward_call(number) for operation, number in numbered),
        gradients=tuple((calls, _ALL_REDUCE) for calls in _backward_by_layer(numbered, layers)),
        update=_UPDATE,
        gather=_ALL_GATHER,
        loss_out=_LOSS_OUT,
    )


def _backward_by_layer(numbered: list[tuple[_Autograd, int]], layers: int) -> list[tuple[Call, ...]]:
    """Split the backward pass by layer; the last layer includes the head, and the first layer the embedding."""
    calls = [operation.backward_call(number) for operation, number in numbered]
    cuts = [0, *(1 + len(_LAYER) * layer for layer in range(1, layers)), len(calls)]
    return [tuple(reversed(calls[cuts[layer] : cuts[layer + 1]])) for layer in reversed(range(layers))]


def _kernel(name: str, microseconds: int, grid: tuple[int, int, int], threads: int, registers: int) -> DeviceWork:
    shape = LaunchShape(grid, (threads, 1, 1), registers)
    return DeviceWork(name, "computation", microseconds * 1_000, shape=shape)


def _gemm(layout: str, microseconds: int, columns: int = 32) -> DeviceWork:
    name = (
        f"sm90_xmma_gemm_bf16bf16_bf16f32_f32_{layout}_n_tilesize128x128x64_warpgroupsize2x1x1_"
        "execute_segment_k_off_kernel__5x_cublas"
    )
    shape = LaunchShape((columns, 16, 1), (384, 1, 1), 168, 213_504)
    return DeviceWork(name, "computation", microseconds * 1_000, shape=shape)


def _copy(name: str, microseconds: int, byte_count: int) -> DeviceWork:
    return DeviceWork(name, "memory", microseconds * 1_000, byte_count=byte_count)


_ANONYMOUS = "at::native::(anonymous namespace)::"
_GELU = (
    "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const"
)
_GELU_LOOP = f"{_GELU}::{{lambda()#4}}::operator()() const::{{lambda(c10::BFloat16)#1}}, std::array<char*, 2ul>"
_FLASH_TRAITS = (
    "pytorch_flash::Flash_{direction}_kernel_traits<128, {block}, 64, 4, {flags}cutlass::bfloat16_t, "
    "pytorch_flash::Flash_kernel_traits<128, {block}, 64, 4, cutlass::bfloat16_t> >"
)

_EMBEDDING = _Autograd(
    ("aten::embedding", "aten::index_select"),
    _kernel(
        f"void {_ANONYMOUS}vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)",
        14,
        (_TOKENS, 2, 1),
        256,
        32,
    ),
    "EmbeddingBackward0",
    "aten::embedding_dense_backward",
    (
        _kernel(
            f"void {_ANONYMOUS}compute_grad_weight<c10::BFloat16, long>(long const*, c10::BFloat16 const*, "
            "long const*, long, long, long const*, long const*, float*, long)",
            31,
            (_TOKENS, 1, 1),
            128,
            40,
        ),
    ),
    ([32_000, _WIDTH], [1, _TOKENS]),
)

_LAYER_NORM = _Autograd(
    ("aten::layer_norm", "aten::native_layer_norm"),
    _kernel(
        f"void {_ANONYMOUS}vectorized_layer_norm_kernel<c10::BFloat16, float, false>(int, float, c10::BFloat16 const*, "
        "c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)",
        12,
        (_TOKENS, 1, 1),
        128,
        40,
    ),
    "NativeLayerNormBackward0",
    "aten::native_layer_norm_backward",
    (
        _kernel(
            f"void {_ANONYMOUS}layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float, false>(c10::BFloat16 "
            "const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16 const*, c10::BFloat16*, int)",
            17,
            (_TOKENS, 1, 1),
            128,
            48,
        ),
        _kernel(
            f"void {_ANONYMOUS}GammaBetaBackwardCUDAKernelTemplate<c10::BFloat16, float, 32u, 8u, 64u, true, true, "
            "false>(long, long, c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, "
            "c10::BFloat16*, c10::BFloat16*)",
            11,
            (_WIDTH // 32, 1, 1),
            256,
            56,
        ),
    ),
    ([1, _TOKENS, _WIDTH], [], [_WIDTH], [_WIDTH], []),
)


def _linear(columns: int, microseconds: int) -> _Autograd:
    return _Autograd(
        ("aten::linear", "aten::addmm"),
        _gemm("tn", microseconds, columns // 128),
        "AddmmBackward0",
        "aten::mm",
        (_gemm("nn", microseconds + 4, columns // 128), _gemm("nt", microseconds + 9, columns // 128)),
        ([columns], [_TOKENS, _WIDTH], [_WIDTH, columns], [], []),
    )


_ATTENTION = _Autograd(
    ("aten::scaled_dot_product_attention", "aten::_flash_attention_forward"),
    _kernel(
        "void pytorch_flash::flash_fwd_kernel<"
        + _FLASH_TRAITS.format(direction="fwd", block=128, flags="false, false, ")
        + ", false, true, false, false, true, true, false, false>(pytorch_flash::Flash_fwd_params)",
        118,
        (16, 1, 32),
        128,
        255,
    ),
    "ScaledDotProductFlashAttentionBackward0",
    "aten::_flash_attention_backward",
    (
        _kernel(
            "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<"
            + _FLASH_TRAITS.format(direction="bwd", block=64, flags="8, 4, 2, 2, false, false, ")
            + ", false, true, false, false, true, true, false>(pytorch_flash::Flash_bwd_params)",
            286,
            (16, 1, 32),
            256,
            255,
        ),
    ),
    ([1, 32, _TOKENS, 128], [1, 32, _TOKENS, 128], [1, 32, _TOKENS, 128], [], [], [], []),
)

_GELU_OPERATION = _Autograd(
    ("aten::gelu",),
    _kernel(
        f"void at::native::vectorized_elementwise_kernel<4, {_GELU_LOOP} >(int, {_GELU_LOOP})",
        19,
        (8192, 1, 1),
        128,
        32,
    ),
    "GeluBackward0",
    "aten::gelu_backward",
    (
        _kernel(
            f"void at::native::vectorized_elementwise_kernel<4, {_GELU_LOOP.replace('Gelu', 'GeluBackward')} >"
            f"(int, {_GELU_LOOP.replace('Gelu', 'GeluBackward')})",
            27,
            (8192, 1, 1),
            128,
            40,
        ),
    ),
    ([1, _TOKENS, 4 * _WIDTH], []),
)

_LAYER = [
    _LAYER_NORM,
    _linear(3 * _WIDTH, 96),
    _ATTENTION,
    _linear(_WIDTH, 38),
    _LAYER_NORM,
    _linear(4 * _WIDTH, 127),
    _GELU_OPERATION,
    _linear(_WIDTH, 124),
]

_HEAD = [
    _linear(8 * _WIDTH, 231),
    _Autograd(
        ("aten::cross_entropy_loss", "aten::_log_softmax"),
        _kernel(
            f"void {_ANONYMOUS}cunn_SoftMaxForward<4, c10::BFloat16, float, float, "
            f"{_ANONYMOUS}LogSoftMaxForwardEpilogue>(float*, c10::BFloat16 const*, int)",
            88,
            (_TOKENS, 1, 1),
            1024,
            40,
        ),
        "LogSoftmaxBackward0",
        "aten::_log_softmax_backward_data",
        (
            _kernel(
                f"void {_ANONYMOUS}cunn_SoftMaxBackward<4, c10::BFloat16, float, c10::BFloat16, "
                f"{_ANONYMOUS}LogSoftMaxBackwardEpilogue>(c10::BFloat16*, float const*, float const*, long)",
                97,
                (_TOKENS, 1, 1),
                1024,
                40,
            ),
        ),
        ([_TOKENS, 8 * _WIDTH], [_TOKENS]),
    ),
]

_LOAD = (
    Call(
        ("aten::to", "aten::_to_copy", "aten::copy_"),
        (_copy("Memcpy HtoD (Pinned -> Device)", 9, 8 * _TOKENS * 16),),
        ([1, _TOKENS], [1, _TOKENS], []),
    ),
    Call(("aten::zero_",), (_copy("Memset (Device)", 6, 2 * _LAYER_PARAMETERS),), ([_LAYER_PARAMETERS],)),
)

_ADAM = f"{_ANONYMOUS}FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>"
_UPDATE = (
    Call(
        ("aten::_fused_adamw_",),
        tuple(
            _kernel(
                f"void {_ANONYMOUS}multi_tensor_apply_kernel<{_ANONYMOUS}FusedOptimizerTensorListMetadata<4>, {_ADAM}, "
                "float const*, double, double, double, double, double, bool, float*, float*, "
                f"(at::native::ADAM_MODE)1>({_ANONYMOUS}FusedOptimizerTensorListMetadata<4>, {_ADAM}, float const*, "
                "double, double, double, double, double, bool, float*, float*, (at::native::ADAM_MODE)1)",
                microseconds,
                (320, 1, 1),
                512,
                64,
            )
            for microseconds in (143, 118)
        ),
    ),
)


def _communication(name: str, microseconds: int, stream: int, group: str, elements: int) -> tuple[DeviceWork, ...]:
    shape = LaunchShape((24, 1, 1), (544, 1, 1), 96, 82_240)
    kernel = {
        "allreduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "_allgather_base": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    }[name]
    collective = Collective(name, group, elements)
    return (
        DeviceWork(kernel, "communication", microseconds * 1_000, stream=stream, shape=shape, collective=collective),
    )


_ALL_REDUCE = Call(
    ("c10d::allreduce_", "record_param_comms", "nccl:all_reduce"),
    _communication("allreduce", 870, REDUCE_STREAM, WORLD_GROUP, _LAYER_PARAMETERS),
    ([_LAYER_PARAMETERS],),
)
_ALL_GATHER = Call(
    ("c10d::_allgather_base_", "record_param_comms", "nccl:_all_gather_base"),
    _communication("_allgather_base", 240, GATHER_STREAM, HOST_GROUP, _LAYER_PARAMETERS // 8),
    ([_LAYER_PARAMETERS // 8],),
)
_LOSS_OUT = Call(
    ("aten::item", "aten::_local_scalar_dense"),
    (_copy("Memcpy DtoH (Device -> Pageable)", 2, 4),),
    ([],),
)


def shape_args(shape: LaunchShape, sm_count: int) -> dict[str, Any]:
    """Return the args that describe a kernel launch in Kineto's files."""
    block_count = shape.grid[0] * shape.grid[1] * shape.grid[2]
    threads = shape.block[0] * shape.block[1] * shape.block[2]
    return {
        "registers per thread": shape.registers_per_thread,
        "shared memory": shape.shared_memory_bytes,
        "blocks per SM": round(block_count / sm_count, 6),
        "warps per SM": round(block_count * threads / 32 / sm_count, 6),
        "grid": list(shape.grid),
        "block": list(shape.block),
        "est. achieved occupancy %": min(100, round(100 * block_count * threads / 2048 / sm_count)),
    }
