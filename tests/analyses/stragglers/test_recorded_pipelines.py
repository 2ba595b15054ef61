"""Tests that `stragglers` names the planted rank of recorded pipelines, whichever rank arrives last."""

from __future__ import annotations

import json

import pytest

import holotrace
from recordings import opened
from reference_data import IN_THE_REPOSITORY

RECORDINGS = IN_THE_REPOSITORY / "traces" / "planted_causes"


@pytest.mark.parametrize("name", ["pipeline_dp_rank1", "pipeline_dp_rank3", "pipeline_dp_ranks_0_3"])
def test_culprits_are_the_planted_ranks(name: str) -> None:
    """A rank that arrives last because it waited for another rank is not a culprit."""
    planted = {row["rank"] for row in json.loads((RECORDINGS / name / "truth.json").read_text())["planted"]}

    per_rank = holotrace.stragglers(opened(RECORDINGS / name)).per_rank

    assert set(per_rank.filter(role="culprit")["rank"]) == planted
