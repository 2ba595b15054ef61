"""Tables of calls, in the form in which ranks send them for matching."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.across_ranks.matching.calls import COLUMNS, OfRank, RankFacts
from holotrace.enrich.across_ranks.matching.groups import ProcessGroup

DEFAULTS = {"family": "all_reduce", "content": 1, "window": 0, "in_bytes": 8, "dtype": "float32"}


def of_rank(*calls, groups: tuple[ProcessGroup, ...] = (), world_size: int | None = None, host: str = "a") -> OfRank:
    """Return the data that a rank sends; each call is a dict of column values, plus `times`: (start, end) in µs."""
    rows = [_row(number, call) for number, call in enumerate(calls)]
    return OfRank(pl.DataFrame(rows, COLUMNS), RankFacts(host, world_size, groups))


def _row(number, call) -> dict[str, object]:
    start_us, end_us = call.get("times", (10 * number, 10 * number + 5))
    placed = {"event_index": number, "start_ns": int(start_us * 1_000), "end_ns": int(end_us * 1_000)}
    named = {name: value for name, value in call.items() if name != "times"}
    return {**dict.fromkeys(COLUMNS), **DEFAULTS, **placed, "asked_ns": placed["start_ns"], **named}
