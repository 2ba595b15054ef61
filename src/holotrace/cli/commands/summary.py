"""`holotrace summary`: the verdict, the diagnosis, and the main tables of the first analyses in the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from holotrace.catalogue import ANALYSES
from holotrace.cli.diagnosis import print_diagnosis
from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import AsJson
from holotrace.cli.output import console, print_findings, print_json, print_line, print_table
from holotrace.questions.tables import print_frame, print_view
from holotrace.whole_job.summary import Summary, shown_analyses
from holotrace.whole_job.summary import summary as summarize

MOST_ROWS = 16
"""Maximum number of rows in each table of the summary."""

MOST_ANALYSES = 4
"""Number of analyses that the summary prints, in the catalogue's order; the report shows all analyses."""


@with_option_groups
def summary(
    job: JobOptions,
    *,
    as_json: AsJson = False,
) -> None:
    """Print the verdict, what costs time, what to do about it, caveats and tables."""
    with opened_job(job) as (trace, executor):
        whole = summarize(trace, executor=executor)
    if as_json:
        print_json(whole.to_dict())
    else:
        _print_text(whole, job.reading.sources)


def _print_text(whole: Summary, sources: Sequence[str]) -> None:
    to = console()
    print_verdict(to, whole)
    if whole.covers_one_job:
        print_diagnosis(to, whole.diagnosis, sources)
        if len(whole.diagnosis.per_finding):
            print_line(to, "The numbers behind these findings: holotrace diagnose")
    print_findings(to, [*whole.findings, *_skipped(whole)])
    _, *shown = shown_analyses(whole)
    for analysis in shown[:MOST_ANALYSES]:
        to.print()
        print_line(to, analysis.question, "bold cyan")
        tables = [print_view(view, whole.results[analysis.name], MOST_ROWS) for view in analysis.main_views]
        for table in tables:
            if table.rows:
                print_table(to, table)
    if len(whole.cpu_side):
        to.print()
        print_table(to, print_frame("The CPU side of each rank", whole.cpu_side, MOST_ROWS, telling="mean_step_ns"))
    answered = {analysis.name for analysis in shown[:MOST_ANALYSES]}
    further = [analysis.command for analysis in ANALYSES if analysis.name not in answered]
    to.print()
    print_line(to, f"More questions: holotrace {', '.join(further)}; all at once: holotrace report")


def print_verdict(to: Console, whole: Summary) -> None:
    """Print any reasons to doubt that the verdict covers exactly one whole job, then print the verdict."""
    for doubt in whole.doubts:
        print_line(to, doubt, "bold yellow")
    print_line(to, whole.verdict, "bold")


def _skipped(whole: Summary) -> list[str]:
    names = [Path(file.path).name for file in whole.skipped if not file.is_unreadable]
    if not names:
        return []
    files = f"{names[0]} was" if len(names) == 1 else f"{len(names):,} files were"
    return [f"{files} skipped; holotrace check lists the reason{'' if len(names) == 1 else 's'}"]
