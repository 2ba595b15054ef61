"""Simulate the training loop of a job, and the mistakes in it."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext

from holotrace.testing.mistakes.careless import copy_twice, count_hits, read_scalar
from holotrace.testing.mistakes.communication import Communication, parameters
from holotrace.testing.mistakes.network import Network
from holotrace.testing.mistakes.operators import Operators, Tensor, TensorList
from holotrace.testing.mistakes.recorder import COMPUTE, COPY, DATA, EXPERTS, SIDE, TENSOR, Kernel, Recorder

_LOADING_NS = 90_000


class Training:
    """The training script on one rank."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.options, self.amount = recorder, recorder.options, recorder.amount
        self.torch = Operators(recorder)
        self.communication = Communication(recorder)
        self.network = Network(self.torch, self.communication)

    def run(self) -> None:
        """Record all steps."""
        for step in range(self.options.steps):
            self.recorder.load = self._load(step)
            with self._marked(step), self.recorder.function("train.py(118): train_step"):
                self._train(step)
            self.recorder.end_step()
        self.recorder.synchronise("cudaDeviceSynchronize", (COMPUTE, COPY, SIDE, TENSOR, DATA, EXPERTS))

    def _marked(self, step: int) -> AbstractContextManager[None]:
        """Mark a step in the recording, if the script marks steps."""
        if not self.options.annotated:
            return nullcontext()
        return self.recorder.range("user_annotation", f"ProfilerStep#{10 + step}")

    def _load(self, step: int) -> float:
        """Return this rank's load in a step, relative to the mean; the most loaded rank changes at every step."""
        options = self.options
        slower = 1 + self.amount("slow_device")
        turn = (self.recorder.rank + step) % options.ranks
        return slower * (
            1 + (options.uneven + self.amount("uneven_work")) * math.cos(2 * math.pi * turn / options.ranks)
        )

    def _train(self, step: int) -> None:
        self._fetch()
        self._between_steps(step)
        for microbatch in range(self.options.microbatches):
            self._forward()
            is_last = microbatch == self.options.microbatches - 1
            self._backward(reduces=is_last or bool(self.amount("repeated_reductions")))
        self._optimize()
        self._after_step()
        self.torch.free()

    def _forward(self) -> None:
        with self.recorder.function("train.py(96): forward"), self.recorder.range("user_annotation", "forward"):
            if self.amount("data_parallel"):
                self._forward_on_replicas()
                return
            if self.options.microbatches == 1:
                self.network.forward()
                return
            with self.recorder.range("cpu_op", "DistributedDataParallel.forward"):
                self.network.forward()

    def _forward_on_replicas(self) -> None:
        """Copy the batch and the model to each device, and run the model on all of them, as DataParallel does."""
        torch, recorder = self.torch, self.recorder
        size = 4 * sum(parameters(self.options))
        with recorder.range("user_annotation", "DataParallel.forward"):
            with torch.operator("Scatter"):
                recorder.copy("DtoD (Device -> Device)", 16 * self.options.tokens)
            with torch.recorded("BroadcastBackward", lambda: self._on_each_device("Reduce_Sum_f32", size)):
                with torch.operator("Broadcast"):
                    self._on_each_device("Broadcast", size)
            for replica in range(self.options.devices_of_a_rank):
                with recorder.on_replica(replica):
                    self.network.forward()
            with torch.operator("Gather"):
                recorder.copy("DtoD (Device -> Device)", 4)

    def _on_each_device(self, collective: str, size: float) -> None:
        """Launch the kernel of a collective on each device of this process."""
        name = f"ncclDevKernel_{collective}_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        for replica in range(self.options.devices_of_a_rank):
            with self.recorder.on_replica(replica):
                self.recorder.launch(Kernel(name, size / self.options.link_gb_per_s, grid=24, block=512))

    def _backward(self, *, reduces: bool) -> None:
        """Compute the gradients and, if `reduces` is true, reduce them; it is false for microbatches in `no_sync`."""
        with (
            self.recorder.function("torch/_tensor.py(570): backward"),
            self.recorder.range("user_annotation", "backward"),
        ):
            per_node = 4 * sum(parameters(self.options)) / max(1, self.torch.position)
            self.torch.backward(lambda: self.communication.reduce_when_full(per_node) if reduces else None)
            if reduces:
                self.communication.reduce_rest()

    def _fetch(self) -> None:
        """Take a batch from the data loader, and copy it to the device."""
        recorder = self.recorder
        workers = "SingleProcess" if self.amount("data_loading") else "MultiProcessing"
        with recorder.function("torch/utils/data/dataloader.py(736): __next__"):
            with recorder.range("user_annotation", f"enumerate(DataLoader)#_{workers}DataLoaderIter.__next__"):
                recorder.pause(_LOADING_NS + self.amount("data_loading"))
        size, images = (
            int(self.amount("pageable_copy") or self.amount("copies_in_turn")),
            Tensor((self.options.tokens, 2), "long int"),
        )
        batch = Tensor((max(size // 4, images.elements),)) if size else images
        if self.amount("pageable_copy"):
            self._to_device(batch, "HtoD (Pageable -> Device)", COMPUTE)
        elif self.options.remedies.get("prefetched"):
            self._to_device(Tensor((int(self.options.remedies["prefetched"]) // 4,)), "HtoD (Pinned -> Device)", COPY)
        else:
            self._to_device(batch, "HtoD (Pinned -> Device)", COMPUTE)

    def _to_device(self, batch: Tensor, kind: str, stream: int) -> None:
        pageable = "Pageable" in kind
        with self.torch.operator("aten::to", batch, 0, not pageable), self.torch.operator("aten::_to_copy", batch):
            with self.torch.operator("aten::copy_", batch, batch, not pageable):
                self.recorder.copy(kind, batch.bytes, stream=stream)
                if pageable:
                    self.recorder.synchronise("cudaStreamSynchronize", (stream,))

    def _between_steps(self, step: int) -> None:
        """Run the script's host code before the forward pass."""
        recorder = self.recorder
        if self.amount("slow_function"):
            with recorder.function(_SLOW_FUNCTIONS[self.options.seed % len(_SLOW_FUNCTIONS)]):
                recorder.pause(self.amount("slow_function"))
        if self.amount("host_falls_behind"):
            with recorder.function("loggers/remote.py(31): send_metrics"):
                recorder.pause(self.amount("host_falls_behind"))
        if self.amount("jitter") and (recorder.rank + step) % self.options.ranks == 0:
            with recorder.function(_SLOW_FUNCTIONS[step % len(_SLOW_FUNCTIONS)]):
                recorder.pause(self.amount("jitter"))
        if self.amount("profiler_overhead"):
            recorder.profile(self.amount("profiler_overhead"))
        if self.amount("garbage_collection"):
            with recorder.function("<built-in function collect>"):
                recorder.pause(self.amount("garbage_collection"))
        if self.amount("unexplained_idle"):
            recorder.pause(self.amount("unexplained_idle"))
        if self.amount("recompilation"):
            with self.torch.operator("dynamo"), self.torch.operator("_compile.compile_inner (dynamo_timed)"):
                recorder.pause(self.amount("recompilation"))

    def _optimize(self) -> None:
        torch, recorder = self.torch, self.recorder
        with recorder.function("torch/optim/optimizer.py(507): wrapper"):
            with recorder.range("user_annotation", "Optimizer.step#AdamW.step"):
                if self.amount("dense_embedding_gradients"):
                    self._update_one(self.network.users)
                if self.amount("optimizer_not_fused"):
                    for count in parameters(self.options):
                        self._update_one(Tensor((count,), self.options.weight_type))
                else:
                    width = Tensor((1,), self.options.weight_type).bytes
                    with torch.operator("aten::_fused_adamw_", *[TensorList()] * 4):
                        for _ in range(3):
                            share = sum(parameters(self.options)) / 3
                            recorder.launch(
                                Kernel(_FUSED_ADAM, recorder.gpu.memory_ns(7 * width * share), 320, 512, 48)
                            )
        with recorder.range("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad"):
            recorder.spend(20_000)

    def _update_one(self, weight: Tensor) -> None:
        for operator, functor, reads in _ADAM:
            with self.torch.operator(operator, *[weight] * reads):
                self.torch.pointwise(functor, (reads + 1) * weight.bytes, weight.elements)

    def _after_step(self) -> None:
        if self.options.reads_loss:
            read_scalar(self.torch, Tensor(()))
        if self.amount("operator_loops"):
            count_hits(self.torch, round(self.amount("operator_loops")))
        if self.amount("host_copies"):
            copy_twice(self.torch, self.amount("host_copies"))
        for _ in range(round(self.amount("evaluation_in_steps"))):
            with self.recorder.function("train.py(141): validate"), self.torch.no_grad():
                self.network.forward()
        if not self.amount("empties_cache"):
            return
        with self.recorder.function("torch/cuda/memory.py(222): empty_cache"):
            self.recorder.synchronise("cudaFree")
            for _ in range(8):
                self.recorder.runtime("cudaFree", 120_000)


_SLOW_FUNCTIONS = (
    "augment.py(41): mix_samples",
    "metrics/running.py(88): update_histogram",
    "<built-in function sleep>",
    "my_project/callbacks.py(203): on_batch_start",
)
_ADAM = (
    ("aten::mul_", "AUnaryFunctor<float, float, float, MulFunctor>", 1),
    ("aten::lerp_", "lerp_scalar_kernel", 2),
    ("aten::mul_", "AUnaryFunctor<float, float, float, MulFunctor>", 1),
    ("aten::addcmul_", "addcmul_cuda_scalar_tensor2_kernel", 3),
    ("aten::sqrt", "sqrt_kernel_cuda", 1),
    ("aten::div", "BUnaryFunctor<float, float, float, DivFunctor>", 1),
    ("aten::add_", "CUDAFunctorOnSelf_add<float>", 1),
    ("aten::addcdiv_", "addcdiv_cuda_scalar_kernel", 3),
)
_FUSED_ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::FusedAdamMathFunctor<float, 4>>"
)
