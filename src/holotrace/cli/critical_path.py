"""`holotrace critical-path`: what bounds a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace as replaced
from typing import Annotated, Any

import typer

from holotrace.analyses.critical_path.compute import critical_path as compute_critical_path
from holotrace.catalogue import analysis
from holotrace.cli.analysis import MOST_ROWS, print_result
from holotrace.cli.figure_files import expect_a_figure_file, write_figure
from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import AsJson, Figure, Force, Target
from holotrace.cli.output import console, print_line, print_table
from holotrace.cli.path_options import OutputOptions, WindowOptions
from holotrace.cli.what_if import Predictions, parse_changes
from holotrace.enrich.critical_path.path_graph import critical_path_graph
from holotrace.figures import figure_of
from holotrace.locations import Location, located, status_of
from holotrace.store.trace import Trace
from holotrace.tables import print_frame
from holotrace.units import size_text

Annotation = Annotated[
    str | None,
    typer.Option(
        "--annotation",
        metavar="NAME",
        help="Instead of a step the host annotations of this name, or with it in their name; an empty name stands for "
        "the whole recording.",
    ),
]
Instance = Annotated[
    str | None,
    typer.Option(
        "--instance",
        metavar="3-5",
        help="Which step, by its number, or which annotation, counted from 0; 3-5 is one window over several in a row.",
    ),
]
TimeRange = Annotated[
    str | None,
    typer.Option(
        "--time-range-ms", metavar="10-20.5", help="Instead of a step a range of time, from the job's first event on."
    ),
]
DataLoading = Annotated[
    list[str] | None,
    typer.Option("--data-loading", metavar="REGEX", help="What loads data has this in its name; may be repeated."),
]
Overlay = Annotated[
    Target | None,
    typer.Option(
        "--overlay",
        parser=located,
        metavar="FOLDER",
        help="Also write copies of the files with the path, for Perfetto.",
    ),
]
AllEvents = Annotated[
    bool, typer.Option("--all-events", help="Keep the events that are not on the path in the copies.")
]
AllEdges = Annotated[
    bool, typer.Option("--all-edges", help="Draw all edges of the graph in the copies, and all events.")
]
Save = Annotated[
    Target | None,
    typer.Option(
        "--save", parser=located, metavar="FOLDER", help="Also write the graph of each rank, to be restored later."
    ),
]
Scaled = Annotated[
    list[str] | None,
    typer.Option("--scale", metavar="REGEX=0.5", help="What if work with such a name took half as long?"),
]
Removed = Annotated[list[str] | None, typer.Option("--remove", metavar="REGEX", help="What if it took no time?")]
Replaced = Annotated[
    list[str] | None, typer.Option("--replace", metavar="REGEX=12.5", help="What if each took 12.5 µs?")
]
NoLaunches = Annotated[bool, typer.Option("--no-launch-overhead", help="What if launching took no time?")]
Overlapped = Annotated[bool, typer.Option("--perfect-overlap", help="What if no work waited for communication?")]


@with_option_groups
def critical_path(  # noqa: PLR0913 -- one argument an option
    job: JobOptions,
    *,
    annotation: Annotation = None,
    instance: Instance = None,
    time_range_ms: TimeRange = None,
    data_loading: DataLoading = None,
    overlay: Overlay = None,
    all_events: AllEvents = False,
    all_edges: AllEdges = False,
    save: Save = None,
    scale: Scaled = None,
    remove: Removed = None,
    replace: Replaced = None,
    no_launch_overhead: NoLaunches = False,
    perfect_overlap: Overlapped = False,
    as_json: AsJson = False,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Say what bounds a step: the chain of work and waiting that reaches over it, to the last nanosecond."""
    window = WindowOptions(annotation, instance, time_range_ms, data_loading)
    outputs = OutputOptions(overlay, all_events, all_edges, save, force)
    changes = parse_changes(
        scale or (), remove or (), replace or (), no_launches=no_launch_overhead, overlap=perfect_overlap
    )
    if figure is not None:
        expect_a_figure_file(figure, overwrite=force)
    chosen = analysis("critical_path")
    with opened_job(job) as (trace, executor):
        outputs.check(trace)
        settings = window.settings(trace)
        result = compute_critical_path(trace, executor=executor, **settings)
        found = trace.select(result.per_rank["rank"].to_list())
        written, predicted = _further(found, settings, outputs, Predictions(changes))
    if figure is not None:
        write_figure(figure_of(chosen.name, result), figure)
    further = {"written": list(map(str, written)), **({"what_if": predicted.table.to_dicts()} if changes else {})}
    findings = (*result.findings, *predicted.findings)
    print_result(chosen, list(trace.ranks), replaced(result, findings=findings), as_json=as_json, further=further)
    if not as_json:
        _print_further(written, predicted)


def _further(
    trace: Trace, settings: Mapping[str, Any], outputs: OutputOptions, predicted: Predictions
) -> tuple[list[Location], Predictions]:
    """Write the copies and graphs of each rank, and predict what the changes save; return the paths as well."""
    written: list[Location] = []
    for rank, rank_trace in trace.ranks.items() if outputs.are_wanted or predicted.changes else ():
        path_graph = critical_path_graph(rank_trace, **settings)
        written += outputs.write(rank_trace, path_graph)
        predicted.add(rank, path_graph)
        rank_trace.forget()
    return written, predicted


def _print_further(paths: Sequence[Location], predicted: Predictions) -> None:
    to = console()
    if predicted.rows:
        print_table(to, print_frame("What if", predicted.table, MOST_ROWS, telling="saved_ns"))
    for path in paths:
        print_line(to, f"{path} ({size_text(status_of(path).size or 0)})")
