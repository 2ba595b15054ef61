"""The scenarios to record: each is a job with or without a planted cause."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

import causes
import data_parallel
import pipelines
from planting import Cause, Planted

Job = Callable[[Iterable[int], Planted], None]


class Scenario(NamedTuple):
    """A job and the cause planted in it, if any."""

    job: Job
    ranks: int
    healthy: str
    """The scenario with the same job and nothing planted."""
    says: str
    point: str = ""
    """Name of the place in the job where the cause is planted; at this place, the job passes the name to `Planted.at`."""
    cause: Cause | None = None
    repeats: Mapping[int, int] = {}
    """{slow rank: number of times that it runs the cause}; for long sequences, the factor of their length."""
    only: Collection[int] = ()
    """The microbatches (for a cause in a forward pass) or steps (for a cause at the end of a step) with the cause.

    If this is empty, all microbatches or steps have the cause.
    """

    def planted(self, rank: int) -> Planted:
        """Return the planted cause of a rank."""
        return Planted(rank, self.cause, self.point, self.repeats, self.only)


def _on(job: Job, ranks: int, healthy: str) -> Callable[..., Scenario]:
    return lambda *planted: Scenario(job, ranks, healthy, *planted)


_ddp = _on(data_parallel.ddp, 3, "ddp_healthy")
_fsdp = _on(data_parallel.fsdp, 2, "fsdp_healthy")
_tensor_parallel = _on(data_parallel.tensor_parallel, 2, "tensor_parallel_healthy")
_one_f_one_b = _on(pipelines.one_f_one_b, 3, "1f1b_healthy")
_interleaved = _on(pipelines.interleaved, 2, "interleaved_healthy")
_zero_bubble = _on(pipelines.zero_bubble, 2, "zero_bubble_healthy")
_replicas = _on(pipelines.pipeline_and_replicas, 4, "pipeline_dp_healthy")

SCENARIOS: dict[str, Scenario] = {
    "ddp_healthy": _ddp("DDP; nothing planted"),
    "ddp_data_loading": _ddp(
        "Rank 1 waits 12 ms for each of its two samples", "data loading", causes.read_from_slow_disk, {1: 1}
    ),
    "ddp_garbage_collection": _ddp(
        "Rank 2 collects garbage after step 4", "end of step", causes.collect_garbage, {2: 1}, {4}
    ),
    "ddp_item_calls": _ddp(
        "Rank 0 calls .item() after each step, once for each of 60 statistics",
        "end of step",
        causes.log_statistics,
        {0: 1},
    ),
    "ddp_optimizer": _ddp(
        "Rank 0 decomposes a matrix before each optimizer step", "optimizer", causes.orthogonalise, {0: 1}
    ),
    "ddp_slow_backward": _ddp(
        "Rank 1 waits in a hook of its backward pass; the all-reduce in the backward pass makes the backward ranges of all ranks equally long",
        "backward",
        causes.clip_in_backward,
        {1: 1},
    ),
    "ddp_sequence_lengths": _ddp(
        "Rank 2's sequences are 96 times as long as those of the others", "sequence length", None, {2: 96}
    ),
    "fsdp_healthy": _fsdp("FSDP2; nothing planted"),
    "fsdp_slow_rank": _fsdp(
        "Rank 1 parses a document four times in its perceptron", "forward", causes.parse_document, {1: 4}
    ),
    "tensor_parallel_healthy": _tensor_parallel("A perceptron split over two ranks; nothing planted"),
    "tensor_parallel_slow_rank": _tensor_parallel(
        "Rank 0 sorts in its perceptron", "forward", causes.sort_many_values, {0: 1}
    ),
    "1f1b_healthy": _one_f_one_b("Three pipeline stages, 1F1B; nothing planted"),
    "1f1b_slow_rank": _one_f_one_b("Rank 1 waits in each forward", "forward", causes.wait_in_forward, {1: 1}),
    "1f1b_slow_microbatch": _one_f_one_b(
        "Rank 0 waits in the forward of microbatch 2", "forward", causes.retry_transfer, {0: 1}, {2}
    ),
    "interleaved_healthy": _interleaved("Two stages on each of two ranks, interleaved 1F1B; nothing planted"),
    "interleaved_slow_rank": _interleaved(
        "Rank 1 multiplies large matrices in each forward", "forward", causes.multiply_large_matrices, {1: 1}
    ),
    "zero_bubble_healthy": _zero_bubble("Two stages on each of two ranks, zero-bubble schedule; nothing planted"),
    "zero_bubble_slow_rank": _zero_bubble("Rank 0 waits in each forward", "forward", causes.wait_in_forward, {0: 1}),
    "pipeline_dp_healthy": _replicas("Two stages and two replicas, 1F1B; nothing planted"),
    "pipeline_dp_rank1": _replicas("Rank 1 waits in each forward", "forward", causes.wait_in_forward, {1: 1}),
    "pipeline_dp_rank3": _replicas(
        "Rank 3 parses a document in each forward", "forward", causes.parse_document, {3: 1}
    ),
    "pipeline_dp_ranks_0_3": _replicas(
        "Rank 0 waits in each forward, rank 3 twice as long", "forward", causes.wait_in_forward, {0: 1, 3: 2}
    ),
}
