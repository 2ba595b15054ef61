"""Compute how long each step takes, given the times of its operations."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.longest_path import Edges, earliest_times
from holotrace.enrich.job_operations.dependencies import Dependencies
from holotrace.enrich.job_operations.table import STEP_START
from holotrace.errors import InvalidOperationsError

Int64Array: TypeAlias = npt.NDArray[np.int64]

LEAST_TRANSFER_NS = -10_000_000
"""If a transfer seems to take this time or less, the clocks are wrong.

A transfer lasts from the moment when the last rank starts the communication until the end of the communication. Small
clock errors can make this time slightly negative.
"""


def work_ns(operations: pl.DataFrame, dependencies: Dependencies) -> pl.Series:
    """Return the time that each operation needs without waiting for other ranks.

    - computation, and communication that waits for no other rank: the duration
    - communication that waits for other ranks: the time from the latest start on any rank to the end; 0 if this time is
      -10 ms or less, which shows that the clocks are wrong
    - step-start: 0, because launch delays are not part of the work
    """
    known = operations.with_columns(dependencies.instance, dependencies.waits)
    end = pl.col("start_ns") + pl.col("duration_ns")
    transfer = end - pl.col("start_ns").max().over("instance")
    plausible = pl.when(transfer > LEAST_TRANSFER_NS).then(transfer).otherwise(0)
    is_launch_delay = pl.col("kind") == STEP_START
    is_alone = pl.col("instance").is_null() | ~pl.col("waits")
    work = pl.when(is_launch_delay).then(0).when(is_alone).then("duration_ns").otherwise(plausible)
    return known.select(work.alias("work_ns"))["work_ns"]


class Replay:
    """The graph of a job's operations, which can be replayed with any operation times.

    An operation starts when all operations that it depends on have ended. A communication ends one transfer time after
    its last rank has started. Each step starts at 0 on all ranks.
    """

    def __init__(self, operations: pl.DataFrame, dependencies: Dependencies) -> None:
        """Build the graph, with one node for each start and end of an operation and one for each communication."""
        self._steps = operations["step"].rank("dense").to_numpy().astype(np.int64) - 1
        count = len(operations)
        instance = dependencies.instance.fill_null(-1).to_numpy()
        shared = np.flatnonzero(instance >= 0)
        starts, arrival = np.arange(count), 2 * count + instance
        waits = (instance >= 0) & dependencies.waits.to_numpy()
        before, row = (dependencies.after[name].to_numpy() for name in ("before", "row"))
        source = np.concatenate([np.where(waits, arrival, starts), shared, before.astype(np.int64) + count])
        target = np.concatenate([starts + count, arrival[shared], row])
        node_count = 2 * count + int(instance.max(initial=-1)) + 1
        self._edges = Edges(node_count, source.astype(np.uint32), target.astype(np.uint32))
        self._free = np.zeros(len(source) - count, np.int64)

    def ends_ns(self, work: Int64Array) -> Int64Array:
        """Return the end of each operation, relative to the start of its step.

        Raises:
            InvalidOperationsError: operations wait for one another in a cycle.
        """
        try:
            times = earliest_times(self._edges, np.concatenate([work, self._free]))
        except ValueError:
            message = (
                "the operations wait for one another in a cycle, so they cannot be replayed; check stage, microbatch and "
                "sequence of the sends and receives, and that the operations of an instance are in the same order on all ranks"
            )
            raise InvalidOperationsError(message) from None
        return times[len(work) : 2 * len(work)]

    def step_ns(self, work: Int64Array) -> Int64Array:
        """Return how long each step takes, in order of step number."""
        lengths = np.zeros(self._steps.max(initial=-1) + 1, np.int64)
        np.maximum.at(lengths, self._steps, self.ends_ns(work))
        return lengths
