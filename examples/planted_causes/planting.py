"""Runs a scenario's planted cause, and measures how long it takes, independently of the profiler."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

import torch
from torch import Tensor

Cause = Callable[[Tensor], None]


class Planted:
    """A rank's planted cause. A job calls `at` at every possible point; the cause runs only where it is planted."""

    def __init__(
        self, rank: int, cause: Cause | None, point: str, repeats: Mapping[int, int], only: Collection[int]
    ) -> None:
        self.rank, self.cause, self.point, self.only = rank, cause, point, only
        self.repeats = repeats.get(rank, 0)
        self.step = 0
        self.duration_ns: dict[int, int] = defaultdict(int)
        self.call_count: dict[int, int] = defaultdict(int)
        self.computed_ns: dict[int, int] = {}
        """{step: CPU time of its forward and backward passes, without waits for other ranks}; empty for pipelines."""

    def at(self, point: str, tensor: Tensor, number: int = 0) -> None:
        """Run the cause if it is planted at this point.

        `number` is the number of the microbatch or step. If `only` contains numbers, the cause is run only in the
        microbatches or steps with these numbers.
        """
        if self.cause and point == self.point and (not self.only or number in self.only):
            for _ in range(self.repeats):
                self._run(self.cause, tensor)

    def in_backward(self, tensor: Tensor) -> Tensor:
        """If the cause is planted in the backward pass, run it when this tensor's gradient has been computed."""
        if self.point == "backward" and self.repeats and tensor.requires_grad:
            tensor.register_hook(lambda gradient: self.at("backward", gradient))
        return tensor

    def _run(self, cause: Cause, tensor: Tensor) -> None:
        begin_ns = time.perf_counter_ns()
        cause(tensor)
        self.duration_ns[self.step] += time.perf_counter_ns() - begin_ns
        self.call_count[self.step] += 1


NOTHING = torch.empty(0)
"""The tensor that a job passes to `Planted.at` if it has no other tensor at that point."""
