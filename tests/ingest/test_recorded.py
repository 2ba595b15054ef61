"""`open_trace` opens a finished profiler like a file."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path

import pytest

import holotrace
from holotrace.errors import InvalidOptionError
from holotrace.execution.processes import processes
from holotrace.testing.builder import TraceBuilder


class Recording:
    """A stand-in for a `torch.profiler.profile` that has recorded one kernel and can export it."""

    def __init__(self) -> None:
        """Start without a file."""
        self.path = Path()

    def export_chrome_trace(self, path: str) -> None:
        """Write the trace of rank 3 to a path."""
        self.path = Path(path)
        builder = TraceBuilder().header(distributedInfo={"rank": 3, "world_size": 8, "backend": "nccl"})
        (written,) = builder.kernel("gemm", start_us=10, duration_us=5).write(self.path.parent / "written")
        shutil.move(written, path)


class Unfinished:
    """A stand-in for a profiler that has not been stopped."""

    def export_chrome_trace(self, path: str) -> None:
        """Raise the same error as PyTorch (torch/profiler/profiler.py)."""
        del path
        message = "Profiler must be initialized before exporting chrome trace"
        raise AssertionError(message)


@pytest.mark.parametrize("cache", [True, False])
def test_a_finished_profiler_is_a_trace(*, cache: bool) -> None:
    """A finished profiler opens as a trace of the process's rank; deleting the `Trace` deletes the exported file."""
    profiler = Recording()
    trace = holotrace.open_trace(profiler, cache=cache).select([3])

    assert holotrace.kernels(trace).per_kernel["name"].to_list() == ["gemm"]
    assert profiler.path.exists()
    del trace
    gc.collect()
    assert not profiler.path.parent.exists()


@pytest.mark.slow
def test_workers_read_the_recording() -> None:
    """Worker processes can analyse a recording, because they open the exported file."""
    trace = holotrace.open_trace(Recording(), cache=False)
    with processes(1) as pool:
        assert holotrace.kernels(trace, executor=pool).per_kernel.height == 1


def test_an_unfinished_profiler_is_an_error_that_says_so() -> None:
    """The error contains PyTorch's reason and says to stop the profiler first."""
    with pytest.raises(InvalidOptionError, match=r"cannot export its recording \(Profiler must be .*stop it first"):
        holotrace.open_trace(Unfinished())


def test_a_profiler_of_pytorch_is_opened() -> None:
    """If PyTorch is installed, its finished profiler opens as a trace with `aten::mm`."""
    torch = pytest.importorskip("torch")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        torch.ones(8, 8) @ torch.ones(8, 8)

    operators = holotrace.operators(holotrace.open_trace(profiler, cache=False)).per_operator["operator"]

    assert "aten::mm" in operators.to_list()
