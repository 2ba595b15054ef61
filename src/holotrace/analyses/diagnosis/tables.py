"""Diagnosis: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.diagnosis.compute import Diagnosis
from holotrace.questions.tables import View, known_columns

_WHERE = ("module", "operator", "kernel", "source_line")


def findings(result: Diagnosis) -> pl.DataFrame:
    """Return what costs time, and what to do about it: the findings that are not part of another finding."""
    alone = result.per_finding.filter(pl.col("part_of").is_null())
    return alone.select("stake_ns", "stake_fraction", "basis", "finding", "advice", "rank")


def places(result: Diagnosis) -> pl.DataFrame:
    """Return where each cause is: rank, line, module, operator and kernel."""
    return known_columns(
        result.per_finding.select("rule", "stake_ns", "rank", *_WHERE, "event_count", "confidence", "part_of")
    )


def headline(result: Diagnosis) -> pl.DataFrame:
    """Return the numbers that describe the job."""
    return known_columns(result.headline)


def numbers(result: Diagnosis) -> pl.DataFrame:
    """Return what each rule measured on each rank."""
    return known_columns(result.evidence).with_columns(pl.col("measured").round_sig_figs(3))


VIEWS = (
    View("What costs time, and what to do", findings, "stake_ns"),
    View("The job in numbers", headline, "step_ns", is_detail=True),
    View("Where the causes are", places, "stake_ns"),
    View("What each rule measured", numbers, "explained_ns", is_detail=True),
)
