"""The blocks of memory that operators allocate, with the events that allocated and released each block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from holotrace.enrich.memory.memory_events import DEVICE_KEYS


class TimeWindow(NamedTuple):
    """A time window in ns since the Unix epoch; it includes both bounds, and None means that there is no bound."""

    start_ns: int | None
    end_ns: int | None

    def holds(self, column: str) -> pl.Expr:
        """Return whether each time is in the window; null stays null."""
        time_ns = pl.col(column)
        begun = time_ns >= self.start_ns if self.start_ns is not None else time_ns.is_not_null()
        return begun & (time_ns <= self.end_ns) if self.end_ns is not None else begun

    def touches(self) -> pl.Expr:
        """Return whether each range overlaps the window."""
        begins = pl.lit(True) if self.end_ns is None else pl.col("start_ns") <= self.end_ns  # noqa: FBT003 -- polars
        return begins if self.start_ns is None else begins & (pl.col("end_ns") >= self.start_ns)


def blocks_in_window(events: pl.DataFrame, window: TimeWindow) -> pl.DataFrame:
    """Return the blocks that are allocated or released in the window, with the columns of `described_blocks`."""
    blocks = described_blocks(events, memory_blocks(events))
    return blocks.filter(window.holds("allocated_ns") | window.holds("released_ns"))


def memory_blocks(events: pl.DataFrame) -> pl.DataFrame:
    """Return which events allocated and released each block of memory.

    `events` are all or some rows of `memory_events`. A free releases the block that was last allocated at the same
    address on the same device.

    Returns:
        Rows of `events`:

        allocated  uint32  null if the block was allocated before these events
        released   uint32  null if the block is not freed
    """
    changes = changes_by_address(events, [*DEVICE_KEYS, "address"])
    is_followed = pl.col("is_followed_by_allocation")
    kept = changes.filter("is_allocation", is_followed.fill_null(value=True))
    return frees_and_kept(changes.filter(~pl.col("is_allocation")), kept)


def changes_by_address(events: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return the events that allocate or free memory at a known address, in order of time.

    Returns:
        The columns `keys`, and

        row                        uint32  row of the event in `events`
        is_allocation              bool
        allocated                  uint32  row of the previous event with the same keys; null if that event frees memory
        is_followed_by_allocation  bool    whether the next event with the same keys allocates; null if none follows
    """
    is_allocation, row = pl.col("change_bytes") > 0, pl.col("row")
    known = events.with_row_index("row").filter(pl.col("address").is_not_null() & (pl.col("change_bytes") != 0))
    return known.sort("time_ns", "event_index").select(
        *keys,
        "row",
        is_allocation.alias("is_allocation"),
        pl.when(is_allocation.shift(1)).then(row.shift(1)).over(keys).alias("allocated"),
        is_allocation.shift(-1).over(keys).alias("is_followed_by_allocation"),
    )


def frees_and_kept(frees: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
    """Return one row per block: first the blocks in `frees`, then the blocks in `kept`, which were never freed."""
    ended = frees.select("allocated", pl.col("row").alias("released"))
    return pl.concat([ended, kept.select(pl.col("row").alias("allocated"), released=None).cast(pl.UInt32)])


def described_blocks(events: pl.DataFrame, blocks: pl.DataFrame) -> pl.DataFrame:
    """Describe each block by the event that allocated it or, if that event is unknown, by the event that freed it.

    Args:
        events: `memory_events` with two more columns, operator and caller: row numbers in `host_nodes`; -1 if
            there is none.
        blocks: the result of `memory_blocks`.

    Returns:
        DEVICE_KEYS, operator, caller, block_bytes, freed_bytes, allocated_ns, released_ns, release_index.
    """
    known = events[blocks.select(pl.coalesce("allocated", "released"))["allocated"]]
    is_allocated, released = blocks["allocated"].is_not_null(), events.select(pl.all().gather(blocks["released"]))
    return known.select(
        *DEVICE_KEYS,
        pl.when(is_allocated).then("operator").alias("operator"),
        pl.when(is_allocated).then("caller").alias("caller"),
        pl.col("change_bytes").abs().alias("block_bytes"),
        released["change_bytes"].abs().alias("freed_bytes"),
        pl.when(is_allocated).then("time_ns").alias("allocated_ns"),
        released["time_ns"].alias("released_ns"),
        released["event_index"].alias("release_index"),
    )
