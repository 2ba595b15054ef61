"""Read events as the TensorBoard plugin did: with its types, its order and its float times."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.host.host_names import LIGHTNING_MODULE_PREFIX, LIGHTNING_PROFILE_PREFIX
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace


class PluginType(IntEnum):
    """The type that the plugin assigns to an event."""

    IGNORED = 0
    TRACE = 1
    OPERATOR = 2
    RUNTIME = 3
    KERNEL = 4
    MEMCPY = 5
    MEMSET = 6
    PYTHON = 7
    PYTHON_FUNCTION = 8
    USER_ANNOTATION = 9
    MODULE = 10
    STEP = 11
    LIGHTNING_MODULE = 12
    LIGHTNING_PROFILE = 13


DEVICE_TYPES = (PluginType.KERNEL, PluginType.MEMCPY, PluginType.MEMSET)

COLLECTIVE_NAMES = tuple(
    f"{library}:{name}"
    for library in ("nccl", "gloo")
    for name in ("broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter")
)
"""The only collectives that the plugin recognised, by exact name."""

_TYPE_OF_CATEGORY = {
    "trace": PluginType.TRACE,
    "cpu_op": PluginType.OPERATOR,
    "operator": PluginType.OPERATOR,
    "runtime": PluginType.RUNTIME,
    "cuda_runtime": PluginType.RUNTIME,
    "mtia_runtime": PluginType.RUNTIME,
    "glow_runtime": PluginType.RUNTIME,
    "xpu_runtime": PluginType.RUNTIME,
    "privateuse1_runtime": PluginType.RUNTIME,
    "kernel": PluginType.KERNEL,
    "memcpy": PluginType.MEMCPY,
    "gpu_memcpy": PluginType.MEMCPY,
    "memset": PluginType.MEMSET,
    "gpu_memset": PluginType.MEMSET,
    "python": PluginType.PYTHON,
    "python_function": PluginType.PYTHON_FUNCTION,
    "user_annotation": PluginType.USER_ANNOTATION,
    "gpu_user_annotation": PluginType.USER_ANNOTATION,
}
"""Types by category in lower case; the plugin ignored all other categories, such as driver calls."""

_COLUMNS = [
    *("event_index", "start_ns", "duration_ns", "category", "name", "track_id", "device", "correlation", "external_id"),
]
_LATE_END_NS = 86_400_000_000
"""86.4 s: the plugin's authors meant a day (86,400,000 ms), but the file's times are in microseconds."""

_STEP_NUMBER = r"#(\d+)"


@derived
def plugin_events(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the events that have a duration and that the plugin did not ignore.

    The plugin's times are floats in microseconds; `baseTimeNanoseconds` is not added. Today's timestamps are so large
    that neighbouring floats are 0.25 µs apart, so events that are nested in the file can overlap here. The thread of a
    device row is its stream.

    Returns:
        Sorted by start_us, equal starts in file order:

        event_index         uint32
        type                uint8    PluginType
        name                uint32   string id
        start_us, end_us    float64
        start_ns, end_ns    int64    start_us and end_us, rounded to nanoseconds
        track_id            uint32
        thread              int64    tid; null if it is not a number
        device              int32    null if there is none
        correlation         int64    null if there is none
        external_id         int64    null for modules and for events without an external id
        step                int64    N of ProfilerStep#N; null for other types
    """
    events = _without_late_end(rank_trace, rank_trace.table("events", _COLUMNS))
    types = _types(rank_trace, events)
    kept = events.with_columns(pl.Series("type", types)).filter(types != PluginType.IGNORED)
    base_time_ns = rank_trace.header.base_time_ns
    start_us = _float_microseconds(kept["start_ns"].to_numpy() - base_time_ns)
    end_us = start_us + kept["duration_ns"].to_numpy() / 1_000
    is_module = pl.col("type") == PluginType.MODULE
    thread = rank_trace.table("tracks", ["thread_id"])["thread_id"].gather(kept["track_id"])
    step = pl.when(pl.col("type") == PluginType.STEP).then(_step_numbers(rank_trace, kept["name"]))
    return kept.select(
        "event_index",
        "type",
        "name",
        pl.Series("start_us", start_us),
        pl.Series("end_us", end_us),
        pl.Series("start_ns", _nanoseconds(start_us) + base_time_ns),
        pl.Series("end_ns", _nanoseconds(end_us) + base_time_ns),
        "track_id",
        thread.alias("thread"),
        "device",
        "correlation",
        pl.when(~is_module).then("external_id").alias("external_id"),
        step.alias("step"),
    ).sort("start_us", maintain_order=True)


@derived
def plugin_launches(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the runtime call that the plugin finds for each kernel, copy and memset.

    The plugin finds the last call that has the same correlation as the work and begins no later than the work. If all
    calls with this correlation begin after the work, the plugin finds the first of them. For work without a
    correlation, the plugin searches in the same way among the calls without a correlation.

    Returns:
        In the order of `plugin_events`:

        row           uint32  row of the kernel, copy or memset in `plugin_events`
        runtime_row   uint32  row of the call in `plugin_events`; null if there is none
        event_index   uint32  event_index of the kernel, copy or memset
        type          uint8   PluginType
        launch_index  uint32  event_index of the call; null if there is none
    """
    events = plugin_events(rank_trace)
    both = events.with_row_index("row").filter(pl.col("type").is_in([PluginType.RUNTIME, *DEVICE_TYPES]))
    is_call = pl.col("type") == PluginType.RUNTIME
    call = pl.when(is_call).then("row")
    runtime_row = pl.coalesce(call.forward_fill().over("correlation"), call.backward_fill().over("correlation"))
    launched = both.with_columns(runtime_row.alias("runtime_row")).filter(~is_call)
    return launched.select(
        "row",
        "runtime_row",
        "event_index",
        "type",
        events["event_index"].gather(launched["runtime_row"]).alias("launch_index"),
    )


def rounded_ns(rank_trace: RankTrace, time_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Convert times to floating-point microseconds, as the plugin does, then round to the nearest nanosecond."""
    base_time_ns = rank_trace.header.base_time_ns
    return _nanoseconds(_float_microseconds(time_ns - base_time_ns)) + base_time_ns


def is_lightning(rank_trace: RankTrace) -> bool:
    """Whether PyTorch Lightning wrote the file; if so, the plugin ignored Python functions."""
    return rank_trace.header.raw.get("Framework") == "pytorch-lightning"


def _without_late_end(rank_trace: RankTrace, events: pl.DataFrame) -> pl.DataFrame:
    """Drop the event that marks the end of the recording if it is more than 86.4 s after the start.

    The plugin's authors intended a limit of one day, which is 86,400,000 ms, but the file's times are in microseconds.
    """
    end = events.filter(pl.col("name").is_in(_ids(rank_trace.strings == "Record Window End"))).tail(1)
    begin = events.filter(pl.col("name").is_in(_ids(rank_trace.strings.str.starts_with("Iteration Start:")))).tail(1)
    if end.is_empty() or begin.is_empty() or end["start_ns"][0] - begin["start_ns"][0] <= _LATE_END_NS:
        return events
    return events.filter(pl.col("event_index") != end["event_index"][0])


def _ids(chosen: pl.Series) -> pl.Series:
    return chosen.arg_true().cast(pl.UInt32).implode()


def _float_microseconds(written_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return times in microseconds as Python's JSON reader returns them: the double nearest to the decimal number.

    Whole microseconds fit into a double, and the fraction is correctly rounded, so the sum is correctly rounded too.
    """
    times: npt.NDArray[np.float64] = written_ns // 1_000 + (written_ns % 1_000) / 1_000
    return times


def _step_numbers(rank_trace: RankTrace, names: pl.Series) -> pl.Series:
    is_step = rank_trace.strings.str.starts_with("ProfilerStep#")
    ids = is_step.arg_true().cast(pl.UInt32)
    numbers = rank_trace.strings.gather(ids).str.extract(_STEP_NUMBER).cast(pl.Int64, strict=False)
    return names.replace_strict(ids, numbers, default=None, return_dtype=pl.Int64)


def _nanoseconds(time_us: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    whole = np.floor(time_us)
    return whole.astype(np.int64) * 1_000 + np.rint((time_us - whole) * 1_000).astype(np.int64)


def _types(rank_trace: RankTrace, events: pl.DataFrame) -> npt.NDArray[np.uint8]:
    by_category, names = _type_of_categories(rank_trace, events["category"]), rank_trace.strings
    types: npt.NDArray[np.uint8] = by_category[events["category"].fill_null(len(by_category) - 1).to_numpy()]
    is_named = names.str.starts_with("ProfilerStep#").to_numpy()[events["name"].to_numpy()]
    is_operator, is_annotation = types == PluginType.OPERATOR, types == PluginType.USER_ANNOTATION
    types[is_named & (is_operator | is_annotation)] = PluginType.STEP
    if is_lightning(rank_trace):
        types[types == PluginType.PYTHON_FUNCTION] = PluginType.IGNORED
        for prefix, own_type in (
            (LIGHTNING_PROFILE_PREFIX, PluginType.LIGHTNING_PROFILE),
            (LIGHTNING_MODULE_PREFIX, PluginType.LIGHTNING_MODULE),
        ):
            starts = names.str.starts_with(prefix).to_numpy()
            types[is_operator & starts[events["name"].to_numpy()]] = own_type
    elif (types == PluginType.PYTHON_FUNCTION).any():
        frames = rank_trace.table("python_frames", ["event_index", "python_module_id"]).drop_nulls()
        is_module = events["event_index"].is_in(frames["event_index"].implode()).to_numpy()
        types[is_module & (types == PluginType.PYTHON_FUNCTION)] = PluginType.MODULE
    return types


def _type_of_categories(rank_trace: RankTrace, category: pl.Series) -> npt.NDArray[np.uint8]:
    """Return the event type of each category, indexed by string id; the last entry is for events without a category."""
    by_id = np.zeros(len(rank_trace.strings) + 1, np.uint8)
    for string_id in category.unique().drop_nulls():
        by_id[string_id] = _TYPE_OF_CATEGORY.get(rank_trace.strings[string_id].lower(), PluginType.IGNORED)
    return by_id
