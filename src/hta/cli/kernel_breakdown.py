"""`hta kernel-breakdown`: what the devices run."""

from __future__ import annotations

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, NoCache, Ranks, Sources, Workers


def kernel_breakdown(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    as_json: AsJson = False,
    figure: Figure = None,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say which kinds of work run, alone or at once, and which kernels take the time."""
    run_analysis("kernel_breakdown", JobOptions(sources, ranks, workers, no_cache), as_json=as_json, figure=figure)
