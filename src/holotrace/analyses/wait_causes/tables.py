"""Causes of waiting: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.wait_causes.compute import WaitCauses
from holotrace.enrich.job_graph.causes.roles import main_causes
from holotrace.questions.tables import View


def causes(result: WaitCauses) -> pl.DataFrame:
    """Return what each cause costs all ranks in all steps."""
    return main_causes(result.per_cause).drop("first_ns").rename({"name": "event"})


def ranks(result: WaitCauses) -> pl.DataFrame:
    """Return what each rank costs the others, how long it waits, and how much waiting it passes on."""
    return result.per_rank.rename({"name": "event"})


def pairs(result: WaitCauses) -> pl.DataFrame:
    """Return how much each rank's delays cost each other rank."""
    return result.per_pair


def steps(result: WaitCauses) -> pl.DataFrame:
    """Return what each rank costs the others in each step."""
    return result.per_step


def waits(result: WaitCauses) -> pl.DataFrame:
    """Return the causes of waiting for each step and waiting rank."""
    return result.per_cause.drop("first_ns").rename({"name": "event"})


def steps_that_differ(result: WaitCauses) -> pl.DataFrame:
    """Return how much longer each rank waits in each step than in its median step, and which cause grew."""
    return result.jitter.drop("frame").rename({"name": "event"})


VIEWS = (
    View("What each cause costs all ranks", causes, "cost_ns"),
    View("Culprits and victims", ranks, "cost_ns"),
    View("What each rank costs each other rank", pairs, "cost_ns", is_detail=True),
    View("What each rank costs in each step", steps, "cost_ns", is_detail=True),
    View("How much each step differs, and which cause grew", steps_that_differ, "wait_excess_ns", is_detail=True),
    View("The causes of each step and waiting rank", waits, "cost_ns", is_detail=True),
)
