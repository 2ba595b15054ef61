"""Tests of stragglers on recorded pipelines in which one or two ranks were made slow."""

from __future__ import annotations

import json

import pytest

import holotrace
from recordings import opened
from reference_data import IN_THE_REPOSITORY

RECORDINGS = IN_THE_REPOSITORY / "traces" / "planted_causes"


@pytest.mark.parametrize("name", ["pipeline_dp_rank1", "pipeline_dp_rank3", "pipeline_dp_ranks_0_3"])
def test_culprits_are_the_planted_ranks(name: str) -> None:
    """The culprits are exactly the slow ranks, not the ranks that arrive late because they wait for a slow rank."""
    planted = {row["rank"] for row in json.loads((RECORDINGS / name / "truth.json").read_text())["planted"]}

    per_rank = holotrace.stragglers(opened(RECORDINGS / name)).per_rank

    assert set(per_rank.filter(role="culprit")["rank"]) == planted
