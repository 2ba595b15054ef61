"""`holotrace diagnose`: the verdict, each finding with advice, then the numbers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from holotrace.analyses.diagnosis.compute import Diagnosis, plan_for
from holotrace.analyses.diagnosis.finding_details import FindingDetails, finding_details, threshold_text
from holotrace.analyses.diagnosis.headline_facts import headline_line
from holotrace.analyses.diagnosis.stakes.across_ranks import with_replays
from holotrace.catalogue import analysis
from holotrace.cli.figure_files import write_figure
from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.output import console, print_csv, print_findings, print_json, print_line, print_table
from holotrace.cli.questions import ResultOptions, ShownTable, chosen_tables
from holotrace.enrich.job.one_job import Wholeness, wholeness
from holotrace.figures import figure_of
from holotrace.questions.result import tables_of
from holotrace.questions.tables import print_frame
from holotrace.whole_job.summary import verdict_of

_QUESTION = analysis("diagnosis")
_MOST_ROWS = 16


Explain = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Also print the rule behind each finding: what it looks for, its threshold, and the reason for the rule.",
    ),
]


def _command(job: JobOptions, shown: ResultOptions, *, explain: Explain = False) -> None:
    shown.check()
    with opened_job(job) as (trace, executor):
        answer = plan_for(trace).answer(trace, executor)
        result = with_replays(answer.result, answer.trace, executor)
        whole = wholeness(answer.trace, executor=executor)
    if shown.figure is not None:
        write_figure(figure_of(_QUESTION.name, result), shown.figure)
    if shown.as_json:
        about = {"analysis": _QUESTION.name, "ranks": list(answer.trace.ranks)}
        print_json({**about, **tables_of(result), "findings": result.findings})
        return
    tables = chosen_tables(_QUESTION.main_views, result, shown)
    if shown.as_csv:
        print_csv(result.per_finding)
    else:
        to = console()
        _print_verdict(to, result, whole)
        if whole.has_diagnosis:
            print_diagnosis(to, result, job.reading.sources, explains=explain)
            _print_tables(to, tables[1:], shown.rows or _MOST_ROWS)
            print_findings(to, result.findings)


def print_diagnosis(to: Console, known: Diagnosis, sources: Sequence[str], *, explains: bool = False) -> None:
    """Print the headline numbers, then each finding with its cost, what to do about it, and where to look.

    Args:
        to: the console.
        known: the diagnosis.
        sources: the traces, as the user named them.
        explains: also print, for each rule, what it looks for, its threshold, its reason and its source.
    """
    if known.headline["step_ns"][0]:
        print_line(to, headline_line(known))
    for details in finding_details(known):
        print_line(to, f"→ {details.text}", "green")
        print_line(to, f"  {details.row['advice']}")
        for effect in details.effects:
            print_line(to, f"  also seen as: {effect}", "dim")
        print_line(to, f"  {_where_to_look(details, sources)}", "dim")
        if explains:
            print_line(to, f"  {_explained(details)}", "dim")


def _where_to_look(details: FindingDetails, sources: Sequence[str]) -> str:
    """Name the rule, and the command that shows the first event on the timeline."""
    row = details.row
    rule = f"rule {details.rule.name}; {details.basis}"
    if row["rank"] is None or row["event_index"] is None:
        return rule
    return (
        f"{rule}; first event: holotrace serve {shlex.join(sources)} --open --event {row['rank']}:{row['event_index']}"
    )


def _explained(details: FindingDetails) -> str:
    rule = details.rule
    return f"{rule.name} looks for {rule.looks_for}, {threshold_text(rule)}. {rule.reason} Source: {rule.source}"


def _print_verdict(to: Console, result: Diagnosis, whole: Wholeness) -> None:
    print_line(to, _QUESTION.question, "bold cyan")
    for doubt in whole.sentences:
        print_line(to, doubt, "bold yellow")
    print_line(to, verdict_of(result, whole), "bold")


def _print_tables(to: Console, tables: Sequence[ShownTable], most_rows: int) -> None:
    for table in tables:
        if len(table.frame):
            print_table(to, print_frame(table.caption, table.frame, most_rows, telling=table.telling))


diagnosis = with_option_groups(_command)
