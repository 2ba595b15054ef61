"""`holotrace critical-path --across-ranks`: one path through all ranks, and the time that changes would save."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from holotrace.analyses.critical_path.across_ranks import critical_path_in
from holotrace.analyses.critical_path.tables import JOB_VIEWS
from holotrace.catalogue import analysis
from holotrace.cli.critical_path.outputs import OutputOptions
from holotrace.cli.critical_path.what_if import ChangeOptions
from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.output import console, print_line
from holotrace.cli.questions import ResultOptions, show
from holotrace.enrich.critical_path.what_if import WhatIf
from holotrace.enrich.critical_path.window_activities import DATA_LOADING
from holotrace.enrich.job.job_time import origin_ns
from holotrace.enrich.job_graph.job_window import JobWindow, WindowOptions, job_window
from holotrace.enrich.job_graph.what_if.job_what_if import JobChange, predicted
from holotrace.errors import InconsistentTimesError, InvalidOptionError
from holotrace.execution.executor import Executor
from holotrace.store.trace import Trace
from holotrace.units import duration_text, percent_text

_QUESTION = analysis("critical_path")

AcrossRanks = Annotated[
    bool,
    typer.Option(
        "--across-ranks",
        help="Find one path through all ranks: where a rank waits for another rank, the path moves to the other rank.",
    ),
]


def show_path_across_ranks(
    job: JobOptions,
    changes: ChangeOptions,
    outputs: OutputOptions,
    shown: ResultOptions,
    window: Mapping[str, Any],
) -> None:
    """Print the job's path, and its predicted length after the changes.

    Raises:
        InvalidOptionError: `outputs` requests overlays or graphs, which exist only for single ranks.
    """
    if outputs.are_wanted:
        message = (
            "--overlay and --save write the paths of single ranks; leave out --across-ranks, or use "
            "holotrace export --to perfetto --merge --critical-path for the path through all ranks"
        )
        raise InvalidOptionError(message)
    wanted = changes.of_job()
    shown.check()
    with opened_job(job) as (trace, executor):
        known = job_window(trace, _options(from_first_event(window, trace)), executor)
        result = critical_path_in(known, executor=executor)
        prediction, findings = (
            _predicted(known, wanted, executor, force=changes.predict_anyway) if wanted else (None, ())
        )
    about = {"analysis": _QUESTION.name, "ranks": list(known.trace.ranks)}
    further = {} if prediction is None else {"what_if": _row(prediction)}
    result = replace(result, findings=(*result.findings, *findings))
    show(_QUESTION, result, shown, about, further, views=JOB_VIEWS)
    if prediction is not None and not shown.as_json:
        print_line(console(), _sentence(prediction))


def from_first_event(window: Mapping[str, Any], trace: Trace) -> dict[str, Any]:
    """Return the settings with the time range, if there is one, converted to the trace's clock.

    In `window`, the time range is relative to the job's first event.
    """
    settings = dict(window)
    if "time_range_ns" in settings:
        origin = origin_ns(trace)
        settings["time_range_ns"] = tuple(origin + time_ns for time_ns in settings["time_range_ns"])
    return settings


def _options(settings: Mapping[str, Any]) -> WindowOptions:
    return WindowOptions(**{"data_loading": DATA_LOADING, **settings, **_as_tuple(settings)})


def _as_tuple(settings: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {"data_loading": tuple(settings["data_loading"])} if "data_loading" in settings else {}


def _predicted(
    known: JobWindow,
    changes: list[JobChange],
    executor: Executor,
    *,
    force: bool,
) -> tuple[WhatIf | None, tuple[str, ...]]:
    try:
        return predicted(known, changes, force=force, executor=executor), ()
    except (InconsistentTimesError, InvalidOptionError) as error:
        return None, (str(error),)


def _row(prediction: WhatIf) -> dict[str, object]:
    names = ("measured_ns", "predicted_ns", "saved_ns", "saved_fraction", "replayed_ns")
    return {name: getattr(prediction, name) for name in names}


def _sentence(prediction: WhatIf) -> str:
    error = abs(prediction.replayed_ns - prediction.measured_ns) / max(1, prediction.measured_ns)
    saved = f"{duration_text(prediction.saved_ns)} less ({percent_text(prediction.saved_fraction or 0)})"
    return (
        f"With these changes: {duration_text(prediction.predicted_ns)} instead of {duration_text(prediction.measured_ns)}, {saved}; "
        f"a replay without changes differs from the measured step by {percent_text(error)}"
    )
