"""Tests of converting the times of ranks to the clock of the reference host."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from holotrace.enrich.across_ranks.clocks.rank_clocks import ClockLine, RankClock, correction_text, rank_clocks

NOW = 1_795_209_476_000_000_000


def per_host(*rows: dict) -> pl.DataFrame:
    """Return a table of clocks with the columns used here."""
    schema = {
        "host": pl.String,
        "rank": pl.Int32,
        "valid_from_ns": pl.Int64,
        "valid_to_ns": pl.Int64,
        "offset_at_ns": pl.Int64,
        "offset_ns": pl.Int64,
        "half_width_ns": pl.Int64,
        "drift_ppb": pl.Float64,
        "drift_half_width_ppb": pl.Float64,
    }
    return pl.DataFrame([{**dict.fromkeys(schema), **row} for row in rows], schema)


def row(host: str, offset_ns: int | None, **more: int) -> dict:
    """Return the row of a host whose clock does not drift."""
    return {"host": host, "offset_at_ns": NOW, "offset_ns": offset_ns, "half_width_ns": 7, "drift_ppb": 0.0} | more


def test_offset_and_drift_are_added_in_whole_nanoseconds() -> None:
    """With an offset of -5 ns at NOW and a drift of 20 ppm, the correction a second after NOW is exactly 19,995 ns."""
    clock = RankClock("b", (ClockLine(NOW, -5, 20_000.0, 3),))
    assert clock.corrected(NOW) == NOW - 5
    assert clock.corrected(NOW + 1_000_000_001) == NOW + 1_000_000_001 - 5 + 20_000


def test_a_clock_that_jumped_has_a_line_before_and_one_after() -> None:
    """The first row corrects times up to the end of its validity; the second row corrects all later times."""
    table = per_host(
        row("b", 100, valid_from_ns=NOW, valid_to_ns=NOW + 10),
        row("b", 900, valid_from_ns=NOW + 20, valid_to_ns=NOW + 30),
    )
    clock = rank_clocks(table, {0: "b"})[0]
    times = [NOW - 1, NOW + 10, NOW + 11, NOW + 25, NOW + 99]
    assert [clock.corrected(time) - time for time in times] == [100, 100, 900, 900, 900]


def test_a_rank_with_a_clock_of_its_own_does_not_use_that_of_its_host() -> None:
    """A row with a rank applies to that rank only; if a host has no offset, its times are unchanged."""
    clocks = rank_clocks(
        per_host(row("a", 0), row("b", 10), row("b", 20, rank=3), row("c", None)), dict(enumerate("abcb"))
    )
    assert [clocks[rank].corrected(NOW) - NOW for rank in range(4)] == [0, 10, 0, 20]
    assert [clocks[rank].is_known for rank in range(4)] == [True, True, False, True]
    assert clocks[2].half_width_ns is None
    assert correction_text(clocks[2]) == "clock unknown, times as recorded"


def test_a_job_on_one_host_needs_no_comparison() -> None:
    """On a single host, no clocks are compared, and no times are corrected."""
    clock = rank_clocks(per_host(row("a", 0, half_width_ns=0) | {"offset_at_ns": None}), {0: "a"})[0]
    assert (clock.is_known, clock.corrected(NOW), correction_text(clock)) == (True, NOW, "reference")


lines = st.builds(
    ClockLine,
    st.integers(NOW, NOW + 10**12),
    st.integers(-(10**9), 10**9),
    st.floats(-1e6, 1e6),
    st.just(1),
)


@given(lines, st.lists(st.integers(NOW - 10**13, NOW + 10**13), min_size=1, max_size=20))
def test_order_is_kept_and_columns_agree_with_single_times(line, times) -> None:
    """Corrected times stay in the recorded order, so nested events stay nested."""
    clock, ordered = RankClock("b", (line,)), sorted(times)
    corrected = [clock.corrected(time) for time in ordered]
    assert corrected == sorted(corrected)
    assert clock.all_corrected(np.array(ordered)).tolist() == corrected
