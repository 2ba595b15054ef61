"""Evidence for the rules about communication between ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import polars as pl

from holotrace.algorithms.intervals import covered_length
from holotrace.analyses.diagnosis.rank_examination import RankExamination
from holotrace.content_equality import EqualByContent


@dataclass(frozen=True, eq=False)
class JobEvidence(EqualByContent):
    """The input of the rules about a job: facts about its ranks, and the results of other analyses.

    ranks    what the rules found on each rank, sorted by rank
    results  results of other analyses, by name; an analysis whose input is missing has no result
    """

    ranks: Mapping[int, RankExamination]
    results: Mapping[str, Any]

    @property
    def step_ns(self) -> float:
        """Mean length of a steady step, averaged over the ranks."""
        return fmean(rank.numbers.step_ns for rank in self.ranks.values())

    @property
    def has_steps(self) -> bool:
        """Whether any rank has steps. If none has, each recording is treated as one step."""
        return any(of_rank.numbers.has_steps for of_rank in self.ranks.values())

    @property
    def exposed_ns(self) -> dict[int, float]:
        """Time per step of exposed communication, by rank; see `RankNumbers`."""
        return {rank: of_rank.numbers.exposed_ns for rank, of_rank in self.ranks.items()}

    @property
    def step_count(self) -> dict[int, int]:
        """The number of steady steps of each rank, at least 1."""
        return {rank: max(1, of_rank.numbers.step_count) for rank, of_rank in self.ranks.items()}

    @property
    def waits_counted_once(self) -> dict[int, float]:
        """For each rank, the time that its waits cover, divided by the sum of their lengths; below 1 if waits overlap."""
        if "collectives" not in self.results:
            return {}
        waits = self.results["collectives"].per_call.filter(pl.col("wait_ns") > 0)
        shares = {}
        for (rank,), rows in waits.group_by("rank"):
            starts, lengths = rows["start_ns"].to_numpy(), rows["wait_ns"].to_numpy()
            shares[int(str(rank))] = covered_length(starts, starts + lengths) / int(lengths.sum())
        return shares
