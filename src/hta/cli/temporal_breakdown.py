"""`hta temporal-breakdown`: where the time of each device goes."""

from __future__ import annotations

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, NoCache, Ranks, Sources, Workers


def temporal_breakdown(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    as_json: AsJson = False,
    figure: Figure = None,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say how much of its time each device computes, does other work, and idles."""
    run_analysis("temporal_breakdown", JobOptions(sources, ranks, workers, no_cache), as_json=as_json, figure=figure)
