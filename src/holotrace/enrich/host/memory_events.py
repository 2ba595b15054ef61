"""The allocations and frees of PyTorch's allocators, and the host node in which each happened."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nesting import NO_PARENT
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.attribution import host_nodes
from holotrace.enrich.host.host_names import Compat
from holotrace.enrich.tensorboard_plugin.events import rounded_ns
from holotrace.enrich.tensorboard_plugin.trees import plugin_trees
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

DEVICE_KEYS = ("device_type", "device_id")
BEFORE_RECORDING = "(before the recording)"
OUTSIDE_OPERATORS = "(outside operators)"

_DEVICE_TYPES = {
    0: "cpu",
    1: "cuda",
    2: "mkldnn",
    3: "opengl",
    4: "opencl",
    5: "ideep",
    6: "cuda",  # HIP: torch.device("cuda") is a GPU of either
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
"""https://github.com/pytorch/pytorch/blob/v2.9.0/torch/headeronly/core/DeviceType.h, as `torch.device` prints them."""


def memory_events(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the memory events with the total after each; use with `rank_trace.derive`.

    The total is the file's. Files of before 2022 have none: there it is the sum of all changes, on top of the least
    that must have been there for it never to be negative.

    Returns:
        Sorted by device_type, device_id, time_ns:

        event_index      uint32
        track_id         uint32  the thread that allocated or freed
        device_type      str     as PyTorch calls it: cpu, cuda (also for HIP), xpu …; the number of one that has no name
                                 here, `?` where the file does not say
        device_id        int64   -1 for the CPU
        device_number    int64   c10::DeviceType as written, 6 for HIP; null where the file does not say
        time_ns          int64
        change_bytes     int64   negative where memory was freed
        address          uint64  null where the file does not say
        total_allocated  int64   as the file says; null where it does not
        allocated_bytes  int64   after the event
        reserved_bytes   int64   after the event; null where the file does not say
    """
    when = event_ranges(rank_trace, (EventKind.MEMORY,), ["event_index", "start_ns", "track_id"])
    joined = when.join(rank_trace.table("memory"), on="event_index", maintain_order="left").drop_nulls("bytes")
    device_type = pl.col("device_type")
    named = joined.select(
        "event_index",
        "track_id",
        device_type.replace_strict(_DEVICE_TYPES, default=device_type.cast(pl.String)).fill_null("?"),
        pl.col("device_id").fill_null(-1),
        device_type.alias("device_number"),
        pl.col("start_ns").alias("time_ns"),
        pl.col("bytes").alias("change_bytes"),
        "address",
        "total_allocated",
        pl.col("total_reserved").alias("reserved_bytes"),
    )
    ordered = named.sort(*DEVICE_KEYS, "time_ns", maintain_order=True)
    return ordered.with_columns(_total().over(DEVICE_KEYS).alias("allocated_bytes"))


def nodes_of_memory_events(rank_trace: RankTrace, compat: Compat | None = None) -> _Rows:
    """Return the row of `host_nodes` of the innermost node around each of `memory_events`, -1 where there is none.

    It is on the thread of the event, and has begun and not ended: half-open intervals. The plugin knows threads by
    their number alone, and times as floats.
    """
    return rank_trace.derive(_own_nodes if compat is None else _plugin_nodes)


def memory_blocks(events: pl.DataFrame, compat: Compat | None = None) -> pl.DataFrame:
    """Return which of `memory_events`, or of some of them, allocated and freed each block of memory.

    A free releases what was last allocated at its address on its device. The plugin goes by the address alone, forgets
    an allocation when the next one at its address comes, and knows only the last of several frees without allocation.

    Returns:
        Rows of `events`:

        allocated  uint32  null where it was there before
        released   uint32  null where it is not freed
    """
    keys = ["address"] if compat else [*DEVICE_KEYS, "address"]
    is_allocation, row = pl.col("change_bytes") > 0, pl.col("row")
    known = events.with_row_index("row").filter(pl.col("address").is_not_null() & (pl.col("change_bytes") != 0))
    neighbours = known.sort("time_ns", "event_index").select(
        *keys,
        "row",
        is_allocation.alias("is_allocation"),
        pl.when(is_allocation.shift(1)).then(row.shift(1)).over(keys).alias("allocated"),
        is_allocation.shift(-1).over(keys).alias("is_followed_by_allocation"),
    )
    frees = neighbours.filter(~pl.col("is_allocation")).with_columns(row.alias("released"))
    is_open = pl.col("is_followed_by_allocation").is_null()
    if compat is None:
        is_open |= pl.col("is_followed_by_allocation")
    else:
        orphans = frees.filter(pl.col("allocated").is_null()).unique("address", keep="last", maintain_order=True)
        frees = pl.concat([frees.drop_nulls("allocated"), orphans])
    kept = neighbours.filter(pl.col("is_allocation") & is_open).select(row.alias("allocated"), released=None)
    return pl.concat([frees.select("allocated", "released"), kept.cast(pl.UInt32)])


def _total() -> pl.Expr:
    """Return the total after each event of a device: the file's or, without that, the sum of the changes."""
    total = pl.col("change_bytes").cum_sum()
    known_before = pl.min_horizontal(total.min(), 0)
    return pl.when(pl.col("total_allocated").is_null().any()).then(total - known_before).otherwise("total_allocated")


def _own_nodes(rank_trace: RankTrace) -> _Rows:
    events = rank_trace.derive(memory_events)
    return _innermost(host_nodes(rank_trace), events["track_id"].to_numpy(), events["time_ns"].to_numpy())


def _plugin_nodes(rank_trace: RankTrace) -> _Rows:
    events, nodes = rank_trace.derive(memory_events), host_nodes(rank_trace, "torch_tb_profiler")
    return _innermost(nodes, _plugin_tree(rank_trace, events), rounded_ns(rank_trace, events["time_ns"].to_numpy()))


def _innermost(nodes: pl.DataFrame, tree: npt.NDArray[np.integer], time_ns: _Rows) -> _Rows:
    """Find the innermost node of its tree around each moment.

    Whatever ends after the last node that has begun, and began before it, contains it: the answer is that node or
    above it.
    """
    if nodes.is_empty():
        return np.full(len(time_ns), NO_PARENT, np.int64)
    trees, start_ns = nodes["tree"].to_numpy(), nodes["start_ns"].to_numpy()
    first_ns, last_ns = int(start_ns.min()), int(start_ns.max())
    length_ns = last_ns - first_ns + 1
    begins = trees.astype(np.int64) * length_ns + (start_ns - first_ns)
    order = np.argsort(begins, kind="stable")
    since_ns = np.clip(time_ns, first_ns - 1, last_ns) - first_ns
    place = np.searchsorted(begins[order], tree.astype(np.int64) * length_ns + since_ns, side="right") - 1
    found = np.where((place >= 0) & (since_ns >= 0), order[place], NO_PARENT)
    found[trees[found] != tree] = NO_PARENT
    parent, end_ns = nodes["parent"].to_numpy(), nodes["end_ns"].to_numpy()
    climbing = np.flatnonzero(found != NO_PARENT)
    while len(climbing := climbing[end_ns[found[climbing]] <= time_ns[climbing]]):
        found[climbing] = parent[found[climbing]]
        climbing = climbing[found[climbing] != NO_PARENT]
    return found


def _plugin_tree(rank_trace: RankTrace, events: pl.DataFrame) -> npt.NDArray[np.int32]:
    """Return the tree of the thread with the number of each event's thread, -1 where there is none."""
    threads = rank_trace.derive(plugin_trees).select("thread", "tree").unique("thread", keep="first")
    numbers = rank_trace.table("tracks", ["thread_id"])["thread_id"].gather(events["track_id"]).alias("thread")
    trees = numbers.to_frame().join(threads, on="thread", how="left", maintain_order="left")["tree"]
    return trees.fill_null(NO_PARENT).to_numpy()
