"""Attribute time as the TensorBoard plugin does, by overriding every method in which the plugin differs from holotrace.

The attribution follows the last version of the plugin, including its mistakes, so users see the same numbers.
docs/explanation/differences_from_torch_tb_profiler.md explains the differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Int64Array, Intervals
from holotrace.algorithms.nested.nesting import NO_PARENT, subtree_sums
from holotrace.enrich.across_ranks.matching.calls import OfRank, RankFacts
from holotrace.enrich.across_ranks.ranges import JobRanges
from holotrace.enrich.attribution import Attribution
from holotrace.enrich.host.module_times import ModuleTimes
from holotrace.enrich.host.node_times import Bools
from holotrace.enrich.host.operator_stacks import OperatorStacks, recorded_stacks
from holotrace.enrich.job.processes import host_and_process_by_name
from holotrace.enrich.memory.memory_blocks import TimeWindow
from holotrace.enrich.memory.memory_events import Rows
from holotrace.enrich.steps.step_roles import times_within
from holotrace.enrich.tensorboard_plugin.communication import (
    matched_plugin_ranges,
    plugin_communication_ranges,
)
from holotrace.enrich.tensorboard_plugin.events import DEVICE_TYPES, plugin_events
from holotrace.enrich.tensorboard_plugin.kernels import plugin_kernel_calls
from holotrace.enrich.tensorboard_plugin.memory import (
    SHOWN_DEVICES,
    plugin_blocks_in_window,
    plugin_nodes_of_memory_events,
    visited_nodes,
)
from holotrace.enrich.tensorboard_plugin.modules import plugin_modules
from holotrace.enrich.tensorboard_plugin.node_times import plugin_node_times
from holotrace.enrich.tensorboard_plugin.roles import plugin_roles
from holotrace.enrich.tensorboard_plugin.steps import bucket_edges, plugin_steps
from holotrace.enrich.tensorboard_plugin.tensor_cores import plugin_is_eligible
from holotrace.enrich.tensorboard_plugin.trees import plugin_device_owner, plugin_host_nodes
from holotrace.errors import InvalidOptionError
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_NO_VIEW = (
    "the plugin shows no distributed view here: its communication nodes do not match across all ranks, so data "
    "transfer and waiting cannot be told apart"
)

_NO_FACTS = RankFacts(host="", world_size=None, groups=())
"""The facts about a rank, left empty because the plugin matches communication nodes by their order alone."""


@dataclass(frozen=True)
class PluginAttribution(Attribution):
    """The attribution of PyTorch's TensorBoard plugin (torch_tb_profiler)."""

    # The host

    def host_nodes(self, rank_trace: RankTrace) -> pl.DataFrame:
        """Drop most annotations, drop all ranges that outlast their parents, and add a root for each thread.

        Threads with the same number share one tree, even if they belong to different processes.
        """
        return plugin_host_nodes(rank_trace)

    def node_times(self, rank_trace: RankTrace) -> pl.DataFrame:
        """Sum the times over the trees as they are before backward operators are moved to their modules."""
        return plugin_node_times(rank_trace)

    def device_owner(self, rank_trace: RankTrace) -> pl.DataFrame:
        """Assign device work to nodes only by the external id of the launch.

        Kernels without a known launch belong to the roots of all threads with steps; copies without a known launch
        belong to no node. The columns `operator` and `node` contain the same node, even if it is not an operator.
        """
        return plugin_device_owner(rank_trace)

    def operator_stacks(self, rank_trace: RankTrace) -> OperatorStacks:
        """Return only the stacks recorded in the file, because the plugin computed none from Python functions."""
        return recorded_stacks(rank_trace)

    def counted_operators(self, nodes: pl.DataFrame) -> pl.DataFrame:
        """Return the operators in post-order."""
        size = subtree_sums(nodes["parent"].to_numpy(), np.ones(nodes.height, np.int64))
        finished = pl.Series(size) + pl.int_range(pl.len()) - pl.col("depth")
        return nodes.sort(finished).filter("is_counted")

    def is_eligible(self) -> pl.Expr:
        """Return whether tensor cores could do the work of an operator, judged by its first call."""
        return pl.col("is_tensor_core_eligible").first()

    def is_tensor_core_eligible(self, names: pl.Series) -> pl.Series:
        """Return whether each operator is in the plugin's list of operators that can use tensor cores."""
        return plugin_is_eligible(names)

    def input_shapes(self, texts: pl.Series) -> pl.Series:
        """Show an empty list if no shapes were recorded."""
        return texts.fill_null("[]")

    def module_times(self, rank_trace: RankTrace) -> ModuleTimes:
        """List each module below the module that calls it, with totals over all calls; leave out Lightning's hooks."""
        listed = plugin_modules(rank_trace)
        return ModuleTimes(listed, listed.clear())

    # Kernels

    def kernel_calls(self, rank_trace: RankTrace) -> pl.DataFrame:
        """Return the kernels with the plugin's times, the plugin's tensor-core flags and the recorded launch shapes."""
        return plugin_kernel_calls(rank_trace)

    def kernels_by_name(self, rank_trace: RankTrace, kernels: pl.DataFrame) -> pl.DataFrame:
        """Use the exact durations in the file, because the plugin used its float times only for sums by operator."""
        recorded = rank_trace.events_of([EventKind.KERNEL], ["event_index", "duration_ns"])
        return kernels.drop("duration_ns").join(recorded, on="event_index", how="left", maintain_order="left")

    def listed_launches(self, kernels: pl.DataFrame) -> pl.DataFrame:
        """Return only the kernels that have a value in `operator`."""
        return kernels.drop_nulls("operator")

    def mean_by_duration(self, column: str) -> pl.Expr:
        """Return the mean weighted by duration, treating unknown values as 0; the mean is 0 if all weights are 0."""
        value, weight = pl.col(column), pl.col("duration_ns")
        return pl.when(weight.sum() > 0).then((value.fill_null(0) * weight).sum() / weight.sum()).otherwise(0.0)

    def kernels_on_tensor_cores(self, rank_trace: RankTrace, kernels: pl.DataFrame) -> pl.DataFrame:
        """Return the kernels that operators launched; the plugin ignored all others when it computed its tensor-core share."""
        counted = self.host_nodes(rank_trace).filter("is_counted")["node"].cast(pl.Int64)
        owners = self.device_owner(rank_trace).filter(pl.col("operator").is_in(counted.implode()))
        return owners.select("event_index").join(kernels, on="event_index")

    def kernels_of_unknown_size(self, kernels: pl.DataFrame) -> pl.DataFrame:
        """Return no kernels: if a kernel's number of blocks per SM is unknown, the plugin uses 0."""
        return kernels.clear()

    # Steps

    def check_annotation(self, annotation: str | None) -> None:
        """Reject any annotation, because the plugin's steps cannot be chosen by annotation."""
        if annotation is not None:
            message = (
                f"annotation={annotation!r} cannot be combined with compat='torch_tb_profiler': the plugin has its own "
                "steps. Leave one of the two out."
            )
            raise InvalidOptionError(message)

    def step_windows(self, rank_trace: RankTrace, _: str | None = None) -> pl.DataFrame:
        """Return the plugin's steps."""
        return plugin_steps(rank_trace)

    def roles(self, rank_trace: RankTrace) -> dict[str, Intervals]:
        """Return the plugin's roles."""
        return plugin_roles(rank_trace)

    def role_times(self, intervals: Mapping[str, Intervals], steps: pl.DataFrame) -> dict[str, Int64Array]:
        """Repeat the plugin's mistake of counting some time twice.

        If the earlier roles together fill every step, no time is left for the next role, but the plugin nevertheless
        counts that role's whole time.
        """
        return times_within(intervals, steps, restarts=True)

    def series_edges(self, rank_trace: RankTrace, _whole: Int64Array, _parts: int) -> Int64Array:
        """Return the times at which the buckets of the plugin's time series begin and end."""
        return bucket_edges(rank_trace)

    # Communication

    def communication(self, rank_trace: RankTrace, steps: pl.DataFrame) -> OfRank:
        """Return the time ranges of the plugin's communication nodes."""
        return OfRank(plugin_communication_ranges(rank_trace, steps), _NO_FACTS)

    def job_ranges(self, of_ranks: Mapping[int, OfRank], _: pl.DataFrame) -> JobRanges:
        """Match ranges of different ranks that have the same node number and the same number within the node.

        If any range is missing on any rank, all waiting times are unknown.
        """
        table = matched_plugin_ranges({rank: of_rank.calls for rank, of_rank in of_ranks.items()})
        return JobRanges(table, (_NO_VIEW,) if table["wait_ns"].null_count() else ())

    def host_call_count(self, _: RankTrace) -> int:
        """Return 0, because the plugin did not report which collectives the host called."""
        return 0

    def waiting_of_steps(self, counts: pl.Expr) -> pl.Expr:
        """Return the values unchanged: for steps without collectives, they stay null and do not become 0."""
        return counts

    def steps_in_means(self, per_step: pl.DataFrame) -> pl.DataFrame:
        """Treat the time outside the steps as a step."""
        return per_step

    def steps_in_mean_waiting(self, per_step: pl.DataFrame) -> pl.DataFrame:
        """Keep one row for each rank and step number, and also the row for the time outside the steps."""
        return per_step.unique(["rank", "step"], maintain_order=True)

    def used_devices(self, rank_trace: RankTrace) -> list[int]:
        """Return the devices of the events that the plugin kept."""
        rows = plugin_events(rank_trace).filter(pl.col("type").is_in(DEVICE_TYPES)).select("event_index")
        of_events = rank_trace.table("events", ["event_index", "device"])
        devices = rows.join(of_events, on="event_index", how="left")["device"]
        return devices.drop_nulls().unique().sort().to_list()

    def host_and_process(self, rank_trace: RankTrace) -> tuple[str, int | None]:
        """Return the host and process from the file name, because the plugin ignored the file's content."""
        return host_and_process_by_name(rank_trace)

    def numbered_processes(self, devices: pl.DataFrame) -> pl.DataFrame:
        """Number the processes whose file names contain no process number."""
        unknown = pl.col("process_id").is_null()
        counted = pl.col("rank").filter(unknown).rank("dense").cast(pl.Int64) - 1
        if not devices["process_id"].null_count():
            return devices
        return pl.concat([devices.filter(~unknown), devices.filter(unknown).with_columns(process_id=counted)])

    def communication_findings(self, _findings: tuple[str, ...], of_matching: tuple[str, ...]) -> tuple[str, ...]:
        """Return at most one finding: that the plugin shows no distributed view."""
        return of_matching

    # Memory

    def nodes_of_memory_events(self, rank_trace: RankTrace) -> Rows:
        """Find the node of each memory event by thread number and the plugin's float times, ignoring the process."""
        return plugin_nodes_of_memory_events(rank_trace)

    def operator_and_caller(self, parent: Rows, is_counted: Bools, node: Rows) -> tuple[Rows, Rows]:
        """Return each node that is an operator, and its direct parent, even if the parent is not an operator.

        Both are -1 for nodes that are not operators.
        """
        operator = np.where(is_counted[node], node, NO_PARENT)
        return operator, parent[operator]

    def shown_memory_events(self, events: pl.DataFrame) -> pl.DataFrame:
        """Return the events of CPU and CUDA devices only."""
        return events.filter(pl.col("device_number").is_in(SHOWN_DEVICES))

    def blocks_in_window(self, events: pl.DataFrame, window: TimeWindow) -> pl.DataFrame:
        """Pair the allocations and frees in the window by address alone."""
        return plugin_blocks_in_window(events, window)

    def nodes_in_window(self, nodes: pl.DataFrame, events: pl.DataFrame, window: TimeWindow) -> pl.DataFrame:
        """Return the nodes that the plugin visited in this window; see `visited_nodes`."""
        is_in_window = nodes.with_columns(window.touches().alias("is_in_window"))["is_in_window"]
        return nodes.filter(visited_nodes(nodes, events, is_in_window))

    def names_around(self, around: pl.DataFrame) -> pl.DataFrame:
        """Keep repeated names, because the plugin counts a memory change once for each operator around it."""
        return around

    # Findings

    def graph_findings(self, _: RankTrace) -> tuple[str, ...]:
        """Return nothing, because the plugin did not analyse CUDA graphs."""
        return ()

    def shown_findings(self, _: tuple[str, ...]) -> tuple[str, ...]:
        """Return no findings, because the plugin had none."""
        return ()
