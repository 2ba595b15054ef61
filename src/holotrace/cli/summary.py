"""`holotrace summary`: the verdict and the main tables of the first analyses."""

from __future__ import annotations

from rich.console import Console

from holotrace.cli.advice import print_recommendations
from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import AsJson
from holotrace.cli.output import console, print_findings, print_json, print_line, print_table, tables_of
from holotrace.store.trace import Trace
from holotrace.tables import print_frame, print_view
from holotrace.whole_job.summary import Summary, shown_analyses
from holotrace.whole_job.summary import summary as summarize

MOST_ROWS = 16
"""Rows of a table in the summary."""

MOST_ANALYSES = 4
"""Analyses printed, the first of the catalogue; the others have commands of their own, and stand in the report."""


@with_option_groups
def summary(
    job: JobOptions,
    *,
    as_json: AsJson = False,
) -> None:
    """Say in one sentence where the time of a job goes, then print the tables behind it."""
    with opened_job(job) as (trace, executor):
        found = summarize(trace, executor=executor)
    if as_json:
        _print_json(trace, found)
    else:
        _print_text(trace, found)


def _print_json(trace: Trace, found: Summary) -> None:
    print_json(
        {
            "doubts": found.doubts,
            "verdict": found.verdict,
            "ranks": list(trace.ranks),
            "analyses": {name: tables_of(result) for name, result in found.results.items()},
            "missing": found.missing,
            "cpu_side": found.cpu_side.to_dicts(),
            "advice": tables_of(found.advice),
            "findings": found.findings,
            "skipped_files": [{"path": file.path, "reason": file.reason} for file in trace.skipped],
        }
    )


def _print_text(trace: Trace, found: Summary) -> None:
    to = console()
    print_verdict(to, found)
    print_recommendations(to, found.advice)
    print_findings(to, [*found.findings, *_skipped(trace)])
    shown = shown_analyses(found)
    for analysis in shown[:MOST_ANALYSES]:
        to.print()
        print_line(to, analysis.question, "bold cyan")
        tables = [print_view(view, found.results[analysis.name], MOST_ROWS) for view in analysis.main_views]
        for table in tables:
            if table.rows:
                print_table(to, table)
    if len(found.cpu_side):
        to.print()
        print_table(to, print_frame("The CPU side of each rank", found.cpu_side, MOST_ROWS, telling="mean_step_ns"))
    if further := [analysis.command for analysis in shown[MOST_ANALYSES:]]:
        to.print()
        print_line(to, f"More to ask: holotrace {', '.join(further)}; all at once: holotrace report")


def print_verdict(to: Console, found: Summary) -> None:
    """Print the verdict, after the reasons to doubt that it is one on a whole job."""
    for doubt in found.doubts:
        print_line(to, doubt, "bold yellow")
    print_line(to, found.verdict, "bold")


def _skipped(trace: Trace) -> list[str]:
    count = sum(not file.is_unreadable for file in trace.skipped)
    files = "1 file was" if count == 1 else f"{count:,} files were"
    return [f"{files} left out; holotrace check says which and why"] if count else []
