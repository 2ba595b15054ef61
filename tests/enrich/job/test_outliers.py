"""Tests for values that stand out from their peers."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.enrich.job.outliers import stands_out


def _outliers(*groups: list[float]) -> list[float]:
    """Return the values that stand out from the others of their group."""
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
    """An outlier is a value above the median by more than 25 % and 5 robust deviations, among at least 4 values."""
    assert _outliers(values) == slow


def test_peers_are_compared_only_with_each_other():
    """Values of a slow group are not outliers, although another group is faster."""
    assert _outliers([100] * 5, [300] * 5) == []
