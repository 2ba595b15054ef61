"""`hta memory-timeline`: allocated memory over time, and what held it at the peak."""

from __future__ import annotations

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, NoCache, Ranks, Sources, Workers


def memory_timeline(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    as_json: AsJson = False,
    figure: Figure = None,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say how much memory was allocated on each device, and by which operators at the peak."""
    run_analysis("memory_timeline", JobOptions(sources, ranks, workers, no_cache), as_json=as_json, figure=figure)
