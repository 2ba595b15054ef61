"""`hta cupti-counters`: what hardware counters measured for each kernel."""

from __future__ import annotations

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import AsJson, Figure, NoCache, Ranks, Sources, Workers


def cupti_counters(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    as_json: AsJson = False,
    figure: Figure = None,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Say what hardware counters measured, and which operators launched the measured kernels."""
    run_analysis("cupti_counters", JobOptions(sources, ranks, workers, no_cache), as_json=as_json, figure=figure)
