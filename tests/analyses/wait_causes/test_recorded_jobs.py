"""Tests of wait_causes on recorded jobs in which ranks were made slow on purpose."""

from __future__ import annotations

import json

import polars as pl
import pytest

import holotrace
from recordings import opened
from reference_data import IN_THE_REPOSITORY

RECORDINGS = IN_THE_REPOSITORY / "traces" / "planted_causes"
TRUTHS = {path.parent.name: json.loads(path.read_text()) for path in sorted(RECORDINGS.glob("*/truth.json"))}
PLANTED = [name for name, truth in TRUTHS.items() if truth["planted"]]
LEAST_SHARE = 0.75
"""Less than 1, because every job also has waits that no slow rank causes, for example in a pipeline's first step."""


@pytest.mark.parametrize("name", PLANTED)
def test_planted_ranks_and_functions_are_the_largest_causes(name: str) -> None:
    """The slow ranks cause at least LEAST_SHARE of the known costs; the slow function is their largest cause."""
    truth = TRUTHS[name]
    ranks = {row["rank"] for row in truth["planted"]}

    costs = holotrace.wait_causes(opened(RECORDINGS / name)).per_cause.drop_nulls("cause_rank")

    of_planted = costs.filter(pl.col("cause_rank").is_in(ranks))["cost_ns"].sum()
    assert of_planted >= LEAST_SHARE * costs["cost_ns"].sum()
    by_frame = costs.group_by("cause_rank", "frame").agg(pl.col("cost_ns").sum()).sort("cost_ns", descending=True)
    largest = by_frame.head(len(ranks))
    assert set(largest["cause_rank"]) == ranks
    if truth["function"]:
        assert set(largest["frame"]) == {truth["function"]}
