"""Simulate the communication between the ranks of a job."""

from __future__ import annotations

from holotrace.testing.mistakes.operators import Tensor
from holotrace.testing.mistakes.options import JobOptions
from holotrace.testing.mistakes.recorder import COMPUTE, DATA, EXPERTS, TENSOR, Recorder

_BUCKET_BYTES = 100 << 20
_FEW = 20_000
"""Small parameters, such as biases and normalisation weights, have at most this many elements."""


def parameters(options: JobOptions) -> list[int]:
    """Return the number of elements of each parameter."""
    if options.model == "images":
        return [9 * options.hidden**2, options.hidden, options.hidden] * options.layers
    block = [width * options.hidden**2 for width in (3, 1, 4, 4)]
    small = [options.hidden] * 6 + [4 * options.hidden, options.hidden]
    return [options.vocabulary * options.hidden] * 2 + (block + small) * options.layers


class Communication:
    """The communication of one rank."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.options, self.amount = recorder, recorder.options, recorder.amount
        self._ready_bytes = 0

    def reduce_tensor(self, x: Tensor) -> None:
        """With tensor parallelism, sum the partial results that several ranks computed for a layer."""
        if self.options.parallelism != "tensor":
            return
        first = self.recorder.rank // self.options.ranks_per_host * self.options.ranks_per_host
        group = ("tp", tuple(range(first, first + self.options.ranks_per_host)))
        slow = 1 + (self.options.mistakes.get("slow_link", 0) if first == self.options.mistake_rank else 0)
        duration_ns = self._transfer_ns(x.elements * self.options.element_bytes, len(group[1])) * slow
        self.recorder.communicate("allreduce", group, x.elements, duration_ns, TENSOR)
        self.recorder.wait(COMPUTE, TENSOR)

    def reduce_when_full(self, size: float) -> None:
        """Reduce a bucket of gradients as soon as it is full, as DistributedDataParallel does."""
        if self.options.ranks > 1 and self.options.parallelism == "data":
            self._ready_bytes += round(size)
            if self._ready_bytes >= _BUCKET_BYTES:
                self._reduce()

    def reduce_rest(self) -> None:
        """Reduce the last bucket, and make the optimizer wait for all buckets."""
        if self.options.ranks == 1 or self.options.parallelism != "data":
            return
        sizes = [count for count in parameters(self.options) if count <= _FEW] * 40
        for count in sizes[: int(self.amount("small_collectives"))]:
            self._all_reduce(count)
        self._reduce()
        if self.amount("host_collectives"):
            self.recorder.wait_for_host_collectives()
        else:
            self.recorder.wait(COMPUTE, DATA)

    def exchange_tokens(self, rows: int, *, to_experts: bool) -> None:
        """Send tokens to the ranks of their experts, or send the results back.

        The experts on this rank receive `rows` tokens.
        """
        options = self.options
        sizes = (options.tokens, rows) if to_experts else (rows, options.tokens)
        duration_ns = self._transfer_ns(max(sizes) * options.hidden * options.element_bytes, options.ranks) / 2
        group, splits = ("ep", tuple(range(options.ranks))), self._splits(rows, to_experts=to_experts)
        self.recorder.communicate("all_to_allv", group, sizes[0] * options.hidden, duration_ns, EXPERTS, **splits)
        self.recorder.wait(COMPUTE, EXPERTS)

    def tokens_here(self) -> float:
        """Return how many tokens this rank's experts receive, relative to the mean over all ranks."""
        more = self.options.mistakes.get("uneven_experts", 0)
        if not more:
            return 1.0
        return 1 + more if self.recorder.rank == self.options.mistake_rank else 1 - more / (self.options.ranks - 1)

    def _splits(self, rows: int, *, to_experts: bool) -> dict[str, object]:
        options = self.options
        more = options.mistakes.get("uneven_experts", 0)
        others = [
            1 + more if rank == options.mistake_rank else 1 - more / (options.ranks - 1)
            for rank in range(options.ranks)
        ]
        out = [round(options.tokens * (share if more else 1) / options.ranks) for share in others]
        here = [round(rows / options.ranks)] * options.ranks
        first, second = (out, here) if to_experts else (here, out)
        return {"In split size": str(first), "Out split size": str(second)}

    def _reduce(self) -> None:
        elements, self._ready_bytes = self._ready_bytes // 4, 0
        self._all_reduce(elements)

    def _all_reduce(self, elements: int) -> None:
        group = ("dp", tuple(range(self.options.ranks)))
        if self.amount("host_collectives"):
            duration_ns = self._transfer_ns(
                2 * elements * self.options.link_gb_per_s / self.amount("host_collectives"), len(group[1])
            )
            self.recorder.communicate_on_host(group, 2 * elements, duration_ns)
            return
        self.recorder.communicate(
            "allreduce", group, elements, self._transfer_ns(2 * elements, self.options.ranks), DATA
        )

    def _transfer_ns(self, size: float, ranks: int) -> float:
        """Return how long a ring all-reduce of this many bytes takes."""
        return self.options.link_latency_ns + 2 * (ranks - 1) / ranks * size / self.options.link_gb_per_s
