"""`hta memory-bandwidth`: how fast data moves to, from and within the devices."""

from __future__ import annotations

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, NoCache, Ranks, Sources, Workers


def memory_bandwidth(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    as_json: AsJson = False,
    figure: Figure = None,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say how much each device copies in each direction, and how fast."""
    run_analysis("memory_bandwidth", JobOptions(sources, ranks, workers, no_cache), as_json=as_json, figure=figure)
