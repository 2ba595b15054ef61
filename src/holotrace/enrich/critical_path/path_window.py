"""Selects the window, within a recording, for which a critical path is computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

import polars as pl

from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.steps.steps import steps
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.schema import DEVICE_WORK_KINDS, LAUNCH_KINDS, EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace
from holotrace.units import counted

_NAMED_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)
_RECORDED_KINDS = (*_NAMED_KINDS, *LAUNCH_KINDS, *DEVICE_WORK_KINDS)
_NAMES_LISTED = 5
_NUMBERS_LISTED = 10

WHOLE_RECORDING = "whole recording"
"""The name of the window if the recording has no steps."""


@dataclass(frozen=True)
class PathWindow:
    """A window of the recording.

    name       name of the window in messages, such as `ProfilerStep#3`
    start_ns   start of the window
    end_ns     end of the window on the host; device work launched in the window may end later
    track_id   process and thread of the annotation or (first) step; None if the window has neither
    """

    name: str
    start_ns: int
    end_ns: int
    track_id: int | None = None


def path_window(
    rank_trace: RankTrace,
    *,
    annotation: str | None = None,
    instance: int | tuple[int, int] | None = None,
    time_range_ns: tuple[int, int] | None = None,
) -> PathWindow:
    """Return the requested window.

    Args:
        rank_trace: the rank.
        annotation: None selects the training steps, or the whole recording if it has no steps. An empty string selects
            the whole recording. Any other string selects the host annotations or operators with this name or, if there
            are none, those whose names contain it.
        instance: the number of one instance, or the numbers of the first and the last of several consecutive instances.
            Steps are numbered as in their names; the default is the second-to-last step, because recordings often end
            within a step. Annotations are numbered from 0 by start time; the default is 0.
        time_range_ns: start and end of the window, instead of an annotation.

    Raises:
        InvalidOptionError: the annotation, instance or range does not exist.
        MissingDataError: the rank has neither host ranges nor device work.
    """
    if time_range_ns is not None:
        return _range(rank_trace, time_range_ns, is_alone=annotation is None and instance is None)
    if annotation is None:
        numbered = _steps(rank_trace)
        return _step(rank_trace, numbered, instance) if len(numbered) else _without_steps(rank_trace, instance)
    if not annotation:
        return _without_steps(rank_trace, instance)
    return _annotation(rank_trace, annotation, instance)


def step_windows(rank_trace: RankTrace) -> dict[int, PathWindow]:
    """Return {step number: its window}, in time order; empty if no step was recorded."""
    rows = _steps(rank_trace).iter_rows()
    return {number: PathWindow(f"ProfilerStep#{number}", start, end, track) for number, start, end, track in rows}


def _range(rank_trace: RankTrace, time_range_ns: tuple[int, int], *, is_alone: bool) -> PathWindow:
    start_ns, end_ns = time_range_ns
    recorded = whole_recording(rank_trace)
    if not is_alone:
        message = "time_range_ns cannot be combined with annotation or instance"
        raise InvalidOptionError(message)
    if start_ns >= end_ns or end_ns <= recorded.start_ns or start_ns >= recorded.end_ns:
        message = (
            f"time_range_ns=({start_ns}, {end_ns}) is outside the recording of rank {rank_trace.rank}, which "
            f"covers {recorded.start_ns} to {recorded.end_ns} ns"
        )
        raise InvalidOptionError(message)
    return PathWindow("time range", start_ns, end_ns, recorded.track_id)


@derived
def whole_recording(rank_trace: RankTrace) -> PathWindow:
    """Return the window of all operators, calls and device work.

    Raises:
        MissingDataError: the rank has neither host ranges nor device work.
    """
    bounds = event_ranges(rank_trace, _RECORDED_KINDS, ["start_ns", "end_ns"])
    if bounds.is_empty():
        message = (
            f"critical_path: rank {rank_trace.rank} has no operators, calls or device work ({rank_trace.source}). "
            "Record with ProfilerActivity.CPU and ProfilerActivity.CUDA, or leave the rank out with ranks=[...]."
        )
        raise MissingDataError(message)
    start_ns, end_ns = bounds.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    announced = steps(rank_trace)["track_id"].head(1).to_list()
    return PathWindow(WHOLE_RECORDING, start_ns, end_ns, *announced)


def _without_steps(rank_trace: RankTrace, instance: int | tuple[int, int] | None) -> PathWindow:
    if instance is not None:
        message = f"instance={instance}: rank {rank_trace.rank} has no steps to choose from; name an annotation"
        raise InvalidOptionError(message)
    return whole_recording(rank_trace)


def _steps(rank_trace: RankTrace) -> pl.DataFrame:
    """Return each step once: number, start_ns, end_ns, and track_id of the thread that begins the step first."""
    announced = steps(rank_trace).sort("start_ns", maintain_order=True)
    return announced.group_by(pl.col("step").alias("number"), maintain_order=True).agg(
        pl.col("start_ns").min(), pl.col("end_ns").max(), pl.col("track_id").first()
    )


def _step(rank_trace: RankTrace, numbered: pl.DataFrame, instance: int | tuple[int, int] | None) -> PathWindow:
    numbers = numbered["number"].to_list()
    first, last = _first_and_last(numbers[-2:][0] if instance is None else instance)
    for number in (first, last):
        if number not in numbers:
            message = f"rank {rank_trace.rank} has no step {number}; its {len(numbers)} steps are: {_listed(numbers)}"
            raise InvalidOptionError(message)
    chosen = numbered[numbers.index(first) : numbers.index(last) + 1]
    name = f"ProfilerStep#{first}" if first == last else f"ProfilerStep#{first} to #{last}"
    return _window(name, chosen, f"steps {first} to {last}")


def _annotation(rank_trace: RankTrace, annotation: str, instance: int | tuple[int, int] | None) -> PathWindow:
    instances = _instances(rank_trace, annotation)
    first, last = _first_and_last(0 if instance is None else instance)
    if not (0 <= first < len(instances) and 0 <= last < len(instances)):
        message = (
            f"instance={instance}: rank {rank_trace.rank} has {counted(len(instances), 'instance')} of {annotation!r}, "
            "numbered from 0"
        )
        raise InvalidOptionError(message)
    number = f"instance {first}" if first == last else f"instances {first} to {last}"
    return _window(f"{annotation}, {number}", instances[first : last + 1], number)


def _first_and_last(instance: int | tuple[int, int]) -> tuple[int, int]:
    return instance if isinstance(instance, tuple) else (instance, instance)


def _window(name: str, chosen: pl.DataFrame, asked: str) -> PathWindow:
    if chosen.is_empty():
        message = f"{asked}: the first instance must not come after the last"
        raise InvalidOptionError(message)
    return PathWindow(name, chosen["start_ns"].min(), chosen["end_ns"].max(), chosen["track_id"][0])  # type: ignore[arg-type]  # never null


def _instances(rank_trace: RankTrace, annotation: str) -> pl.DataFrame:
    """Return the host ranges with this name or, if there are none, with names that contain it; sorted by start."""
    ranges = event_ranges(rank_trace, _NAMED_KINDS, ["name", "start_ns", "end_ns", "track_id"])
    used = ranges["name"].unique()
    texts = rank_trace.texts(used)
    ids = used.filter(texts == annotation)
    if ids.is_empty():
        ids = used.filter(texts.str.contains(annotation, literal=True))
    if ids.is_empty():
        raise InvalidOptionError(_no_annotation(rank_trace, annotation, texts.drop_nulls().to_list()))
    return ranges.filter(pl.col("name").is_in(ids.implode())).sort("start_ns", "end_ns")


def _no_annotation(rank_trace: RankTrace, annotation: str, names: Iterable[str]) -> str:
    by_lower_case = {name.lower(): name for name in sorted(names)}
    near = get_close_matches(annotation.lower(), by_lower_case, n=_NAMES_LISTED, cutoff=0.4)
    nearest = ", ".join(repr(by_lower_case[name]) for name in near)
    hint = f"the nearest names: {nearest}" if near else "no name is similar"
    return f"rank {rank_trace.rank} has no annotation or operator {annotation!r}; {hint}"


def _listed(numbers: list[int]) -> str:
    if len(numbers) <= _NUMBERS_LISTED:
        return ", ".join(map(str, numbers))
    return f"{', '.join(map(str, numbers[: _NUMBERS_LISTED - 1]))}, … {numbers[-1]}"
