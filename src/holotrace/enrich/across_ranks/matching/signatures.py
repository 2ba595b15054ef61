"""Matches calls of a group by their signature (family, element type and size) and order.

A call may be missing on one rank, or recorded on one rank only; the calls after it must still be matched correctly.
If ranks have different numbers of calls with the same signature, the missing call is inferred from the surrounding
calls or from the times of the calls.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from holotrace.enrich.across_ranks.matching.rough_clocks import SYNCHRONISING, corrected, operations, rough_offsets
from holotrace.enrich.across_ranks.matching.rows import MATCHES, instances, matched, of_most, without
from holotrace.enrich.across_ranks.matching.times import by_time
from holotrace.enrich.collectives.collectives import IS_POINT_TO_POINT

ALIKE = ("group", "window", "family", "content")
"""Calls with equal values in these columns may belong to the same operation."""

IS_BARE = pl.col("dtype").is_null() & pl.col("stream").is_not_null()
"""Kernels for which no arguments of the call were recorded, such as custom all-reduces."""

_FEWEST_AFTER_JUMP = 3


def by_signature(rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Match, within each group, the collectives that could not be matched by number.

    1. The k-th calls of a step with the same signature match if all ranks with such calls have the same number of them.
    2. Rule 1 is then applied separately to the calls between two successive operations in which all ranks take part.
    3. If ranks have different numbers of such calls between these operations, only the calls of the ranks with the
       most common number are matched.
    4. If a rank leaves an operation before another rank enters it, the match is impossible. It is dropped, together
       with all matches in the same step that have the same signature. Unmatched calls then join the operation that ends
       nearest to them.

    Kernels whose arguments were not recorded can be matched only by rule 1.

    Args:
        rows: the calls of all ranks, from `rows_of`, with inferred groups.
        known: the `MATCHES` made so far.

    Returns:
        `MATCHES`.
    """
    slim = rows.select(*ALIKE, "row", "rank", "host", "start_ns", "end_ns", IS_BARE.alias("is_bare"))
    several = pl.col("group").is_not_null() & (pl.col("rank").n_unique().over("group") > 1)
    unmatched = without(slim, known).filter(~IS_POINT_TO_POINT).filter(several)
    if unmatched.is_empty():
        return pl.DataFrame(schema=MATCHES)
    described = unmatched.filter(~pl.col("is_bare"))
    even = _even(unmatched, ALIKE)
    between = _between(described, even)
    gaps = without(_with_gaps(described, between), between)
    most = instances(of_most(gaps, [*ALIKE, "gap"]), [*ALIKE, "gap"])
    pairs = pl.concat([between, most])
    offsets = rough_offsets(_with_instances(slim, pl.concat([pairs, known.select("row", "instance")])))
    possible = _without_impossible(_with_instances(unmatched, pairs), offsets)
    kept = unmatched.join(possible, on="row", maintain_order="left")
    timed = by_time(without(described, possible), kept, offsets, ALIKE)
    is_bare = unmatched.filter("is_bare").select("row")
    return pl.concat(
        [
            matched(possible.join(is_bare, on="row", how="anti"), "signature"),
            matched(possible.join(is_bare, on="row", how="semi"), "stream_order"),
            matched(timed, "time"),
        ]
    )


def _even(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Match calls by order for each combination of `keys`, if the ranks make equally many such calls.

    Ranks that make no such call are ignored.

    Returns:
        row and instance.
    """
    counted = rows.with_columns(pl.len().over(*keys, "rank").alias("count"))
    is_even = pl.col("count").min().over(*keys) == pl.col("count").max().over(*keys)
    return instances(counted.filter(is_even), keys)


def _between(rows: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return `pairs`, and the pairs that `_even` finds between two successive operations of all ranks."""
    known = pairs
    for _ in range(2):  # the matches from the first pass split the gaps into shorter gaps for the second pass
        rest = without(_with_gaps(rows, known), known)
        if rest.is_empty():
            return known
        known = pl.concat([known, _even(rest, [*ALIKE, "gap"])])
    return known


def _with_gaps(rows: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Add `gap`: the number of the group's last operation up to this call in which all of its ranks take part."""
    numbered = _with_instances(rows, pairs)
    ranks = pl.col("rank").n_unique().over("group", "window")
    is_shared_by_all = pl.col("instance").is_not_null() & (pl.len().over("group", "instance") == ranks)
    shared = numbered.with_columns(pl.when(is_shared_by_all).then("instance").alias("gap"))
    return shared.with_columns(pl.col("gap").cum_max().forward_fill().over("group", "rank")).drop("instance")


def _with_instances(rows: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    return rows.join(pairs, on="row", how="left", maintain_order="left")


def _without_impossible(rows: pl.DataFrame, offsets: pl.DataFrame) -> pl.DataFrame:
    """Drop each operation that has the step and signature of an impossible operation; return row and instance.

    `_has_jump` defines an impossible operation. In a group whose ranks run on several hosts, impossible operations are
    kept if a clock seems to jump, because the jump explains them.
    """
    found = rows.drop_nulls("instance")
    spans = operations(corrected(found.filter(pl.col("family").is_in(SYNCHRONISING)), offsets))
    of_groups = found.group_by("group").agg((pl.col("host").n_unique() > 1).alias("has_hosts"))
    with_hosts = spans.join(of_groups, on="group", how="left", maintain_order="left")
    impossible = with_hosts.filter(~pl.col("is_possible") & ~(pl.col("has_hosts") & _has_jump().over("group")))
    tainted = found.join(impossible, on="instance", how="semi").select(ALIKE).unique()
    return found.join(tainted, on=ALIKE, how="anti", nulls_equal=True).select("row", "instance")


def _has_jump() -> pl.Expr:
    """Return whether the clock of a rank in the group seems to jump during the recording.

    A jump makes all operations before it possible and all operations after it impossible, or the reverse. At least
    `_FEWEST_AFTER_JUMP` operations must be on each side of the jump; if there are fewer, wrong matches are likelier
    than a jump. An operation is impossible if, by its times, a rank leaves it before another rank enters it.
    """
    ends = pl.col("middle_end_ns")
    possible, impossible = ends.filter("is_possible"), ends.filter(~pl.col("is_possible"))
    is_apart = (possible.max() < impossible.min()) | (impossible.max() < possible.min())
    return is_apart.fill_null(value=False) & (pl.min_horizontal(possible.len(), impossible.len()) >= _FEWEST_AFTER_JUMP)
