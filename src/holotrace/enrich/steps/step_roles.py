"""What a rank does at each moment of its steps: the roles of the step time breakdown, and the steps they are measured in."""

from __future__ import annotations

import polars as pl

from holotrace.algorithms.intervals import Intervals, concatenated, union
from holotrace.enrich.collectives.collectives import COLLECTIVE_CALL, HOST_COLLECTIVE
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.host_names import Compat, NodeClass, classes_by_name, is_counted_name
from holotrace.enrich.kernels.kernel_kind import active_rules
from holotrace.enrich.steps.steps import device_extended_windows
from holotrace.enrich.tensorboard_plugin.communication import communication_events, communication_kernels
from holotrace.enrich.tensorboard_plugin.events import PluginType, plugin_events
from holotrace.enrich.tensorboard_plugin.steps import plugin_steps
from holotrace.schema import LAUNCH_KINDS, EventKind, KernelKind
from holotrace.store.trace import RankTrace

ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu")
"""In the order in which they take a moment that several fill."""

_HOST_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)
_HOST_TYPES = (PluginType.OPERATOR, PluginType.USER_ANNOTATION, PluginType.PYTHON)


def step_windows(rank_trace: RankTrace, compat: Compat | None = None, annotation: str | None = None) -> pl.DataFrame:
    """Return the steps as `step_time` measures them, extended to the device work that they launched.

    Returns:
        Sorted by start_ns: window, start_ns, end_ns, as `holotrace.enrich.steps.steps.windows` has them.
    """
    if annotation is not None and not compat:
        return device_extended_windows(rank_trace, annotation)
    return rank_trace.derive(plugin_steps if compat else device_extended_windows)


def roles(rank_trace: RankTrace, compat: Compat | None = None) -> dict[str, Intervals]:
    """Return when the rank was in each of the `ROLES`, on any thread, stream or device: disjoint intervals in order.

    kernel          kernels that compute
    memcpy, memset  on the devices
    communication   kernels that communicate, and collectives that the host carries out itself (gloo)
    runtime         calls of the runtime and the driver
    dataloader      the main process waits for its data loader
    cpu             operators

    With `compat` as the plugin had them, see docs/explanation/differences_from_torch_tb_profiler.md.
    """
    remembered, key = rank_trace.derive(_roles_by_rules), (compat, active_rules())
    if key not in remembered:
        found = _plugin_roles(rank_trace) if compat else _roles(rank_trace)
        remembered[key] = {role: union(*found[role]) for role in ROLES}
    return remembered[key]


def _roles_by_rules(_: RankTrace) -> dict[object, dict[str, Intervals]]:
    """Make the place where `roles` is remembered."""
    return {}


def _roles(rank_trace: RankTrace) -> dict[str, Intervals]:
    work = device_work(rank_trace)
    memsets = rank_trace.events_of([EventKind.GPU_MEMSET], ["event_index"])["event_index"]
    kind, is_memset = pl.col("kernel_kind"), pl.col("event_index").is_in(memsets.implode())
    is_memory, is_communication = kind == KernelKind.MEMORY, kind == KernelKind.COMMUNICATION
    host = event_ranges(rank_trace, _HOST_KINDS, ["name", "start_ns", "end_ns", "kind"])
    is_collective = rank_trace.unselected.strings.str.contains(HOST_COLLECTIVE).gather(host["name"])
    said = host.with_columns(_host_class(rank_trace, host["name"])).filter(~is_collective)
    is_loader, says_nothing = pl.col("class") == NodeClass.DATALOADER, pl.col("class") == NodeClass.OPERATOR
    is_work = says_nothing & ~_is_region(rank_trace, said["name"]) & (pl.col("kind") == EventKind.CPU_OP)
    return {
        "kernel": _where(work, ~is_memory & ~is_communication),
        "memcpy": _where(work, is_memory & ~is_memset),
        "memset": _where(work, is_memory & is_memset),
        "communication": concatenated([_where(work, is_communication), _intervals(host.filter(is_collective))]),
        "runtime": _intervals(event_ranges(rank_trace, LAUNCH_KINDS, ["start_ns", "end_ns"])),
        "dataloader": _where(said, is_loader),
        "cpu": _where(said, is_work),
    }


def _is_region(rank_trace: RankTrace, names: pl.Series) -> pl.Series:
    """Say of each operator whether it only marks what runs inside; files of before 2022 call annotations operators."""
    strings = rank_trace.unselected.strings
    return pl.Series(~is_counted_name(names, strings)) | strings.str.contains(COLLECTIVE_CALL).gather(names)


def _plugin_roles(rank_trace: RankTrace) -> dict[str, Intervals]:
    events = rank_trace.derive(plugin_events)
    asked, carried_out = rank_trace.derive(communication_events), rank_trace.derive(communication_kernels)
    is_asked, is_carried_out = _is_one_of(asked), _is_one_of(carried_out)
    host = events.filter(pl.col("type").is_in(_HOST_TYPES))
    said = host.with_columns(_host_class(rank_trace, host["name"]))
    # A range of pure Python never counted as a data loader.
    is_loader = (pl.col("class") == NodeClass.DATALOADER) & (pl.col("type") != PluginType.PYTHON)
    return {
        "kernel": _where(events, _is(PluginType.KERNEL) & ~is_carried_out),
        "memcpy": _where(events, _is(PluginType.MEMCPY)),
        "memset": _where(events, _is(PluginType.MEMSET)),
        "communication": concatenated([_intervals(carried_out), _intervals(asked)]),
        "runtime": _where(events, _is(PluginType.RUNTIME)),
        "dataloader": _where(said, is_loader),
        "cpu": _where(said, ~is_loader & ~is_asked),
    }


def _host_class(rank_trace: RankTrace, names: pl.Series) -> pl.Series:
    """Return the NodeClass that each name says, OPERATOR where it says none."""
    nothing = pl.repeat(int(NodeClass.OPERATOR), len(names), dtype=pl.UInt8, eager=True).to_numpy()
    return pl.Series("class", classes_by_name(names, nothing, rank_trace.unselected.strings))


def _is(plugin_type: PluginType) -> pl.Expr:
    return pl.col("type") == int(plugin_type)


def _is_one_of(events: pl.DataFrame) -> pl.Expr:
    return pl.col("event_index").is_in(events["event_index"].implode())


def _where(events: pl.DataFrame, chosen: pl.Expr) -> Intervals:
    return _intervals(events.filter(chosen))


def _intervals(events: pl.DataFrame) -> Intervals:
    return events["start_ns"].to_numpy(), events["end_ns"].to_numpy()
