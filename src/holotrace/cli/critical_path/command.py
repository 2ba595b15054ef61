"""`holotrace critical-path`: the critical path as a table, overlay or saved graph, and how much changes would save."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from holotrace.catalogue import analysis
from holotrace.cli.critical_path.across_ranks import AcrossRanks, from_first_event, show_path_across_ranks
from holotrace.cli.critical_path.outputs import OutputOptions
from holotrace.cli.critical_path.what_if import ChangeOptions, Predictions
from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.output import console, print_line, print_table
from holotrace.cli.questions import ResultOptions, show
from holotrace.enrich.critical_path.path_graph import PathGraph, critical_path_graph
from holotrace.locations import Location, status_of
from holotrace.questions.tables import print_frame
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import size_text

_QUESTION = analysis("critical_path")


def _command(
    job: JobOptions,
    changes: ChangeOptions,
    outputs: OutputOptions,
    shown: ResultOptions,
    *,
    across_ranks: AcrossRanks = False,
    **window: Any,  # noqa: ANN401
) -> None:
    if across_ranks:
        show_path_across_ranks(job, changes, outputs, shown, window)
        return
    changes.check_of_one_rank()
    predictions = Predictions(changes.parsed())
    shown.check()
    with opened_job(job) as (trace, executor):
        outputs.check(trace, overwrite=shown.force)
        settings = from_first_event(window, trace)
        answer = _QUESTION.plan(**settings).answer(trace, executor)
        analysed = answer.trace.select(answer.result.per_rank["rank"].to_list())
        write = partial(outputs.write, overwrite=shown.force)
        written = _write_and_predict(analysed, settings, write if outputs.are_wanted else None, predictions)
    what_if = {"what_if": predictions.table.to_dicts()} if predictions.changes else {}
    result = replace(answer.result, findings=(*answer.result.findings, *predictions.findings))
    about = {"analysis": _QUESTION.name, "ranks": list(answer.trace.ranks)}
    show(_QUESTION, result, shown, about, {"written": list(map(str, written)), **what_if})
    if not shown.as_json:
        _print_further(written, predictions)


critical_path = with_option_groups(_command, _QUESTION.options)


def _write_and_predict(
    trace: Trace,
    settings: Mapping[str, Any],
    write: Callable[[RankTrace, PathGraph], Iterable[Location]] | None,
    predictions: Predictions,
) -> list[Location]:
    """Write each rank's overlay and graph if requested, add the rank's prediction, and return the files' paths."""
    written: list[Location] = []
    for rank, rank_trace in trace.ranks.items() if write or predictions.changes else ():
        path_graph = critical_path_graph(rank_trace, **settings)
        written += write(rank_trace, path_graph) if write else ()
        predictions.add(rank, path_graph)
        rank_trace.forget()
    return written


def _print_further(paths: Sequence[Location], predictions: Predictions) -> None:
    to = console()
    if predictions.rows:
        print_table(to, print_frame("What if", predictions.table, _QUESTION.most_rows, telling="saved_ns"))
    for path in paths:
        print_line(to, f"{path} ({size_text(status_of(path).size or 0)})")
