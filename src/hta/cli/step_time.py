"""`hta step-time`: what each step was spent on."""

from __future__ import annotations

from hta.cli.analysis import run_analysis
from hta.cli.job import JobOptions
from hta.cli.options import Annotation, AsJson, CompatMode, Figure, Force, NoCache, Ranks, Sources, Workers


def step_time(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    annotation: Annotation = None,
    compat: CompatMode = None,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
    ranks: Ranks = None,
    workers: Workers = None,
    no_cache: NoCache = False,
) -> None:
    """Divide each step into kernels, copies, exposed communication, the runtime, the data loader, operators and rest."""
    options = JobOptions(sources, ranks, workers, no_cache)
    run_analysis(
        "step_time", options, as_json=as_json, figure=figure, force=force, annotation=annotation, compat=compat
    )
