"""The allocations and frees of PyTorch's allocators, and the innermost operator or other range around each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.schema import EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

Rows = npt.NDArray[np.int64]

DEVICE_KEYS = ("device_type", "device")
BEFORE_RECORDING = "(before the recording)"
OUTSIDE_OPERATORS = "(outside operators)"

_DEVICE_TYPES = {
    0: "cpu",
    1: "cuda",
    2: "mkldnn",
    3: "opengl",
    4: "opencl",
    5: "ideep",
    6: "cuda",  # HIP; torch.device("cuda") is an NVIDIA or AMD GPU
    7: "fpga",
    8: "maia",
    9: "xla",
    10: "vulkan",
    11: "metal",
    12: "xpu",
    13: "mps",
    14: "meta",
    15: "hpu",
    16: "ve",
    17: "lazy",
    18: "ipu",
    19: "mtia",
    20: "privateuseone",
}
"""Names of device types as `torch.device` prints them. The keys are the numbers in
https://github.com/pytorch/pytorch/blob/v2.9.0/torch/headeronly/core/DeviceType.h."""


@derived
def memory_events(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the memory events with the total memory after each event.

    Trace files since 2022 contain this total. In older files, it is computed: the sum of all changes so far, plus the
    smallest initial amount that keeps all totals from being negative.

    Returns:
        Sorted by device_type, device, time_ns:

        event_index      uint32
        track_id         uint32  the thread that allocated or freed
        device_type      str     PyTorch's name, such as cpu, xpu or cuda (also for HIP); the recorded number if the
                                 name is unknown; `?` if not recorded
        device           int32   -1 for the CPU
        device_number    int64   c10::DeviceType as in the file, where HIP is 6; null if not recorded
        time_ns          int64
        change_bytes     int64   negative if memory was freed
        address          uint64  null if not recorded
        total_allocated  int64   as in the file; null if not recorded
        allocated_bytes  int64   total allocated memory after the event
        reserved_bytes   int64   total reserved memory after the event; null if not recorded
    """
    when = event_ranges(rank_trace, (EventKind.MEMORY,), ["event_index", "start_ns", "track_id"])
    joined = when.hstack(of_events(rank_trace.table("memory"), when["event_index"])).drop_nulls("bytes")
    device_type = pl.col("device_type")
    named = joined.select(
        "event_index",
        "track_id",
        device_type.replace_strict(_DEVICE_TYPES, default=device_type.cast(pl.String)).fill_null("?"),
        pl.col("device_id").cast(pl.Int32, strict=False).fill_null(-1).alias("device"),
        device_type.alias("device_number"),
        pl.col("start_ns").alias("time_ns"),
        pl.col("bytes").alias("change_bytes"),
        "address",
        "total_allocated",
        pl.col("total_reserved").alias("reserved_bytes"),
    )
    by_device = named.partition_by(DEVICE_KEYS, as_dict=True, maintain_order=True)
    ordered = [by_device[device].sort("time_ns", maintain_order=True) for device in sorted(by_device)]
    total = _total().alias("allocated_bytes")
    return pl.concat([events.with_columns(total) for events in ordered or [named]], rechunk=True)


def nodes_of_memory_events(rank_trace: RankTrace) -> Rows:
    """Return the row in `host_nodes` of the innermost node around each memory event; -1 if there is none.

    The node is on the event's thread, and start_ns <= time of the event < end_ns.
    """
    return _nodes(rank_trace)


def _total() -> pl.Expr:
    """Return the total after each event of one device: as recorded or, if not recorded, computed from the changes."""
    total = pl.col("change_bytes").cum_sum()
    known_before = pl.min_horizontal(total.min(), 0)
    return pl.when(pl.col("total_allocated").is_null().any()).then(total - known_before).otherwise("total_allocated")


@derived
def _nodes(rank_trace: RankTrace) -> Rows:
    events = memory_events(rank_trace)
    return innermost_nodes(host_nodes(rank_trace), events["track_id"].to_numpy(), events["time_ns"].to_numpy())


def innermost_nodes(nodes: pl.DataFrame, tree: npt.NDArray[np.integer], time_ns: Rows) -> Rows:
    """Return the innermost node of a tree at each time; -1 if there is none.

    The innermost node is the node that began last or, if that node has ended, its nearest ancestor that has not ended.
    """
    if nodes.is_empty():
        return np.full(len(time_ns), NO_PARENT, np.int64)
    trees, start_ns = nodes["tree"].to_numpy(), nodes["start_ns"].to_numpy()
    first_ns, last_ns = int(start_ns.min()), int(start_ns.max())
    length_ns = last_ns - first_ns + 1
    begins = trees.astype(np.int64) * length_ns + (start_ns - first_ns)
    order = np.argsort(begins, kind="stable")
    since_ns = np.clip(time_ns, first_ns - 1, last_ns) - first_ns
    rank = np.searchsorted(begins[order], tree.astype(np.int64) * length_ns + since_ns, side="right") - 1
    innermost = np.where((rank >= 0) & (since_ns >= 0), order[rank], NO_PARENT)
    innermost[trees[innermost] != tree] = NO_PARENT
    parent, end_ns = nodes["parent"].to_numpy(), nodes["end_ns"].to_numpy()
    climbing = np.flatnonzero(innermost != NO_PARENT)
    while len(climbing := climbing[end_ns[innermost[climbing]] <= time_ns[climbing]]):
        innermost[climbing] = parent[innermost[climbing]]
        climbing = climbing[innermost[climbing] != NO_PARENT]
    return innermost
