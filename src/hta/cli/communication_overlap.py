"""`hta communication-overlap`: how much communication is hidden."""

from __future__ import annotations

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, NoCache, Ranks, Sources, Workers


def communication_overlap(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    as_json: AsJson = False,
    figure: Figure = None,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say how much of each rank's communication is hidden behind computation."""
    run_analysis("communication_overlap", JobOptions(sources, ranks, workers, no_cache), as_json=as_json, figure=figure)
