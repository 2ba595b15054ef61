"""The neural networks of simulated jobs, and the mistakes in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holotrace.testing.mistakes.careless import CARELESS
from holotrace.testing.mistakes.communication import Communication
from holotrace.testing.mistakes.operators import Operators, Tensor
from holotrace.testing.mistakes.recorder import COMPUTE, SIDE, Kernel

_USER_WIDTH = 48
"""Width of the embedding table `users`; no other tensor of the network has this width."""


class Network:
    """A job's neural network on one rank."""

    def __init__(self, torch: Operators, communication: Communication) -> None:
        self.torch, self.communication = torch, communication
        self.recorder, self.options, self.amount = torch.recorder, torch.options, torch.recorder.amount

    def forward(self) -> None:
        """Compute the loss of a batch."""
        (self._images if self.options.model == "images" else self._transformer)()

    @property
    def users(self) -> Tensor:
        """The weights of the second embedding, a table of users; each step reads only a few of its rows."""
        rows = self.amount("dense_embedding_gradients") or self.options.remedies.get("sparse_gradients", 0)
        return Tensor((int(rows), _USER_WIDTH))

    def _transformer(self) -> None:
        options, torch = self.options, self.torch
        width, kind = options.hidden, "float" if options.autocast else options.element_type
        vocabulary = options.vocabulary + int(self.amount("unaligned_products"))
        with self.recorder.function("nn.Module: Transformer_0"):
            with self.recorder.function("nn.Module: Embedding_0"):
                x = torch.embedding(Tensor((vocabulary, width), kind), options.tokens)
            if self.users.elements:
                with self.recorder.function("nn.Module: Embedding_1"):
                    torch.embedding(self.users, options.tokens, sparse="sparse_gradients" in options.remedies)
            x = x.of(options.tokens // options.sequence, options.sequence, width)
            for layer in range(options.layers):
                self._run(layer, x)
                self._after_block(layer, x)
            with self.recorder.function("nn.Module: LayerNorm_99"):
                torch.layer_norm(x)
            with self.recorder.function("nn.Module: Linear_99"):
                logits = torch.linear(x, Tensor((vocabulary, width), kind))
        with self.recorder.function("torch/nn/functional.py(3500): cross_entropy"):
            torch.loss(logits)

    def _run(self, layer: int, x: Tensor) -> None:
        """Run a block as a compiled region, with activation checkpointing, or without either."""
        if self.options.compiled:
            self._compiled(layer, x)
        elif self.amount("recomputation"):
            with self.recorder.function("torch/utils/checkpoint.py(348): checkpoint"):
                place = self.torch.position
                self._block(layer, x)
                self.torch.again(place, lambda: self._block(layer, x))
        else:
            self._block(layer, x)

    def _compiled(self, layer: int, x: Tensor) -> None:
        """Run a block as a compiled region or, with `graph_breaks`, as two regions with Python code between them."""
        if not self.amount("graph_breaks"):
            with self._region(0):
                self._block(layer, x)
            return
        with self._region(2 * layer):
            self._first_half(layer, x)
        with self.recorder.function("model.py(77): torch_dynamo_resume_in_forward_at_74"):
            self.recorder.pause(self.amount("graph_breaks"))
            with self._region(2 * layer + 1):
                self._second_half(layer, x)

    @contextmanager
    def _region(self, number: int) -> Iterator[None]:
        with self.torch.operator(f"Torch-Compiled Region: {number}/0"), self.torch.operator("CompiledFunction"):
            yield

    def _block(self, layer: int, x: Tensor) -> None:
        with self.recorder.function(f"nn.Module: Block_{layer}"):
            self._first_half(layer, x)
            self._second_half(layer, x)

    def _first_half(self, layer: int, x: Tensor) -> None:
        torch = self.torch
        with self.recorder.function(f"nn.Module: LayerNorm_{2 * layer}"):
            torch.layer_norm(x)
        self._attention(layer, x)
        self.communication.reduce_tensor(x)
        torch.unary("aten::add", "CUDAFunctor_add<float>", x, reads=2, gradient="AddBackward0")

    def _second_half(self, layer: int, x: Tensor) -> None:
        torch = self.torch
        with self.recorder.function(f"nn.Module: LayerNorm_{2 * layer + 1}"):
            torch.layer_norm(x)
        if self.options.model == "experts":
            self._experts(layer, x)
        else:
            self._perceptron(layer, x)
        self._branches()
        self.communication.reduce_tensor(x)
        torch.unary("aten::add", "CUDAFunctor_add<float>", x, reads=2, gradient="AddBackward0")

    def _branches(self) -> None:
        """If the blocks of the network have two branches, compute one of them on a side stream.

        With the mistake `streams_in_turn` or the remedy `full_branches`, the branches run one after the other; otherwise,
        they run at the same time.
        """
        remedies = self.options.remedies
        if remedies.get("dependent_branches"):
            self._chain(remedies["dependent_branches"])
        in_turn = self.amount("streams_in_turn") or remedies.get("full_branches", 0)
        duration_ns = in_turn or remedies.get("parallel_branches", 0)
        if not duration_ns:
            return
        with self.recorder.function("two_branches.py(61): forward"):
            self.recorder.wait(SIDE, COMPUTE)
            self._branch("texture", duration_ns, SIDE)
            if in_turn:
                self.recorder.wait(COMPUTE, SIDE)
            self._branch("shape", duration_ns, COMPUTE)
            if not in_turn:
                self.recorder.wait(COMPUTE, SIDE)

    def _chain(self, duration_ns: float) -> None:
        """Launch groups of small kernels alternately on two streams; each group waits for the previous group."""
        with self.recorder.function("two_branches.py(84): refine"):
            for _ in range(_CHAIN_TURNS):
                for name, stream, source in (("texture", SIDE, COMPUTE), ("shape", COMPUTE, SIDE)):
                    self.recorder.wait(stream, source)
                    self._branch(name, duration_ns / _CHAIN_TURNS, stream)

    def _branch(self, name: str, duration_ns: float, stream: int) -> None:
        grid = 4096 if "full_branches" in self.options.remedies else int(_BRANCH_SMS * self.recorder.gpu.sm_count)
        for _ in range(_BRANCH_KERNELS):
            kernel = Kernel(f"{name}_rows_kernel", duration_ns / _BRANCH_KERNELS, grid, 256, 64)
            self.torch.custom(f"two_branches::{name}", kernel, stream)

    def _attention(self, layer: int, x: Tensor) -> None:
        options, torch = self.options, self.torch
        width = options.hidden
        with self.recorder.function(f"nn.Module: Attention_{layer}"):
            with self.recorder.function(f"nn.Module: Linear_{4 * layer}"):
                result = torch.linear(x, self._weight(3 * width, width))
            query = Tensor((x.dims[0], options.heads, x.dims[1], width // options.heads), result.type)
            for _ in range(int(self.amount("transposes"))):
                query = torch.contiguous(query)
            if self.amount("unfused_attention"):
                torch.attention_written_out(query)
            else:
                torch.attention(query)
            with self.recorder.function(f"nn.Module: Linear_{4 * layer + 1}"):
                torch.linear(result.of(*x.dims), self._weight(width, width))

    def _perceptron(self, layer: int, x: Tensor) -> None:
        torch, width = self.torch, self.options.hidden
        slow = 1 / (1 + self.amount("slow_products"))
        with self.recorder.function(f"nn.Module: Perceptron_{layer}"):
            with self.recorder.function(f"nn.Module: Linear_{4 * layer + 2}"):
                hidden = torch.linear(x, self._weight(4 * width, width), bias=True, efficiency=slow)
            self._activation(hidden)
            with self.recorder.function(f"nn.Module: Linear_{4 * layer + 3}"):
                torch.linear(hidden, self._weight(width, 4 * width), bias=True, efficiency=slow)

    def _activation(self, x: Tensor) -> None:
        """Run the operators that the job's mistake or remedy adds here, if any, then apply GELU."""
        torch = self.torch
        for place in range(int(self.amount("unfused_chain"))):
            operator, functor = _CHAIN[place % len(_CHAIN)]
            torch.unary(operator, functor, x)
        for _ in range(int(self.amount("casts"))):
            x = torch.converted(torch.converted(x, "float"), x.type)
        if self.amount("slow_memory_kernels"):
            self._multiply(x.transposed, efficiency=self.amount("slow_memory_kernels"), strided=True)
        if "contiguous" in self.options.remedies:
            self._multiply(x)
        if self.amount("small_grid"):
            torch.custom(
                "triton_kernels::scan_rows", Kernel("scan_rows_kernel", self.amount("small_grid"), 24, 256, 64)
            )
        if self.amount("low_occupancy"):
            torch.custom(
                "triton_kernels::gated_rows", Kernel("gated_rows_kernel", self.amount("low_occupancy"), 4096, 128, 255)
            )
        if "good_kernel" in self.options.remedies:
            torch.custom(
                "triton_kernels::gated_rows",
                Kernel("gated_rows_kernel", self.options.remedies["good_kernel"], 4096, 256, 40),
            )
        if self.amount("tiny_kernels"):
            names = [_TINY_KERNELS[place % len(_TINY_KERNELS)] for place in range(int(self.amount("tiny_kernels")))]
            self.recorder.replay([Kernel(name, _TINY_NS, 64) for name in names])
        torch.unary("aten::gelu", "GeluCUDAKernelImpl", x, gradient="GeluBackward0")

    def _multiply(self, x: Tensor, *, efficiency: float = 0.82, strided: bool = False) -> None:
        with self.torch.operator("aten::mul", x, x):
            self.torch.pointwise(
                "BinaryFunctor<MulFunctor>", 3 * x.bytes, x.elements, efficiency=efficiency, strided=strided
            )

    def _experts(self, layer: int, x: Tensor) -> None:
        """Send tokens to the ranks of their experts, compute, and send the results back."""
        width = self.options.hidden
        rows = round(self.options.tokens * self.communication.tokens_here())
        self.communication.exchange_tokens(rows, to_experts=True)
        with self.recorder.function(f"nn.Module: Experts_{layer}"):
            hidden = self.torch.linear(Tensor((1, rows, width), x.type), self._weight(2 * width, width))
            self.torch.unary("aten::silu", "silu_kernel", hidden)
            self.torch.linear(hidden, self._weight(width, 2 * width))
        self.communication.exchange_tokens(rows, to_experts=False)

    def _images(self) -> None:
        """Run a convolutional network, whose blocks consist of a convolution, a normalisation and an activation."""
        options, torch = self.options, self.torch
        size, channels = 56, options.hidden
        with self.recorder.function("nn.Module: ResNet_0"):
            for layer in range(options.layers):
                x = Tensor((options.tokens, channels, size, size), options.element_type)
                with self.recorder.function(f"nn.Module: Block_{layer}"):
                    self._convolution(x)
                    self._batch_norm(x)
                    torch.unary("aten::relu_", "clamp_min_scalar_kernel_impl", x, gradient="ReluBackward0")
                self._after_block(layer, x)
            flat = Tensor((options.tokens, channels), options.element_type)
            with self.recorder.function("nn.Module: Linear_0"):
                logits = torch.linear(flat, Tensor((1000, channels), options.element_type))
            torch.loss(logits)

    def _convolution(self, x: Tensor) -> None:
        torch, weight = self.torch, Tensor((x.dims[1], x.dims[1], 3, 3), x.type)

        def convert(direction: str) -> None:
            if self.amount("channels_first"):
                name = f"void cudnn::engines_precompiled::{direction}Kernel<__nv_bfloat16, __nv_bfloat16, float, false, true, (cudnnKernelDataType_t)2>"
                self.recorder.launch(Kernel(name, self.recorder.gpu.memory_ns(2 * x.bytes, 0.6), 4096, 256))

        def gradient() -> None:
            inputs = (x, x, weight, [0], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False])
            with torch.operator("aten::convolution_backward", *inputs):
                for layout in ("dgrad", "wgrad"):
                    convert("nchwToNhwc")
                    torch.convolve(x, layout)
                    convert("nhwcToNchw")

        inputs = (x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        with (
            torch.operator("aten::conv2d", *inputs[:6], 1),
            torch.recorded("ConvolutionBackward0", gradient) as number,
        ):
            with (
                torch.operator("aten::convolution", *inputs, sequence=number),
                torch.operator("aten::_convolution", *inputs),
            ):
                with torch.operator("aten::cudnn_convolution", x, weight, [1, 1], [1, 1], [1, 1], 1, True, False, True):
                    convert("nchwToNhwc")
                    torch.convolve(x, "fprop")
                    convert("nhwcToNchw")

    def _batch_norm(self, x: Tensor) -> None:
        torch, width = self.torch, Tensor((x.dims[1],))
        rate = 0.6 if not self.amount("channels_first") else 0.4
        inputs = (x, width, width, width, width, True, 0.1, 1e-5)

        def gradient() -> None:
            with torch.operator(
                "aten::cudnn_batch_norm_backward", x, x, width, width, width, width, width, 1e-5, Tensor((0,))
            ):
                self.recorder.launch(
                    Kernel(_BATCH_NORM.format("bwd"), self.recorder.gpu.memory_ns(5 * x.bytes, rate), 1056, 512, 64)
                )

        with (
            torch.operator("aten::batch_norm", *inputs, True),
            torch.recorded("CudnnBatchNormBackward0", gradient) as number,
        ):
            with torch.operator("aten::cudnn_batch_norm", *inputs, sequence=number):
                self.recorder.launch(
                    Kernel(_BATCH_NORM.format("fwd"), self.recorder.gpu.memory_ns(3 * x.bytes, rate), 1056, 512, 64)
                )

    def _after_block(self, layer: int, x: Tensor) -> None:
        """Wait for the device after some of the blocks, as a careless script does."""
        for name, wait in CARELESS.items():
            if layer < self.amount(name):
                wait(self.torch, x)

    def _weight(self, rows: int, columns: int) -> Tensor:
        return Tensor((rows, columns), "float" if self.options.autocast else self.options.element_type)


_CHAIN = (
    ("aten::pow", "pow_tensor_scalar_kernel_impl"),
    ("aten::mul", "AUnaryFunctor<float, float, float, MulFunctor>"),
    ("aten::add", "CUDAFunctorOnSelf_add<float>"),
    ("aten::tanh", "tanh_kernel_cuda"),
)
_TINY_KERNELS = (
    "triton_red_fused_mean_mul_pow_rsqrt_3",
    "void gemvNSP_kernel<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 1, 32, 4, 1024>(cublasGemvParamsEx)",
    "triton_poi_fused_cat_mul_neg_5",
    "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel>(long)",
    "void gemvNSP_kernel<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 1, 16, 2, 512>(cublasGemvParamsEx)",
    "triton_per_fused__softmax_7",
)
_BATCH_NORM = "void cudnn::bn_{}_nhwc_semiPersist<__nv_bfloat16, 512>(float*, float*, float*)"
_TINY_NS = 2_300
_BRANCH_SMS, _BRANCH_KERNELS, _CHAIN_TURNS = 0.36, 4, 3
"""Each kernel of a branch has 0.36 thread blocks per SM, unless the branch is meant to fill the device."""
