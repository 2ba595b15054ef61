"""`holotrace diagnose`: the verdict, each finding with what to do about it, then the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from holotrace.analyses.diagnosis.answer import finding_texts
from holotrace.analyses.diagnosis.compute import Diagnosis, plan_for
from holotrace.analyses.diagnosis.headline_facts import headline_line
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


def _command(job: JobOptions, shown: ResultOptions) -> None:
    shown.check()
    with opened_job(job) as (trace, executor):
        answer = plan_for(trace).answer(trace, executor)
        whole = wholeness(answer.trace, executor=executor)
    result = answer.result
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
        _print(result, whole, tables[1:], shown.rows or _MOST_ROWS)


def print_diagnosis(to: Console, known: Diagnosis) -> None:
    """Print the headline numbers, then each finding with its cost, and what to do about it."""
    if known.headline["step_ns"][0]:
        print_line(to, headline_line(known))
    for row, text in finding_texts(known):
        print_line(to, f"→ {text}", "green")
        print_line(to, f"  {row['advice']}")


def _print(result: Diagnosis, whole: Wholeness, tables: Sequence[ShownTable], most_rows: int) -> None:
    to = console()
    print_line(to, _QUESTION.question, "bold cyan")
    for doubt in whole.sentences:
        print_line(to, doubt, "bold yellow")
    print_line(to, verdict_of(result, whole), "bold")
    if whole.unrelated:
        return
    print_diagnosis(to, result)
    for table in tables:
        if len(table.frame):
            print_table(to, print_frame(table.caption, table.frame, most_rows, telling=table.telling))
    print_findings(to, result.findings)


diagnosis = with_option_groups(_command)
