"""`hta kernels`: the kernels by name, and by operator and launch shape."""

from __future__ import annotations

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, CompatMode, Figure, Force, NoCache, Ranks, Sources, Workers


def kernels(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    compat: CompatMode = None,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """List the kernels with calls, times, blocks per SM, occupancy and tensor cores, by name and by launch."""
    options = JobOptions(sources, ranks, workers, no_cache)
    run_analysis("kernels", options, as_json=as_json, figure=figure, force=force, compat=compat)
