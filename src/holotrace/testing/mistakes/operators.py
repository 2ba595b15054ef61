"""Simulate PyTorch operators: their ranges, kernels and gradients."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from holotrace.testing.mistakes.recorder import BACKWARD, COMPUTE, MAIN, Kernel, Recorder

_OPERATOR_NS = 2_600
_VIEW_NS = 1_500
_THREADS_AUTOGRAD = 1
_BLOCK_ELEMENTS = 512


class Tensor(NamedTuple):
    """Shape, element type and strides of a tensor; a tensor without strides is contiguous."""

    dims: tuple[int, ...]
    type: str = "float"
    strides: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        """Size of all elements in bytes."""
        return self.elements * {"float": 4, "double": 8, "long int": 8, "c10::Float8_e4m3fn": 1, "bool": 1}.get(
            self.type, 2
        )

    def of(self, *dims: int, kind: str | None = None) -> Tensor:
        """Return a tensor with another shape or element type."""
        return Tensor(dims or self.dims, kind or self.type)

    @property
    def transposed(self) -> Tensor:
        """This tensor with its last two dimensions swapped."""
        *outer, rows, columns = self.dims
        return Tensor((*outer, columns, rows), self.type, (*_contiguous((*outer, rows, columns))[:-2], 1, columns))


class TensorList:
    """A list of tensors, for which the profiler records no element types."""


class Product(NamedTuple):
    """`repeats` products of m x k and k x n matrices. The row length `row` determines whether rows are aligned."""

    m: int
    n: int
    k: int
    row: int
    layout: str
    repeats: int = 1

    @property
    def flops(self) -> int:
        """Number of multiplications and additions."""
        return 2 * self.repeats * self.m * self.n * self.k

    @property
    def elements(self) -> int:
        """Number of elements read and written."""
        return self.repeats * (self.m * self.n + self.n * self.k + self.m * self.k)


class _Node(NamedTuple):
    """A node of the backward graph."""

    name: str
    sequence: int
    forward: int
    compute: Callable[[], None]
    replica: int


class Operators:
    """The operators that a rank can call; each call records a range, kernels and a node in the backward graph."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.options, self.gpu = recorder, recorder.options, recorder.gpu
        self._sequence = itertools.count(1_000)
        self._tape: list[_Node] = []
        self._tracks = True
        self._kept: list[int] = []

    @contextmanager
    def operator(self, name: str, *inputs: object, sequence: int | None = None, forward: bool = True) -> Iterator[None]:
        """Record an operator around the `with` block."""
        described = _described(inputs) if self.options.shapes else {}
        numbered = (
            {}
            if sequence is None
            else {"Sequence number": sequence, "Fwd thread id": 0 if forward else _THREADS_AUTOGRAD}
        )
        with self.recorder.range("cpu_op", name, **described, **numbered):
            self.recorder.spend(_OPERATOR_NS)
            if sequence is not None and self.recorder.amount("anomaly_detection"):
                with self.recorder.function("torch/fx/traceback.py(248): format_stack"):
                    self.recorder.pause(self.recorder.amount("anomaly_detection"))
            yield

    def view(self, name: str, tensor: Tensor) -> None:
        """Call an operator that launches no device work."""
        with self.operator(name, tensor):
            self.recorder.spend(_VIEW_NS)

    def pointwise(
        self, functor: str, size: int, elements: int, *, efficiency: float = 0.82, strided: bool = False
    ) -> None:
        """Launch an element-wise kernel that moves `size` bytes."""
        name = _STRIDED.format(functor) if strided else _VECTORIZED.format(functor)
        grid = max(1, elements // _BLOCK_ELEMENTS)
        self.recorder.launch(Kernel(name, self.gpu.memory_ns(size, efficiency), grid=grid))

    def unary(self, operator: str, functor: str, tensor: Tensor, *, reads: int = 1, gradient: str = "") -> Tensor:
        """Apply an element-wise operator to `reads` tensors; its node in the backward graph has the name `gradient`."""
        size = (reads + 1) * tensor.bytes
        with self.recorded(gradient, lambda: self._gradient(operator, functor, tensor, reads)) as number:
            with self.operator(operator, *[tensor] * reads, sequence=number):
                self.allocate(tensor)
                self.pointwise(functor, size, tensor.elements)
        return tensor

    def _gradient(self, operator: str, functor: str, tensor: Tensor, reads: int) -> None:
        if reads == 1:
            with self.operator(f"{operator}_backward", tensor, tensor):
                self.pointwise(f"{functor}Backward", 3 * tensor.bytes, tensor.elements)

    def converted(self, tensor: Tensor, to: str, *, tracked: bool = True) -> Tensor:
        """Convert the elements of a tensor to another type."""
        if tensor.type == to:
            return tensor
        result = tensor.of(kind=to)
        with self.recorded("ToCopyBackward0" if tracked else "", lambda: self._copy(result, tensor)) as number:
            self._copy(tensor, result, number)
        return result

    def _copy(self, source: Tensor, target: Tensor, sequence: int | None = None) -> None:
        with self.operator("aten::to", source, 15, sequence=sequence), self.operator("aten::_to_copy", source, 15):
            self.view("aten::empty_strided", Tensor(()))
            self.allocate(target)
            if "fused_casts" in self.options.remedies:
                return
            with self.operator("aten::copy_", target, source, "False"):
                self.pointwise("bfloat16_copy_kernel_cuda", source.bytes + target.bytes, source.elements)

    def contiguous(self, tensor: Tensor) -> Tensor:
        """Make a transposed tensor contiguous by copying it."""
        with self.recorded("CloneBackward0", lambda: self._clone(tensor)) as number:
            with self.operator("aten::contiguous", tensor, sequence=number):
                self._clone(tensor)
        return tensor.of()

    def _clone(self, tensor: Tensor) -> None:
        moved = tensor.transposed
        with self.operator("aten::clone", moved):
            self.allocate(tensor)
            with self.operator("aten::copy_", moved.of(), moved, "False"):
                self.pointwise(
                    "direct_copy_kernel_cuda", 2 * tensor.bytes, tensor.elements, efficiency=0.45, strided=True
                )

    def linear(self, x: Tensor, weight: Tensor, *, bias: bool = False, efficiency: float = 1.0) -> Tensor:
        """Multiply by the transposed weight; under autocast, convert weight and input first."""
        weights = Tensor(weight.dims, self.options.element_type)
        casts = self.options.autocast and weight.type != weights.type
        rows, (columns, depth) = x.elements // x.dims[-1], weight.dims
        flat, result = Tensor((rows, depth), weights.type), Tensor((rows, columns), weights.type)
        with self.operator("aten::linear", x, weight, weight.of(columns) if bias else None):
            if casts:
                self.converted(weight, weights.type)
                x = self.converted(x, weights.type)
            self.view("aten::t", weights)
            node = "AddmmBackward0" if bias else "MmBackward0"
            with self.recorded(
                node, lambda: self._linear_gradient(flat, weights, result, efficiency, bias=bias)
            ) as number:
                inputs = (weights.of(columns), flat, weights.transposed, 1, 1) if bias else (flat, weights.transposed)
                with self.operator("aten::addmm" if bias else "aten::mm", *inputs, sequence=number):
                    self.allocate(result)
                    self.product(Product(rows, columns, depth, columns, "TNT"), efficiency)
            self.view("aten::_unsafe_view", result)
        return result.of(*x.dims[:-1], columns)

    def _linear_gradient(self, x: Tensor, weight: Tensor, result: Tensor, efficiency: float, *, bias: bool) -> None:
        (rows, depth), columns = x.dims, result.dims[-1]
        with self.operator("aten::mm", result, weight):
            self.allocate(x)
            self.product(Product(rows, depth, columns, columns, "NNT"), efficiency)
        with self.operator("aten::mm", result.transposed, x):
            self.allocate(weight)
            self.product(Product(columns, depth, rows, columns, "NTT"), efficiency)
        if bias:
            with self.operator("aten::sum", result, [0], True, None):
                duration_ns = self.gpu.memory_ns(result.bytes)
                self.recorder.launch(
                    Kernel(_REDUCE, duration_ns, grid=1024, block=128, registers=54, shared_memory=2064)
                )

    def product(self, product: Product, efficiency: float = 1.0) -> None:
        """Launch a matrix product."""
        options, cores = self.options, self.recorder.amount("ordinary_cores")
        aligned = product.row * options.element_bytes % 16 == 0
        precision = "float32" if cores else options.precision
        slower = 1.0 if aligned or precision in ("float64", "float32") else _UNALIGNED
        major = self.gpu.capability[0]
        name, call = _product_name(major, precision, product.layout, aligned=aligned, vector=bool(cores))
        shortest_ns = self.gpu.product_ns(product.flops, product.elements * options.element_bytes, precision)
        # If there are fewer tiles than SMs, cuBLAS splits the sum over k, so that all SMs have work.
        # nvjet kernels have one persistent block per SM.
        tiles = max(product.repeats * -(-product.m // 128) * -(-product.n // 128), self.gpu.sm_count)
        grid, block = (self.gpu.sm_count, 384) if name.startswith("nvjet") else (tiles, 128)
        shared = min(self.gpu.shared_memory - 2048, 213_188)
        self.recorder.launch(Kernel(name, shortest_ns * slower / efficiency, grid, block, 168, shared, call))

    def convolve(self, x: Tensor, layout: str) -> None:
        """Launch a convolution with 3 x 3 filters and equal numbers of input and output channels."""
        channels = x.dims[1]
        flops, rate = (
            18 * x.elements * channels,
            self.gpu.tflops[self.options.precision] * self.gpu.efficiency[self.options.precision],
        )
        name = _CONVOLUTION[self.gpu.capability[0]].format(layout)
        duration_ns = max(1.25e-3 * flops / rate, self.gpu.memory_ns(2 * x.bytes))
        self.recorder.launch(
            Kernel(name, duration_ns, min(self.gpu.sm_count, x.elements // channels // 128), 384, 168, 150_000)
        )

    def batched(self, a: Tensor, b: Tensor, operator: str = "aten::bmm", *, efficiency: float = 0.75) -> Tensor:
        """Multiply batches of matrices."""
        count, m, k, n = math.prod(a.dims[:-2]), *a.dims[-2:], b.dims[-1]
        with self.recorded("BmmBackward0", lambda: self._batched_gradient(a, b, efficiency)) as number:
            with self.operator(operator, a, b, sequence=number):
                self.allocate(Tensor((count, m, n), a.type))
                self.product(Product(m, n, k, n, "NNT", count), efficiency)
        return Tensor((count, m, n), a.type)

    def _batched_gradient(self, a: Tensor, b: Tensor, efficiency: float) -> None:
        count, m, k, n = a.dims[0], *a.dims[-2:], b.dims[-1]
        result = Tensor((count, m, n), a.type)
        with self.operator("aten::bmm", a.transposed, result):
            self.product(Product(k, n, m, n, "NTT", count), efficiency)
        with self.operator("aten::bmm", result, b.transposed):
            self.product(Product(m, k, n, n, "NNT", count), efficiency)

    def layer_norm(self, x: Tensor) -> Tensor:
        """Apply layer normalisation to each row."""
        rows, width = x.elements // x.dims[-1], x.dims[-1]
        with self.recorded("NativeLayerNormBackward0", lambda: self._norm_gradient(x)) as number:
            with self.operator("aten::layer_norm", x, [width], x.of(width), x.of(width), 1e-5, True, sequence=number):
                with self.operator("aten::native_layer_norm", x, [width], x.of(width), x.of(width), 1e-5):
                    self.allocate(x)
                    duration_ns = self.gpu.memory_ns(2 * x.bytes, 0.72)
                    self.recorder.launch(
                        Kernel(_LAYER_NORM.format("vectorized_layer_norm_kernel"), duration_ns, rows, 128, 39, 24)
                    )
        return x

    def _norm_gradient(self, x: Tensor) -> None:
        rows, width = x.elements // x.dims[-1], x.dims[-1]
        statistics = Tensor((*x.dims[:-1], 1))
        inputs = (x, x, [width], statistics, statistics, x.of(width), x.of(width), [True, True, True])
        with self.operator("aten::native_layer_norm_backward", *inputs):
            self.allocate(x)
            duration_ns = self.gpu.memory_ns(3 * x.bytes, 0.72)
            self.recorder.launch(
                Kernel(_LAYER_NORM.format("layer_norm_grad_input_kernel_vectorized"), duration_ns, rows, 128, 40, 16)
            )
            gamma = Kernel(
                _LAYER_NORM.format("GammaBetaBackwardCUDAKernelTemplate"),
                self.gpu.memory_ns(2 * x.bytes, 0.7),
                256,
                256,
                40,
            )
            self.recorder.launch(gamma)

    def attention(self, query: Tensor) -> Tensor:
        """Compute attention with a fused kernel; the query has the shape batch x heads x sequence x width."""
        inputs = (query, query, query, None, 0.0, True)
        flops = 4 * query.elements * query.dims[-2] / 2
        name, backend = ("efficient", _EFFICIENT_FLOAT) if not self.options.is_half else _FUSED[self.gpu.capability[0]]
        forward_ns, backward_ns = (
            factor * 1e-3 * flops / (self.gpu.tflops["float16" if self.options.is_half else "float32"] * rate)
            for factor, rate in ((1.0, 0.5), (2.5, 0.42))
        )
        grid = query.dims[0] * query.dims[1] * -(-query.dims[2] // 128)

        def gradient() -> None:
            with self.operator(f"aten::_scaled_dot_product_{name}_attention_backward", query, *inputs):
                self.recorder.launch(Kernel(backend.format("bwd", "B"), backward_ns, grid, 256, 255, 90_000))

        node = f"ScaledDotProduct{name.title()}AttentionBackward0"
        with self.operator("aten::scaled_dot_product_attention", *inputs), self.recorded(node, gradient) as number:
            with self.operator(f"aten::_scaled_dot_product_{name}_attention", *inputs, sequence=number):
                self.allocate(query)
                self.recorder.launch(Kernel(backend.format("fwd", "F"), forward_ns, grid, 128, 255, 81_920))
        return query

    def attention_written_out(self, query: Tensor) -> Tensor:
        """Compute attention as two products with a softmax between them."""
        batch, heads, length, width = query.dims
        flat = query.of(batch * heads, length, width)
        scores = self.batched(flat, flat.transposed)
        self.unary(
            "aten::mul",
            "BinaryFunctor<float, float, float, MulFunctor<float>>",
            scores,
            reads=2,
            gradient="MulBackward0",
        )
        self.softmax(scores, "aten::_softmax", "SoftmaxBackward0")
        return self.batched(scores, flat).of(*query.dims)

    def softmax(self, x: Tensor, operator: str, node: str) -> None:
        """Apply softmax to each row."""
        outer = operator.replace("::_", "::")

        def gradient() -> None:
            with self.operator(f"{operator}_backward_data", x, x, -1, 6):
                self.recorder.launch(
                    Kernel(
                        _SOFTMAX.format("Backward"),
                        self.gpu.memory_ns(3 * x.bytes, 0.75),
                        x.elements // x.dims[-1],
                        1024,
                    )
                )

        with self.operator(outer, x, -1, None), self.recorded(node, gradient) as number:
            with self.operator(operator, x, -1, False, sequence=number):
                self.allocate(x)
                kernel = Kernel(
                    _SOFTMAX.format("Forward"),
                    self.gpu.memory_ns(2 * x.bytes, 0.75),
                    x.elements // x.dims[-1],
                    1024,
                    36,
                )
                self.recorder.launch(kernel)

    def loss(self, logits: Tensor) -> None:
        """Compute the cross entropy."""
        rows = logits.elements // logits.dims[-1]
        flat, target = Tensor((rows, logits.dims[-1]), self.options.weight_type), Tensor((rows,), "long int")

        def gradient() -> None:
            with self.operator("aten::nll_loss_backward", Tensor(()), flat, target, None, 1, -100, Tensor(())):
                with self.operator("aten::zero_", flat), self.operator("aten::fill_", flat, 0):
                    self.pointwise("FillFunctor<float>", flat.bytes, flat.elements)

        self.converted(Tensor(flat.dims, logits.type), flat.type)
        with self.operator("aten::cross_entropy_loss", flat, target, None, 1, -100, 0.0):
            self.softmax(flat, "aten::_log_softmax", "LogSoftmaxBackward0")
            with self.recorded("NllLossBackward0", gradient) as number:
                with self.operator("aten::nll_loss_nd", flat, target, None, 1, -100, sequence=number):
                    with self.operator("aten::nll_loss_forward", flat, target, None, 1, -100):
                        self.recorder.launch(Kernel(_NLL, 9_000, 1, 1024))

    def embedding(self, table: Tensor, rows: int, *, sparse: bool = False) -> Tensor:
        """Look up the embedding vectors of tokens; with `sparse`, the gradient contains only the rows that were read."""
        result, tokens = Tensor((rows, table.dims[1]), table.type), Tensor((rows,), "long int")

        def gradient() -> None:
            if sparse:
                with self.operator("aten::embedding_sparse_backward", result, tokens, table.dims[0], -1, "False"):
                    self.recorder.launch(Kernel(_EMBEDDING, self.gpu.memory_ns(2 * result.bytes, 0.5), 4096, 256))
                return
            with self.operator("aten::embedding_dense_backward", result, tokens, table.dims[0], -1, "False"):
                with (
                    self.operator("aten::zeros", table),
                    self.operator("aten::zero_", table),
                    self.operator("aten::fill_", table, 0),
                ):
                    self.pointwise("FillFunctor<float>", table.bytes, table.elements)
                self.recorder.launch(Kernel(_EMBEDDING, self.gpu.memory_ns(2 * result.bytes, 0.5), 4096, 256))

        with self.recorded("EmbeddingBackward0", gradient) as number:
            with self.operator("aten::embedding", table, tokens, -1, False, sparse, sequence=number):
                with self.operator("aten::index_select", table, 0, tokens):
                    self.allocate(result)
                    self.recorder.launch(Kernel(_GATHER, self.gpu.memory_ns(2 * result.bytes, 0.7), rows, 256))
        return result

    def custom(self, name: str, kernel: Kernel, stream: int = COMPUTE) -> None:
        """Call a kernel that the user wrote."""
        with self.operator(name):
            self.recorder.launch(kernel, stream)

    def allocate(self, tensor: Tensor) -> None:
        """Allocate the result of an operator.

        The memory comes from the allocator's cache, except for some large results in jobs with an allocator mistake.
        """
        if self.options.memory and tensor.elements:
            self.recorder.allocate(tensor.bytes)
            self._kept.append(tensor.bytes)
        retries = self.recorder.amount("allocator_retries") + self.recorder.amount("empties_cache")
        if retries and tensor.bytes > _LARGE_BYTES and self.recorder.dice.random() < min(1.0, retries):
            self.recorder.runtime("cudaMalloc", 110_000)
            if self.recorder.amount("allocator_retries"):
                self.recorder.synchronise("cudaFree")
                self.recorder.runtime("cudaMalloc", 110_000)

    def free(self) -> None:
        """Free everything that the step has allocated."""
        for size in self._kept:
            self.recorder.allocate(-size)
        self._kept.clear()

    def backward(self, before: Callable[[], None] | None = None) -> None:
        """Compute the gradients of all recorded nodes on the autograd thread; call `before` before each node."""
        recorder = self.recorder
        recorder.spend(15_000)
        recorder.thread = BACKWARD
        tape, self._tape = self._tape[::-1], []
        for node in tape:
            if before is not None:
                before()
            with recorder.range("cpu_op", f"autograd::engine::evaluate_function: {node.name}", **_numbers(node)):
                with recorder.range("cpu_op", node.name, **_numbers(node)), recorder.on_replica(node.replica):
                    recorder.arrow(node.forward, MAIN)
                    node.compute()
        recorder.thread = MAIN
        recorder.spend(20_000)

    @contextmanager
    def no_grad(self) -> Iterator[None]:
        """Call the operators of the `with` block without recording nodes for the backward pass."""
        self._tracks = False
        yield
        self._tracks = True

    @property
    def position(self) -> int:
        """The number of nodes in the backward graph so far."""
        return len(self._tape)

    def again(self, since: int, recompute: Callable[[], None]) -> None:
        """Recompute a part of the forward pass just before the backward pass of this part, as checkpointing does."""
        part = self._tape[since:]
        if part:
            last = part[-1]

            def compute() -> None:
                place = len(self._tape)
                with self.recorder.function("torch/utils/checkpoint.py(1154): unpack_hook"):
                    with self.recorder.function("torch/utils/checkpoint.py(1588): recompute_fn"):
                        recompute()
                del self._tape[place:]
                last.compute()

            self._tape[-1] = last._replace(compute=compute)

    @contextmanager
    def recorded(self, name: str, gradient: Callable[[], None]) -> Iterator[int | None]:
        """Add a node to the backward graph, and yield its sequence number.

        If the name is empty, or inside `no_grad`, add no node and yield None.
        """
        if not name or not self._tracks:
            yield None
            return
        number, place = next(self._sequence), len(self.recorder.rows)
        yield number
        forward = self.recorder.rows[place].start  # `range` has inserted the operator's row here
        self._tape.append(_Node(name, number, forward, gradient, self.recorder.replica))


def _numbers(node: _Node) -> dict[str, int]:
    return {"Sequence number": node.sequence, "Fwd thread id": _THREADS_AUTOGRAD}


def _described(inputs: tuple[object, ...]) -> dict[str, object]:
    described = [_input(value) for value in inputs]
    names = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")
    return {name: [values[place] for values in described] for place, name in enumerate(names)}


def _input(value: object) -> tuple[object, object, object, object]:
    if isinstance(value, Tensor):
        return "", value.type, list(value.strides or _contiguous(value.dims)), list(value.dims)
    if isinstance(value, TensorList):
        return "", "TensorList", [], []
    if value is None:
        return "", "", [], []
    return str(value), "ScalarList" if isinstance(value, list) else "Scalar", [], []


def _contiguous(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(dims[place + 1 :]) for place in range(len(dims)))


def _product_name(major: int, precision: str, layout: str, *, aligned: bool, vector: bool) -> tuple[str, str]:
    """Return the name of the kernel that cuBLAS chooses, and the name of its launch call."""
    if vector or precision in ("float64", "float32"):
        half = "hgemm" if vector else "sgemm"
        return {7: f"volta_{half}_128x64_tn", 8: f"ampere_{half}_128x64_tn"}.get(major, _SM90_FLOAT), "cudaLaunchKernel"
    short = {"bfloat16": "bf16", "float16": "fp16", "float8": "e4m3", "tf32": "tf32"}[precision]
    if not aligned:
        return f"cutlass_80_tensorop_{short}_s16816gemm_relu_{short}_256x128_32x3_tn_align1", "cudaLaunchKernel"
    if precision == "tf32":
        return _TF32[major], "cudaLaunchKernel"
    if major >= _HOPPER:
        return (
            f"nvjet_sm90_{'qqtst' if precision == 'float8' else 'tst'}_256x128_64x4_1x2_h_bz_coopA_{layout}",
            "cuLaunchKernelEx",
        )
    generation = (
        "ampere_{0}_s16816gemm_{0}_128x256_ldg8_f2f_stages_64x3_tn"
        if major == _AMPERE
        else "volta_{0}_s884gemm_{0}_128x128_ldg8_f2f_tn"
    )
    return generation.format(short), "cudaLaunchKernel"


_AMPERE, _HOPPER = 8, 9
_UNALIGNED = 2.6
"""If the rows are not aligned, products on tensor cores take this many times as long."""

_LARGE_BYTES = 1 << 20
_SM90_FLOAT = (
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute"
)
_TF32 = {
    8: "sm80_xmma_gemm_tf32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_warpsize2x2x1_tensor16x8x8_execute_kernel__5x_cublas",
    9: "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x256x32_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas",
}
_VECTORIZED = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::{0}, std::array<char*, 2ul> >(int, at::native::{0})"
)
_STRIDED = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::{0}>(at::TensorIteratorBase&)>(int)"
_CONVOLUTION = {
    8: "sm80_xmma_{}_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_warpsize2x2x1_g1_tensor16x8x16",
    9: "sm90_xmma_{}_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_execute",
}
_REDUCE = "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, at::native::func_wrapper_t<c10::BFloat16>>>"
_LAYER_NORM = "void at::native::(anonymous namespace)::{}<float, float, false>(int, float, float const*, float*)"
_SOFTMAX = "void at::native::(anonymous namespace)::cunn_SoftMax{}Reg<float, float, float>(float*, float const*, int)"
_NLL = (
    "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, float*)"
)
_EMBEDDING = (
    "void at::native::(anonymous namespace)::compute_grad_weight<float, long>(long const*, float const*, float*)"
)
_GATHER = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"
_FLASH = "void pytorch_flash::flash_{}_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64, 4>>"
_EFFICIENT = "fmha_cutlass{1}_f16_aligned_64x128_rf_sm70(PyTorchMemEffAttention::AttentionKernel)"
_EFFICIENT_FLOAT = "fmha_cutlass{1}_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)"
_FUSED = {7: ("efficient", _EFFICIENT), 8: ("flash", _FLASH), 9: ("flash", _FLASH)}
