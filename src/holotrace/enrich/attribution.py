"""Computes holotrace's version of the facts about a rank that the TensorBoard plugin defines differently.

An analysis with the option `compat` takes these facts from an `Attribution`. The methods here return holotrace's
numbers. `holotrace.enrich.tensorboard_plugin.attribution` overrides each method for which the plugin has a different
number. `holotrace.enrich.compat` chooses whose numbers an analysis uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Int64Array, Intervals
from holotrace.algorithms.nested.nesting import itself_or_above, nearest_above
from holotrace.enrich.across_ranks.matching.calls import OfRank, of_rank
from holotrace.enrich.across_ranks.ranges import JobRanges, job_ranges
from holotrace.enrich.collectives.collectives import host_call_count
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.graph_attribution.findings import graph_findings
from holotrace.enrich.host.host_nodes import device_owner, host_nodes
from holotrace.enrich.host.module_times import ModuleTimes, module_times
from holotrace.enrich.host.node_times import Bools, node_times
from holotrace.enrich.host.operator_stacks import OperatorStacks, operator_stacks
from holotrace.enrich.job.processes import host_and_process
from holotrace.enrich.kernels.kernel_calls import kernel_calls
from holotrace.enrich.kernels.tensor_cores import is_tensor_core_eligible
from holotrace.enrich.memory.memory_blocks import TimeWindow, blocks_in_window
from holotrace.enrich.memory.memory_events import Rows, nodes_of_memory_events
from holotrace.enrich.steps.step_roles import roles, times_within
from holotrace.enrich.steps.steps import device_extended_windows
from holotrace.store.trace import RankTrace


@dataclass(frozen=True)
class Attribution:
    """Returns holotrace's own numbers. The class has no fields, so all instances are equal and can be pickled."""

    # The host: how calls nest, and which work they cause

    def host_nodes(self, rank_trace: RankTrace) -> pl.DataFrame:
        """Return the host trees; see `holotrace.enrich.host.host_nodes.host_nodes`."""
        return host_nodes(rank_trace)

    def node_times(self, rank_trace: RankTrace) -> pl.DataFrame:
        """Return the times of every host node; see `holotrace.enrich.host.node_times.node_times`."""
        return node_times(rank_trace)

    def device_owner(self, rank_trace: RankTrace) -> pl.DataFrame:
        """Return the node that caused each item of device work; see `holotrace.enrich.host.host_nodes.device_owner`."""
        return device_owner(rank_trace)

    def operator_stacks(self, rank_trace: RankTrace) -> OperatorStacks:
        """Return the call stacks of the operators."""
        return operator_stacks(rank_trace)

    def counted_operators(self, nodes: pl.DataFrame) -> pl.DataFrame:
        """Return the nodes to count in the operator tables.

        Their order matters, because a subclass's `is_eligible` may depend on it.
        """
        return nodes.filter("is_counted")

    def is_eligible(self) -> pl.Expr:
        """Return an expression over an operator's calls: true if tensor cores could do the work of any of the calls."""
        return pl.col("is_tensor_core_eligible").any()

    def is_tensor_core_eligible(self, names: pl.Series) -> pl.Series:
        """Return, for each operator name, whether tensor cores could do the operator's work."""
        return is_tensor_core_eligible(names)

    def input_shapes(self, texts: pl.Series) -> pl.Series:
        """Return the input shapes in the format in which they are shown; null if not recorded."""
        return texts

    def module_times(self, rank_trace: RankTrace) -> ModuleTimes:
        """Return the times of modules; see `holotrace.enrich.host.module_times.module_times`."""
        return module_times(rank_trace)

    # Kernels

    def kernel_calls(self, rank_trace: RankTrace) -> pl.DataFrame:
        """Return the kernels; see `holotrace.enrich.kernels.kernel_calls.kernel_calls`."""
        return kernel_calls(rank_trace)

    def kernels_by_name(self, _: RankTrace, kernels: pl.DataFrame) -> pl.DataFrame:
        """Return the kernels whose durations are summed by name; `duration_ns` is the duration to sum."""
        return kernels

    def listed_launches(self, kernels: pl.DataFrame) -> pl.DataFrame:
        """Return the kernels for the table of launch shapes, each with its operator (null if unknown)."""
        return kernels

    def mean_by_duration(self, column: str) -> pl.Expr:
        """Return the mean of a column over kernels, weighted by duration; null if all known values have weight 0."""
        value, weight = pl.col(column), pl.col("duration_ns")
        known = weight.filter(value.is_not_null()).sum()
        return pl.when(known > 0).then((value * weight).sum() / known)

    def kernels_on_tensor_cores(self, _: RankTrace, kernels: pl.DataFrame) -> pl.DataFrame:
        """Return the kernels for which the fraction of time on tensor cores is computed."""
        return kernels

    def kernels_of_unknown_size(self, kernels: pl.DataFrame) -> pl.DataFrame:
        """Return the kernels whose number of blocks per SM is unknown."""
        return kernels.filter((pl.col("blocks_per_sm") > 0).not_().fill_null(value=True))

    # Steps

    def check_annotation(self, annotation: str | None) -> None:
        """Raise an error if this annotation cannot define steps; only subclasses refuse annotations."""

    def step_windows(self, rank_trace: RankTrace, annotation: str | None = None) -> pl.DataFrame:
        """Return window, start_ns and end_ns of each step, extended to the end of its device work; in time order."""
        if annotation is not None:
            return device_extended_windows(rank_trace, annotation)
        return device_extended_windows(rank_trace)

    def roles(self, rank_trace: RankTrace) -> dict[str, Intervals]:
        """Return the intervals of each role; see `holotrace.enrich.steps.step_roles.roles`."""
        return roles(rank_trace)

    def role_times(self, intervals: Mapping[str, Intervals], steps: pl.DataFrame) -> dict[str, Int64Array]:
        """Return the time of each role in each step; see `holotrace.enrich.steps.step_roles.times_within`."""
        return times_within(intervals, steps)

    def series_edges(self, _: RankTrace, whole: Int64Array, parts: int) -> Int64Array:
        """Return the bin edges of a time series; `whole` contains the first step's start and the last step's end."""
        start_ns, end_ns = whole.tolist()
        # Compute the edges relative to the start: a double cannot represent an absolute timestamp to the nanosecond.
        edges: Int64Array = start_ns + np.linspace(0, end_ns - start_ns, parts + 1).astype(np.int64)
        return edges

    # Communication

    def communication(self, rank_trace: RankTrace, _: pl.DataFrame) -> OfRank:
        """Return the communication of a rank, in the form that `job_ranges` expects."""
        return of_rank(rank_trace)

    def job_ranges(self, of_ranks: Mapping[int, OfRank], steps: pl.DataFrame) -> JobRanges:
        """Match the communication of all ranks; see `holotrace.enrich.across_ranks.ranges.job_ranges`."""
        return job_ranges(of_ranks, steps)

    def host_call_count(self, rank_trace: RankTrace) -> int:
        """Return how many collectives the host called; a finding reports this number if none ran on a device."""
        return host_call_count(rank_trace)

    def waiting_of_steps(self, counts: pl.Expr) -> pl.Expr:
        """Return the values of a `per_step` column about collectives; 0 for steps without collectives."""
        return pl.when(pl.col("step").is_not_null()).then(counts.fill_null(0)).otherwise(counts)

    def steps_in_means(self, per_step: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of `per_step` that are averaged into the mean step."""
        return per_step.drop_nulls("step")

    def steps_in_mean_waiting(self, per_step: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of `per_step` that are averaged into the mean waiting time."""
        return per_step.drop_nulls("step")

    def used_devices(self, rank_trace: RankTrace) -> list[int]:
        """Return the devices on which the rank ran work, as a list of device numbers."""
        return [int(device) for device in np.unique(device_work(rank_trace)["device"].to_numpy())]

    def host_and_process(self, rank_trace: RankTrace) -> tuple[str | None, int | None]:
        """Return the host of the rank, and the number of its process on this host; None if unknown."""
        return host_and_process(rank_trace)

    def numbered_processes(self, devices: pl.DataFrame) -> pl.DataFrame:
        """Return the devices of all ranks, each with the number of the process that uses it."""
        return devices

    def communication_findings(self, findings: tuple[str, ...], _of_matching: tuple[str, ...]) -> tuple[str, ...]:
        """Return all findings about communication; a subclass may return only those about matching calls."""
        return findings

    # Memory

    def nodes_of_memory_events(self, rank_trace: RankTrace) -> Rows:
        """Return the innermost host node around each memory event; -1 if there is none."""
        return nodes_of_memory_events(rank_trace)

    def operator_and_caller(self, parent: Rows, is_counted: Bools, node: Rows) -> tuple[Rows, Rows]:
        """Return the operator of each node, and the next operator that encloses this operator; -1 if there is none.

        Args:
            parent: the parent of each host node; the last entry is for node -1.
            is_counted: whether each host node is an operator; the last entry is for node -1.
            node: rows of host nodes.
        """
        operator = itself_or_above(parent, is_counted, node)
        return operator, nearest_above(parent, is_counted, operator)

    def shown_memory_events(self, events: pl.DataFrame) -> pl.DataFrame:
        """Return the memory events to show."""
        return events

    def blocks_in_window(self, events: pl.DataFrame, window: TimeWindow) -> pl.DataFrame:
        """Return the blocks of memory; see `holotrace.enrich.memory.memory_blocks.blocks_in_window`."""
        return blocks_in_window(events, window)

    def nodes_in_window(self, nodes: pl.DataFrame, _: pl.DataFrame, window: TimeWindow) -> pl.DataFrame:
        """Return the host nodes in a window; only these are counted as calls.

        Args:
            nodes: the host trees.
            _: memory events, each with the row of its host node.
            window: the window.
        """
        return nodes.filter(window.touches())

    def names_around(self, around: pl.DataFrame) -> pl.DataFrame:
        """Return, for each memory change, the names of the operators around it, each distinct name once."""
        return around.unique()

    # Findings

    def graph_findings(self, rank_trace: RankTrace) -> tuple[str, ...]:
        """Return the findings on how much of the time in CUDA and HIP graphs could be attributed to operators."""
        return graph_findings(rank_trace)

    def shown_findings(self, findings: tuple[str, ...]) -> tuple[str, ...]:
        """Return the findings to show."""
        return findings
