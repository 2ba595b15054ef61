"""Causes of waiting: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.wait_causes.compute import WaitCauses
from holotrace.enrich.job_graph.causes.roles import main_causes
from holotrace.questions.tables import View


def causes(result: WaitCauses) -> pl.DataFrame:
    """Return the cost of each cause, over all ranks and steps."""
    return main_causes(result.per_cause).drop("first_ns").rename({"name": "event"})


def ranks(result: WaitCauses) -> pl.DataFrame:
    """Return how much waiting each rank causes, how long it waits itself, and how much waiting it passes on."""
    return result.per_rank.rename({"name": "event"})


def pairs(result: WaitCauses) -> pl.DataFrame:
    """Return how long each rank waits because of each other rank."""
    return result.per_pair


def steps(result: WaitCauses) -> pl.DataFrame:
    """Return how much waiting each rank causes in each step."""
    return result.per_step


def waits(result: WaitCauses) -> pl.DataFrame:
    """Return the causes of waiting for each step and waiting rank."""
    return result.per_cause.drop("first_ns").rename({"name": "event"})


def steps_that_differ(result: WaitCauses) -> pl.DataFrame:
    """Return how much longer each rank waits in each step than in its median step, and which cause's cost grew most."""
    return result.jitter.drop("frame").rename({"name": "event"})


VIEWS = (
    View("Causes, over all ranks and steps", causes, "cost_ns"),
    View("Culprits and victims", ranks, "cost_ns"),
    View("Waiting that each rank causes for each other rank", pairs, "cost_ns", is_detail=True),
    View("Waiting that each rank causes in each step", steps, "cost_ns", is_detail=True),
    View(
        "Steps compared with the median step, and the cause whose cost grew most",
        steps_that_differ,
        "wait_excess_ns",
        is_detail=True,
    ),
    View("Causes by step and waiting rank", waits, "cost_ns", is_detail=True),
)
