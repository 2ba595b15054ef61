"""Tests of finding outliers among peers."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.enrich.job.outliers import stands_out


def _outliers(*groups: list[float]) -> list[float]:
    """Return the values that are outliers in their group."""
    rows = pl.DataFrame([{"group": n, "value": float(v)} for n, values in enumerate(groups) for v in values])
    return rows.filter(stands_out(rows, "value", ["group"]))["value"].to_list()


@pytest.mark.parametrize(
    ("values", "slow"),
    [
        ([100, 101, 99, 100, 200], [200]),
        ([100, 101, 99, 100, 124], []),
        ([100, 130, 70, 160, 200], []),
        ([100, 100, 200], []),
        ([100, 101, 99, 100, 50], []),
        ([0, 0, 0, 0], []),
    ],
    ids=["twice", "less than a quarter more", "all differ", "too few peers", "faster", "zero"],
)
def test_values_far_above_their_peers_stand_out(values, slow):
    """With at least 4 values, an outlier exceeds the median by more than 25 % and by more than 5 robust deviations."""
    assert _outliers(values) == slow


def test_peers_are_compared_only_with_each_other():
    """Values are compared only within their group, so no value of a slow group is an outlier."""
    assert _outliers([100] * 5, [300] * 5) == []
