"""Pair allocations and frees, and assign memory events to nodes, as the plugin does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, levels
from holotrace.enrich.memory.memory_blocks import TimeWindow, changes_by_address, described_blocks, frees_and_kept
from holotrace.enrich.memory.memory_events import Rows, innermost_nodes, memory_events
from holotrace.enrich.tensorboard_plugin.events import rounded_ns
from holotrace.enrich.tensorboard_plugin.trees import plugin_host_nodes, plugin_trees
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

SHOWN_DEVICES = (0, 1)
"""PyTorch's numbers for the device types CPU and CUDA; the plugin showed memory only for these, not for HIP."""


@derived
def plugin_nodes_of_memory_events(rank_trace: RankTrace) -> Rows:
    """Return the node that the plugin assigns to each memory event; -1 if there is none.

    Unlike `nodes_of_memory_events`, the plugin identifies threads only by their numbers, and uses float times.
    """
    events, nodes = memory_events(rank_trace), plugin_host_nodes(rank_trace)
    return innermost_nodes(nodes, _trees(rank_trace, events), rounded_ns(rank_trace, events["time_ns"].to_numpy()))


def plugin_blocks_in_window(events: pl.DataFrame, window: TimeWindow) -> pl.DataFrame:
    """Return the memory blocks in the window; only events in the window are paired as allocation and free.

    If a block was allocated before the window, its operator and caller still come from the allocation. The size of a
    block comes from the event that frees it.
    """
    of_all = described_blocks(events, plugin_blocks(events))
    seen = events.filter(window.holds("time_ns"))
    shown = described_blocks(seen, plugin_blocks(seen))
    owners = of_all.filter(pl.col("release_index").is_not_null()).select("release_index", "operator", "caller")
    known = shown.join(owners, on="release_index", how="left", maintain_order="left", suffix="_of_all")
    return known.with_columns(
        *(
            pl.when(pl.col("allocated_ns").is_null()).then(f"{node}_of_all").otherwise(node).alias(node)
            for node in ("operator", "caller")
        ),
        pl.coalesce("freed_bytes", "block_bytes").alias("block_bytes"),
    )


def plugin_blocks(events: pl.DataFrame) -> pl.DataFrame:
    """Return the plugin's `memory_blocks`.

    The plugin pairs allocations and frees by address alone, ignoring the device. If an address is allocated twice
    without a free in between, the plugin forgets the first allocation. If a free does not directly follow an allocation
    of the same address, it is an orphan. The plugin keeps only the last orphan of each address.
    """
    changes = changes_by_address(events, ["address"])
    frees = changes.filter(~pl.col("is_allocation"))
    orphans = frees.filter(pl.col("allocated").is_null()).unique("address", keep="last", maintain_order=True)
    kept = changes.filter("is_allocation", pl.col("is_followed_by_allocation").is_null())
    return frees_and_kept(pl.concat([frees.drop_nulls("allocated"), orphans]), kept)


def visited_nodes(nodes: pl.DataFrame, events: pl.DataFrame, is_in_window: pl.Series) -> npt.NDArray[np.bool_]:
    """Return, for each node, whether the plugin visited it.

    The plugin visited all roots. In the window, it also visited the children of the roots, and the children of each
    other visited node if that node or one of its descendants has memory events.

    Args:
        nodes: the host trees.
        events: memory events with the row of their `node`.
        is_in_window: whether each node touches the window.
    """
    parent, is_visited = nodes["parent"].to_numpy(), is_in_window.to_numpy().copy()
    is_root = parent == NO_PARENT
    is_entered, rows_with_events = is_root.copy(), events["node"].unique().to_numpy()
    while len(rows_with_events := rows_with_events[rows_with_events != NO_PARENT]):
        is_entered[rows_with_events] = True
        rows_with_events = np.unique(parent[rows_with_events])
    is_visited |= is_root
    for rows in levels(parent):
        is_visited[rows] &= is_visited[parent[rows]] & is_entered[parent[rows]]
    return is_visited


def _trees(rank_trace: RankTrace, events: pl.DataFrame) -> npt.NDArray[np.int32]:
    """Return, for each event, the first tree of a thread that has the event's thread id; -1 if no tree fits."""
    threads = plugin_trees(rank_trace).select("thread", "tree").unique("thread", keep="first")
    numbers = rank_trace.table("tracks", ["thread_id"])["thread_id"].gather(events["track_id"]).alias("thread")
    trees = numbers.to_frame().join(threads, on="thread", how="left", maintain_order="left")["tree"]
    return trees.fill_null(NO_PARENT).to_numpy()
