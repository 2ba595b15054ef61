"""`holotrace step-time`: what each step was spent on."""

from __future__ import annotations

from holotrace.cli.analysis import ResultOptions, run_analysis
from holotrace.cli.job import JobOptions
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import Annotation, CompatMode


@with_option_groups
def step_time(
    job: JobOptions,
    shown: ResultOptions,
    *,
    annotation: Annotation = None,
    compat: CompatMode = None,
) -> None:
    """Divide each step into kernels, copies, exposed communication, the runtime, the data loader, operators and rest."""
    run_analysis("step_time", job, shown, annotation=annotation, compat=compat)
