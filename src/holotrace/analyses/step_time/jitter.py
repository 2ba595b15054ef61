"""Compare each step with the typical step of its rank, and find which category and event took longer than usual."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, nesting
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.host_names import without_addresses
from holotrace.enrich.job.outliers import stands_out
from holotrace.enrich.steps.step_roles import role_events
from holotrace.enrich.steps.steps import rows_of_windows
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

JITTER = pl.Schema(
    {
        "rank": pl.Int32(),
        "step": pl.Int64(),
        "step_kind": pl.String(),
        "duration_ns": pl.Int64(),
        "typical_ns": pl.Int64(),
        "excess_ns": pl.Int64(),
        "category": pl.String(),
        "category_excess_ns": pl.Int64(),
        "event": pl.String(),
        "event_excess_ns": pl.Int64(),
    }
)
"""Columns of `StepTime.jitter`."""

_PART = "_part_ns"


def jitter(rank_trace: RankTrace, per_step: pl.DataFrame) -> pl.DataFrame:
    """Compare the steps of a rank with its typical step.

    Args:
        rank_trace: the rank.
        per_step: `StepTime.per_step` of the rank.

    Returns:
        A table with the columns `JITTER` and one row for each row of `per_step`, in the same order.
    """
    if per_step.is_empty():
        return JITTER.to_frame()
    kinds = per_step.with_columns(_step_kind(stands_out(per_step, "duration_ns", ["rank"])))
    typical = kinds.filter(pl.col("step_kind") == "steady").select(pl.col("^.*_ns$").median().round().cast(pl.Int64))
    steps = _with_category(kinds, typical).with_row_index("row")
    return steps.join(_grown_events(rank_trace, steps), on="row", how="left", maintain_order="left").select(*JITTER)


def _step_kind(is_long: pl.Series) -> pl.Series:
    """Classify steps: long steps at the beginning are `warm-up`, later long steps `outlier`, and all other steps `steady`."""
    is_first = is_long.cum_sum() == pl.int_range(1, len(is_long) + 1, eager=True)
    kind = pl.when(is_first).then(pl.lit("warm-up")).when(is_long).then(pl.lit("outlier")).otherwise(pl.lit("steady"))
    return pl.select(kind.alias("step_kind")).to_series()


def _with_category(kinds: pl.DataFrame, typical: pl.DataFrame) -> pl.DataFrame:
    """Add the typical duration, the excess over it, and the category whose time exceeds its typical time by the most."""
    parts = [name for name in kinds.columns if name.endswith(_PART)]
    excess = kinds.select(pl.col(part) - typical.item(0, part) for part in parts).to_numpy()
    largest = excess.argmax(axis=1)
    most = pl.Series("category_excess_ns", excess[np.arange(len(excess)), largest], pl.Int64)
    category = pl.Series("category", [parts[column].removesuffix(_PART) for column in largest], pl.String)
    typical_ns = pl.lit(typical.item(0, "duration_ns"), pl.Int64).alias("typical_ns")
    known = kinds.with_columns(typical_ns, most.set(most <= 0, None), category.set(most <= 0, None))
    return known.with_columns((pl.col("duration_ns") - pl.col("typical_ns")).alias("excess_ns"))


def _grown_events(rank_trace: RankTrace, steps: pl.DataFrame) -> pl.DataFrame:
    """Return, for warm-up and outlier steps, the event whose time exceeds its typical time by the most, and this excess."""
    is_steady = (steps["step_kind"] == "steady").to_numpy()
    found: list[tuple[int, str, int]] = []
    for (category,), apart in steps.filter(pl.col("step_kind") != "steady").group_by("category"):
        times = _with_equal_names(rank_trace, _times_by_name(rank_trace, steps, category))
        grown = (_grown_event(times, is_steady, row) for row in apart["row"])
        found += [
            (row, without_addresses(rank_trace.strings[[name]]).item(), excess_ns)
            for row, name, excess_ns in grown
            if excess_ns > 0
        ]
    return pl.DataFrame(found, {"row": pl.UInt32, "event": pl.String, "event_excess_ns": pl.Int64}, orient="row")


def _with_equal_names(rank_trace: RankTrace, times: pl.DataFrame) -> pl.DataFrame:
    """Give the same string id to names that differ only in an object's address, which changes from step to step."""
    ids = times["name"].unique().to_frame()
    texts = ids.with_columns(without_addresses(rank_trace.texts(ids["name"])).alias("text"))
    first = texts.with_columns(pl.col("name").min().over("text").alias("first"))
    return times.with_columns(times["name"].replace_strict(first["name"], first["first"], return_dtype=pl.UInt32))


def _grown_event(times: pl.DataFrame, is_steady: npt.NDArray[np.bool_], row: int) -> tuple[int, int, int]:
    """Return three values: `row`; the event whose time in step `row` is furthest above its median; and this excess."""
    names = times.filter(pl.col("row") == row)["name"].unique().sort()
    if names.is_empty():
        return row, 0, 0
    known = times.filter(pl.col("name").is_in(names.implode()))
    spent = np.zeros((len(is_steady), len(names)), np.int64)
    np.add.at(
        spent, (known["row"].to_numpy(), names.search_sorted(known["name"]).to_numpy()), known["self_ns"].to_numpy()
    )
    excess = spent[row] - np.median(spent[is_steady], axis=0).round().astype(np.int64)
    most = int(excess.argmax())
    return row, names[most], int(excess[most])


def _times_by_name(rank_trace: RankTrace, steps: pl.DataFrame, category: object) -> pl.DataFrame:
    """Return name, row (of the step in which the event begins) and self_ns of the events of a category.

    The events of the category `other` are Python functions, if these were recorded.
    """
    events = pl.concat([_with_self_time(table) for table in _events(rank_trace, category)])
    rows = pl.Series("row", rows_of_windows(steps, events["start_ns"].to_numpy()))
    return events.select("name", "self_ns").with_columns(rows).filter(pl.col("row") >= 0)


def _events(rank_trace: RankTrace, category: object) -> Sequence[pl.DataFrame]:
    if not isinstance(category, str) or category == "other":
        return [event_ranges(rank_trace, [EventKind.PYTHON_FUNCTION], ["name", "start_ns", "end_ns", "track_id"])]
    return role_events(rank_trace)[category]


def _with_self_time(events: pl.DataFrame) -> pl.DataFrame:
    """Add self_ns: the duration without inner events of the same thread; on a device, the full duration."""
    times = events.select("name", "start_ns", (pl.col("end_ns") - pl.col("start_ns")).alias("self_ns"))
    if "track_id" not in events.columns:
        return times
    columns = (events[column].to_numpy() for column in ("track_id", "start_ns", "end_ns"))
    return times.with_columns(
        pl.Series("self_ns", _without_inner(times["self_ns"].to_numpy(), nesting(*columns).parent))
    )


def _without_inner(duration_ns: npt.NDArray[np.int64], parent: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    inner = parent != NO_PARENT
    own = duration_ns.copy()
    np.subtract.at(own, parent[inner], duration_ns[inner])
    return own
