"""Simulate careless operations of a script, most of which make the host wait for the device."""

from __future__ import annotations

from collections.abc import Callable

from holotrace.testing.mistakes.operators import Operators, Tensor
from holotrace.testing.mistakes.recorder import COMPUTE, COPY, Kernel


def read_scalar(torch: Operators, _: Tensor) -> None:
    """Read a single value from the device."""
    with torch.recorder.function("<built-in method item of Tensor object at 0x7fa2c4d1e3a0>"):
        with (
            torch.operator("aten::item", Tensor(())),
            torch.operator("aten::_local_scalar_dense", Tensor(())),
        ):
            torch.recorder.copy("DtoH (Device -> Pinned)", 4)
            torch.recorder.synchronise("cudaStreamSynchronize")


def count_hits(torch: Operators, count: int) -> None:
    """Compare predictions with labels one by one, on the host."""
    with torch.recorder.function("metrics/accuracy.py(27): count_hits"):
        for _ in range(count):
            torch.view("aten::select", Tensor((count,), "long int"))
            with torch.operator("aten::item", Tensor(())), torch.operator("aten::_local_scalar_dense", Tensor(())):
                torch.recorder.spend(300)


def copy_twice(torch: Operators, duration_ns: float) -> None:
    """Make a tensor contiguous on the host, then copy the result; each copy takes half of `duration_ns`."""
    x = Tensor((64, 128, 64))
    with torch.recorder.function("layers/mixer.py(31): shuffle"):
        for outer in ("aten::contiguous", "aten::clone"):
            with torch.operator(outer, x), torch.operator("aten::copy_", x, x, False):
                torch.recorder.pause(duration_ns / 2)


def select_rows(torch: Operators, x: Tensor) -> None:
    """Select rows by a mask; the host must wait until the device has counted the selected rows."""
    rows = x.elements // x.dims[-1]
    flat, mask = Tensor((rows, x.dims[-1]), x.type), Tensor((rows,), "bool")
    with torch.operator("aten::index", flat, None):
        with torch.operator("aten::nonzero", mask):
            torch.recorder.launch(Kernel(_COUNT, 2_000, 16, 256, 30, 44))
            torch.recorder.copy("DtoH (Device -> Pinned)", 8)
            torch.recorder.synchronise("cudaStreamSynchronize")
            torch.recorder.launch(Kernel(_COMPACT, 3_000, 16, 128))
        torch.recorder.launch(Kernel(_INDEX, 4_000, 64, 128))


def copy_to_host(torch: Operators, _: Tensor) -> None:
    """Copy a small tensor to the host, and wait for it."""
    small = Tensor((64,))
    with torch.operator("aten::to", small, 6, None, None, None, False, False, None):
        with torch.operator("aten::_to_copy", small), torch.operator("aten::copy_", small, small, False):
            torch.recorder.copy("DtoH (Device -> Pageable)", small.bytes)
            torch.recorder.synchronise("cudaStreamSynchronize")


def wait_for_device(torch: Operators, _: Tensor) -> None:
    """Wait for the whole device."""
    with torch.recorder.function("torch/cuda/__init__.py(1152): synchronize"):
        with torch.recorder.function("<built-in function _cuda_synchronize>"):
            torch.recorder.synchronise("cudaDeviceSynchronize", (COMPUTE, COPY))


def wait_for_stream(torch: Operators, _: Tensor) -> None:
    """Wait for a stream."""
    with torch.recorder.function("torch/cuda/streams.py(105): synchronize"):
        torch.recorder.synchronise("cudaStreamSynchronize")


CARELESS: dict[str, Callable[[Operators, Tensor], None]] = {
    "scalar_read": read_scalar,
    "data_dependent_shape": select_rows,
    "blocking_copy": copy_to_host,
    "device_synchronisation": wait_for_device,
    "stream_synchronisation": wait_for_stream,
}
"""For each mistake, the function that simulates it. `network` calls this function after some blocks of the model."""

_COUNT = (
    "void at_cuda_detail::cub::detail::reduce::DeviceReduceKernel<at_cuda_detail::cub::detail::reduce::policy_hub<int>>"
)
_COMPACT = "void at_cuda_detail::cub::detail::select::DeviceSelectSweepKernel<long>"
_INDEX = "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel>(long)"
