"""Matches the calls of a job across ranks, aligns the clocks, and divides each call into waiting and transfer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from holotrace.content_equality import are_equal
from holotrace.enrich.across_ranks.arrivals import arrivals
from holotrace.enrich.across_ranks.clocks.clocks import Clocks, clocks
from holotrace.enrich.across_ranks.matching.calls import OfRank
from holotrace.enrich.across_ranks.matching.matching import Matching, match
from holotrace.enrich.collectives.collectives import IS_POINT_TO_POINT

_MOST_REMEMBERED = 300_000
"""The result for the latest job is cached if the job has at most this many calls, which take about 100 MB."""


class TimedCalls(NamedTuple):
    """The calls of all ranks.

    calls     `Matching.calls`, with the columns that `Clocks.aligned` and `arrivals` add, and:

              group_size  int64  2 for a send or receive; null if the group is unknown

    matching  how the calls were matched
    clocks    the clocks of the hosts
    """

    calls: pl.DataFrame
    matching: Matching
    clocks: Clocks


def timed_calls(of_ranks: Mapping[int, OfRank], *, sends: bool = True) -> TimedCalls:
    """Match the calls of all ranks, align the clocks of their hosts, and divide each call into waiting and transfer.

    The result for the latest job is cached, because most analyses across ranks begin with it.

    Args:
        of_ranks: {rank: the result of `holotrace.enrich.across_ranks.matching.calls.of_rank`}.
        sends: whether to match sends with receives too.
    """
    asked = list(of_ranks.items())
    known, result = _latest.get(sends, (None, None))
    if result is None or not are_equal(known, asked):
        result = _timed_calls(of_ranks, sends=sends)
        if sum(known.calls.height for known in of_ranks.values()) <= _MOST_REMEMBERED:
            _latest[sends] = (asked, result)
    return result


_latest: dict[bool, tuple[list[tuple[int, OfRank]], TimedCalls]] = {}
"""{whether sends are matched: (the latest job, its result)}"""


def _timed_calls(of_ranks: Mapping[int, OfRank], *, sends: bool) -> TimedCalls:
    matching = match(of_ranks, sends=sends)
    compared = clocks(matching.calls, {rank: known.facts.host for rank, known in of_ranks.items()})
    return TimedCalls(arrivals(compared.aligned(_with_sizes(matching))), matching, compared)


def _with_sizes(matching: Matching) -> pl.DataFrame:
    sizes = matching.groups.select("group", pl.col("size").cast(pl.Int64))
    size = pl.when(IS_POINT_TO_POINT).then(2).otherwise("size").cast(pl.Int64).alias("group_size")
    return matching.calls.join(sizes, on="group", how="left", maintain_order="left").with_columns(size).drop("size")
