"""The window of a whole job, and the joined graph of its ranks within it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.job_calls import JobCalls, job_calls
from holotrace.enrich.across_ranks.matching.calls import OfRank, of_rank
from holotrace.enrich.critical_path.path_window import PathWindow, path_window, step_windows, whole_recording
from holotrace.enrich.job.findings import ranks_text
from holotrace.enrich.job_graph.joining import JobGraph, job_graph
from holotrace.enrich.job_graph.rank_graph import RankGraph, rank_graph
from holotrace.errors import MissingDataError
from holotrace.execution.executor import Executor
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import duration_text


class WindowOptions(NamedTuple):
    """The options that select a window; see `holotrace.enrich.critical_path.path_window.path_window`."""

    annotation: str | None = None
    instance: int | tuple[int, int] | None = None
    time_range_ns: tuple[int, int] | None = None
    data_loading: tuple[str, ...] = ()

    @property
    def is_default(self) -> bool:
        """Whether the default step is used because no option selects a window."""
        return self.annotation is None and self.instance is None and self.time_range_ns is None


@dataclass(frozen=True, eq=False)
class JobWindow(EqualByContent):
    """The graph of a job within a window.

    trace     the ranks in the graph
    options   as given
    job       the calls of the job
    windows   {rank: its own window, on its own clock}
    spans     {rank: the window of its graph, which begins when the job's first rank begins}
    recorded  {rank: the window of its whole recording, on its own clock}
    graphs    {rank: its reduced graph}
    graph     the joined graph
    findings  the ranks that the graph does not contain or contains only in part, and the reasons
    """

    trace: Trace
    options: WindowOptions
    job: JobCalls
    windows: Mapping[int, PathWindow]
    spans: Mapping[int, PathWindow]
    recorded: Mapping[int, PathWindow]
    graphs: Mapping[int, RankGraph]
    graph: JobGraph
    findings: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the window, such as `ProfilerStep#3`."""
        return next(iter(self.windows.values())).name


class _Known(NamedTuple):
    """The result of the first pass over a rank: its communication, and the possible windows of the job."""

    communication: OfRank
    steps: dict[int, PathWindow]
    window: PathWindow | None
    recorded: PathWindow


def job_window(trace: Trace, options: WindowOptions, executor: Executor) -> JobWindow:
    """Return the joined graph of all ranks.

    Each rank is read twice: first for its communication and then, once the clocks are known, for its graph. The job's
    window begins when the earliest window of any rank begins. If a rank's own window begins later, the rank's graph
    still begins with the job's window, so it also contains the end of the rank's previous step.

    Raises:
        InvalidOptionError: a rank does not have the requested annotation, instance or range.
        MissingDataError: no rank has operators, calls or device work.
    """
    first = trace.visit(partial(_known, options=options), executor)
    known, missing = _without_missing(first.results)
    job = job_calls({rank: of.communication for rank, of in known.items()})
    own, without_steps, chosen = _chosen(known, options)
    spans, unaligned = _on_one_clock(job, own, without_steps)
    present = first.trace.select(list(spans))
    second = present.visit(partial(_graph, spans=spans, data_loading=options.data_loading), executor)
    graphs = {rank: second.results[rank] for rank in second.trace.ranks}
    return JobWindow(
        second.trace,
        options,
        job,
        {rank: own[rank] for rank in graphs},
        {rank: spans[rank] for rank in graphs},
        {rank: known[rank].recorded for rank in graphs},
        graphs,
        job_graph(graphs, job),
        (*first.findings, *missing, *second.findings, *chosen, *unaligned, *job.findings),
    )


def _known(rank_trace: RankTrace, *, options: WindowOptions) -> _Known | MissingDataError:
    try:
        recorded = whole_recording(rank_trace)
        window = None if options.is_default else path_window(rank_trace, **_chosen_by(options))
    except MissingDataError as error:
        return error
    return _Known(of_rank(rank_trace), step_windows(rank_trace) if options.is_default else {}, window, recorded)


def _chosen_by(options: WindowOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("annotation", "instance", "time_range_ns")}


def _graph(rank_trace: RankTrace, *, spans: Mapping[int, PathWindow], data_loading: tuple[str, ...]) -> RankGraph:
    return rank_graph(rank_trace, spans[rank_trace.rank], data_loading)


def _without_missing(results: Mapping[int, _Known | MissingDataError]) -> tuple[dict[int, _Known], tuple[str, ...]]:
    known = {rank: of for rank, of in results.items() if isinstance(of, _Known)}
    missing = [of for of in results.values() if isinstance(of, MissingDataError)]
    if not known:
        raise missing[0]
    return known, tuple(error.finding for error in missing)


def _chosen(
    known: Mapping[int, _Known], options: WindowOptions
) -> tuple[dict[int, PathWindow], list[int], tuple[str, ...]]:
    """Return each rank's window, the ranks without steps, and findings.

    By default, the window is the second-to-last of the steps that all ranks with steps have recorded.
    """
    if not options.is_default:
        return {rank: of.window for rank, of in known.items() if of.window}, [], ()
    with_steps = [of for of in known.values() if of.steps]
    shared = sorted(set.intersection(*(set(of.steps) for of in with_steps))) if with_steps else []
    if not shared:
        why = ("no step was recorded by all ranks, so the window is the whole recording",) if with_steps else ()
        return {rank: of.recorded for rank, of in known.items()}, [], why
    number = shared[-2:][0]
    name = with_steps[0].steps[number].name
    windows = {rank: of.steps.get(number) or replace(of.recorded, name=name) for rank, of in known.items()}
    without = [rank for rank, of in known.items() if not of.steps]
    finding = f"{ranks_text(without)}: no steps were recorded; the graph uses the window of the other ranks"
    return windows, without, (finding,) if without else ()


def _on_one_clock(
    job: JobCalls, own: Mapping[int, PathWindow], without_steps: Sequence[int]
) -> tuple[dict[int, PathWindow], tuple[str, ...]]:
    """Return the window of each rank's graph, on the rank's clock.

    A graph's window lasts from the start of the job's window to the end of the rank's own window. The windows of ranks
    without steps are clipped to the windows of the other ranks.
    """
    offsets = {rank: _offset_ns(job, rank, window.start_ns) for rank, window in own.items()}
    known = {rank: offset for rank, offset in offsets.items() if offset is not None} or {next(iter(own)): 0}
    leading = [rank for rank in known if rank not in without_steps] or list(known)
    begin_ns = min(own[rank].start_ns + known[rank] for rank in leading)
    last_ns = max(own[rank].end_ns + known[rank] for rank in leading)
    spans = {
        rank: replace(
            own[rank],
            start_ns=begin_ns - offset,
            end_ns=max(begin_ns + 1, min(own[rank].end_ns + offset, last_ns)) - offset,
        )
        for rank, offset in known.items()
    }
    lost = [rank for rank in own if rank not in known]
    longest = max((own[rank].end_ns - own[rank].start_ns for rank in lost), default=0)
    whose = "its clock" if len(lost) == 1 else "their clocks"
    finding = (
        f"{ranks_text(lost)}: left out of the graph (up to {duration_text(longest)} of each rank), because {whose} "
        "cannot be compared with those of the other ranks"
    )
    return spans, (finding,) if lost else ()


def _offset_ns(job: JobCalls, rank: int, time_ns: int) -> int | None:
    offset: int | None = job.clocks.corrections(rank, np.array([time_ns]))["offset_ns"][0]
    return offset
