"""The planted causes of waiting: one function per cause, so each cause appears as a Python function in the trace."""

from __future__ import annotations

import gc
import json
import time

import torch
from torch import Tensor

DOCUMENT = json.dumps([{"id": number, "text": "token " * 8, "weight": number / 7} for number in range(6_000)])
LARGE = torch.rand(448, 448)


def read_from_slow_disk(_: Tensor) -> None:
    """Wait 12 ms for a sample."""
    time.sleep(0.012)


def collect_garbage(_: Tensor) -> None:
    """Run a full garbage collection; it takes 0.1 s, because importing PyTorch creates a great many objects."""
    gc.collect()


def log_statistics(values: Tensor) -> None:
    """Compute 60 statistics and read each with `.item()`, like code that logs them one by one."""
    for row in range(60):
        (LARGE + values[0, 0, row % values.shape[-1]]).std().item()


def orthogonalise(gradient: Tensor) -> None:
    """Decompose a matrix that is larger than the job's other tensors."""
    torch.linalg.svd(LARGE + gradient.mean())


def clip_in_backward(_: Tensor) -> None:
    """Wait 25 ms in a hook of the backward pass."""
    time.sleep(0.025)


def wait_in_forward(_: Tensor) -> None:
    """Wait 5 ms in the forward pass of a module."""
    time.sleep(0.005)


def retry_transfer(_: Tensor) -> None:
    """Wait 30 ms, as if a transfer timed out once and was repeated."""
    time.sleep(0.03)


def multiply_large_matrices(hidden: Tensor) -> None:
    """Compute for several milliseconds, like a layer that is larger than the others."""
    with torch.no_grad():
        torch.mm(LARGE, LARGE + hidden.mean())


def sort_many_values(hidden: Tensor) -> None:
    """Sort 200,000 values."""
    with torch.no_grad():
        torch.sort(LARGE.flatten() + hidden.mean())


def parse_document(_: Tensor) -> None:
    """Parse a JSON document of 600 kB in Python."""
    json.loads(DOCUMENT)
