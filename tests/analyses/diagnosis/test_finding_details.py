"""Tests of the details of a finding: its ranks, locations, effects and rule."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import holotrace
from holotrace.analyses.diagnosis.finding_details import FindingDetails, finding_details, threshold_text
from holotrace.testing import small_job

TRACES = Path(__file__).parents[2] / "reference" / "traces"


@pytest.fixture(scope="module")
def result() -> holotrace.Diagnosis:
    """Return the diagnosis of a job of two ranks in which rank 1 is late."""
    return holotrace.diagnosis(small_job())


def of_rule(result: holotrace.Diagnosis, rule: str) -> FindingDetails:
    """Return the first finding of a rule."""
    return next(details for details in finding_details(result) if details.rule.name == rule)


def test_findings_that_are_part_of_others_are_their_effects(result) -> None:
    """Every finding is shown once, either separately or as an effect of the finding that explains its time."""
    shown = finding_details(result)
    effects = [effect for details in shown for effect in details.effects]

    alone = result.per_finding.filter(pl.col("part_of").is_null())["finding"].to_list()
    assert [details.row["finding"] for details in shown] == alone
    assert sorted([*alone, *effects]) == sorted(result.per_finding["finding"].to_list())


def test_the_ranks_are_those_of_the_evidence(result) -> None:
    """Rank 1 is 200 µs late per step, which costs each rank 200 µs, including rank 0, which waits for rank 1."""
    assert of_rule(result, "late_rank").ranks == ((0, 200_000), (1, 200_000))


@pytest.mark.slow
def test_two_findings_of_one_rule_keep_their_own_ranks() -> None:
    """The `stake_ns` of each finding about a recorded job is at most the mean of its costs over all ranks."""
    known = holotrace.diagnosis(holotrace.open_trace(TRACES / "dlrm_8rank", cache=False))
    for details in finding_details(known):
        claimed = sum(cost for _, cost in details.ranks) / known.headline["rank_count"][0]
        assert details.row["stake_ns"] is None or details.row["stake_ns"] <= round(claimed) + 1
        assert len(details.ranks) == details.row["rank_count"]


def test_keys_differ(result) -> None:
    """The second finding of a rule gets a key that ends in "-2"."""
    twice = holotrace.Diagnosis(
        result.headline,
        pl.concat([result.per_finding, result.per_finding.filter(pl.col("rule") == "late_rank")]),
        result.evidence,
    )
    keys = [details.key for details in finding_details(twice)]

    assert len(set(keys)) == len(keys)
    assert {"late_rank", "late_rank-2"} <= set(keys)


@pytest.mark.slow
def test_the_line_comes_before_the_kernel() -> None:
    """The finding about the rank that sleeps has a single location: the source line."""
    known = holotrace.diagnosis(holotrace.open_trace(TRACES / "ddp_gloo_4rank", cache=False))

    assert of_rule(known, "late_rank").places == (("line", "ddp.py(35): main"),)


def test_each_rule_says_from_where_on_it_applies(result) -> None:
    """The threshold of a rule is shown with the quantity it refers to."""
    assert threshold_text(of_rule(result, "late_rank").rule) == "at least 0.1 of all waiting"
