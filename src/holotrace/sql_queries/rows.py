"""Compute the rows of the SQL views, usually one rank at a time, from the same tables that the analyses use."""

from __future__ import annotations

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above, nearest_above
from holotrace.enrich.across_ranks.job_calls import job_calls
from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.enrich.collectives.collectives import IS_POINT_TO_POINT, communication
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.device.launches import asked_for, launched_work, of_work
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import gathered, of_events, rows_of_events
from holotrace.enrich.graph_attribution.grafted_tables import described_events
from holotrace.enrich.graph_attribution.grafts import grafts
from holotrace.enrich.host.annotations import annotation_of_work, device_annotations, host_annotations
from holotrace.enrich.host.call_stack import CALL_KINDS, call_stacks
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.enrich.host.node_times import node_times
from holotrace.enrich.host.operators import launching_operator
from holotrace.enrich.host.source_lines import lines_of_events
from holotrace.enrich.inference.inference_steps import inference_steps
from holotrace.enrich.kernels.kernel_calls import kernel_calls
from holotrace.enrich.memory.memory_events import memory_events, nodes_of_memory_events
from holotrace.enrich.steps.steps import device_extended_windows, steps, window_of, windows
from holotrace.enrich.trust.job_doubts import doubts_by_rank, doubts_table, examined_rank
from holotrace.execution.executor import Executor
from holotrace.schema import DEVICE_WORK_KINDS, LAUNCH_KINDS, EventKind, KernelKind
from holotrace.store.derived import derived
from holotrace.store.header import rank_or_none
from holotrace.store.trace import RankTrace, Trace

_KERNEL_KINDS = {int(kind): kind.name.lower() for kind in KernelKind}
_EVENT_KINDS = {int(kind): kind.name.lower() for kind in EventKind}
_DURATION = (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns")


def rank_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return this rank's row in the view `ranks`."""
    header, health = rank_trace.header, rank_trace.health
    kinds = set(EventKind) - {EventKind.INSTANT, EventKind.MEMORY}
    span = event_ranges(rank_trace, kinds, ["start_ns", "end_ns"])
    devices = header.device_properties
    row = {
        "source": rank_trace.source,
        "host_name": header.host_name,
        "world_size": rank_or_none(header.world_size),
        "backend": header.backend,
        "device_name": next((str(device["name"]) for device in devices if "name" in device), None),
        "device_count": len(devices),
        "event_count": sum(rank_trace.event_counts().values()),
        "device_work_count": len(device_work(rank_trace)),
        **header.options,
        "is_clean": health.is_clean,
    }
    bounds = span.select(pl.col("start_ns").min(), pl.col("end_ns").max()).with_columns(_DURATION)
    return pl.DataFrame([row], infer_schema_length=None).hstack(bounds)


def device_work_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `device_work`."""
    copies = rank_trace.table("copies", ["event_index", "bytes"])
    return _work(rank_trace).join(copies, on="event_index", how="left", maintain_order="left")


def kernel_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `kernels`."""
    shapes = kernel_calls(rank_trace).drop("name", "start_ns", "end_ns", "device")
    return _work(rank_trace).join(shapes, on="event_index", how="inner", maintain_order="left")


def launch_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `launches`, sorted by start."""
    replayed = grafts(rank_trace).owners["event_index"]
    work = _work(rank_trace).with_columns(is_replayed=pl.col("event_index").is_in(replayed.implode()))
    work = work.filter(pl.col("launch_index").is_not_null())
    launched = work.group_by("launch_index").agg(
        pl.len().cast(pl.Int64).alias("work_count"),
        pl.col("duration_ns").sum().alias("work_ns"),
        pl.col("start_ns").min().alias("first_start_ns"),
        pl.col("operator_index").filter(~pl.col("is_replayed")).first(),
    )
    calls = event_ranges(rank_trace, LAUNCH_KINDS, ["event_index", "name", "start_ns", "end_ns", "track_id"])
    rows = calls.join(launched, left_on="event_index", right_on="launch_index", maintain_order="left")
    operator_index = rows["operator_index"].zip_with(
        rows["operator_index"].is_not_null(), _around(rank_trace, rows["event_index"])
    )
    named = rows.with_columns(
        rank_trace.texts(rows["name"]),
        _thread(rank_trace, rows["track_id"]),
        operator_index,
        _name_of(rank_trace, operator_index).alias("operator"),
    )
    return named.with_columns(_DURATION, launch_delay_ns=pl.col("first_start_ns") - pl.col("end_ns")).sort("start_ns")


def _around(rank_trace: RankTrace, calls: pl.Series) -> pl.Series:
    """Return the innermost operator around each call."""
    stacks = call_stacks(rank_trace)
    is_operator = (stacks["kind"] == EventKind.CPU_OP).to_numpy()
    around = nearest_above(stacks["parent_row"].to_numpy(), is_operator, rows_of_events(stacks, calls))
    return gathered(stacks["event_index"], around)


def operator_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `operators`, sorted by thread and start."""
    nodes = host_nodes(rank_trace)
    parent, is_operator = nodes["parent"].to_numpy(), nodes["is_counted"].to_numpy()
    rows = np.flatnonzero(is_operator)
    chosen = nodes[rows].hstack(node_times(rank_trace)[rows])
    around = pl.Series(nearest_above(parent, is_operator, rows)).replace(NO_PARENT, None)
    inputs = described_events(rank_trace, "operator_inputs", ["event_index", "input_dims", "input_types"])
    described = chosen.join(inputs, on="event_index", how="left", maintain_order="left")
    return described.with_columns(
        _DURATION,
        rank_trace.texts(described["name"]),
        rank_trace.texts(described["input_dims"]),
        rank_trace.texts(described["input_types"]),
        nodes["event_index"].gather(around).alias("parent_index"),
        _thread(rank_trace, described["tree"]),
        _step(rank_trace, described["start_ns"]),
    )


def source_line_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `source_lines`, in the order of the events in the file."""
    kinds = (*CALL_KINDS, EventKind.PYTHON_FUNCTION, *DEVICE_WORK_KINDS)
    events = event_ranges(rank_trace, kinds, ["event_index", "start_ns", "end_ns", "kind", "name"])
    known = events.hstack(lines_of_events(rank_trace, events["event_index"])).drop_nulls("source_line")
    kind = known["kind"].replace_strict(_EVENT_KINDS, return_dtype=pl.String).alias("kind")
    return known.with_columns(_DURATION, kind, rank_trace.texts(known["name"]).alias("name"))


def collective_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `collectives`, sorted by start."""
    collectives = communication(rank_trace)
    return collectives.with_columns(
        _DURATION,
        _step(rank_trace, collectives["asked_ns"]),
        IS_POINT_TO_POINT.alias("is_point_to_point"),
        collective=pl.col("family"),
        bytes=pl.col("byte_count"),
        process_group=pl.col("group"),
        communication_id=pl.when(pl.col("communication_id") != 0).then("communication_id"),
    )


def matched_collective_rows(trace: Trace, executor: Executor) -> pl.DataFrame:
    """Return the rows of the view `matched_collectives` for all ranks, with a column `rank`."""
    return job_calls(trace.map(of_rank, executor)).calls


def doubt_rows(trace: Trace, executor: Executor) -> pl.DataFrame:
    """Return the rows of the view `doubts` for all ranks, with a column `rank`."""
    return doubts_table(doubts_by_rank(trace.map(examined_rank, executor)))


def memory_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `memory`, sorted by device and time."""
    events, nodes = memory_events(rank_trace), host_nodes(rank_trace)
    is_operator = (nodes["node_class"] == NodeClass.OPERATOR).to_numpy()
    around = itself_or_above(nodes["parent"].to_numpy(), is_operator, nodes_of_memory_events(rank_trace))
    node = pl.Series(around).replace(NO_PARENT, None)
    return events.with_columns(
        _thread(rank_trace, events["track_id"]),
        nodes["event_index"].gather(node).alias("operator_index"),
        rank_trace.texts(nodes["name"].gather(node)).alias("operator"),
    )


def step_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `steps`, sorted by start."""
    if steps(rank_trace).is_empty():
        return pl.DataFrame()
    with_work = device_extended_windows(rank_trace).rename(
        {"start_ns": "with_work_start_ns", "end_ns": "with_work_end_ns"}
    )
    rows = windows(rank_trace).join(with_work, on="window", how="left", maintain_order="left")
    return rows.with_columns(_DURATION, step=pl.col("window"))


def inference_step_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `inference_steps`, sorted by start, each with its time range on the host."""
    table = inference_steps(rank_trace).table
    return table.with_columns(_DURATION, inference_step=pl.int_range(pl.len(), dtype=pl.Int64))


def annotation_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `annotations`: first annotations on the host, then those on the devices."""
    host, device = host_annotations(rank_trace), device_annotations(rank_trace)
    on_host = host.with_columns(_thread(rank_trace, host["track_id"]), is_on_device=pl.lit(value=False))
    both = pl.concat([on_host, device.with_columns(is_on_device=pl.lit(value=True))], how="diagonal_relaxed")
    return both.with_columns(_DURATION, rank_trace.texts(both["name"]))


@derived
def _work(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the columns that `device_work` and `kernels` have in common."""
    work = launched_work(rank_trace)
    around = of_work(launching_operator(rank_trace), work)
    kinds = rank_trace.events_of(DEVICE_WORK_KINDS, ["event_index", "kind"])
    asked_ns = of_work(asked_for(rank_trace), work)["asked_ns"]
    return work.join(kinds, on="event_index", how="left", maintain_order="left").with_columns(
        _DURATION,
        rank_trace.texts(work["name"]),
        pl.col("kernel_kind").replace_strict(_KERNEL_KINDS, return_dtype=pl.String),
        pl.col("kind").replace_strict(_EVENT_KINDS, return_dtype=pl.String).alias("event_kind"),
        (pl.col("start_ns") - pl.col("launch_end_ns")).alias("launch_delay_ns"),
        around["operator_index"],
        _name_of(rank_trace, around["operator_index"]).alias("operator"),
        around["top_operator_index"],
        _name_of(rank_trace, around["top_operator_index"]).alias("top_operator"),
        _step(rank_trace, asked_ns),
        rank_trace.texts(annotation_of_work(rank_trace)["annotation"]),
    )


def _name_of(rank_trace: RankTrace, operator_index: pl.Series) -> pl.Series:
    return rank_trace.texts(of_events(call_stacks(rank_trace).select("event_index", "name"), operator_index)["name"])


def _thread(rank_trace: RankTrace, track_id: pl.Series) -> pl.Series:
    """Return the thread of each track, as written in the file."""
    tracks = rank_trace.table("tracks", ["thread_id", "thread_text"])
    written = rank_trace.texts(tracks["thread_text"])
    threads = pl.select(pl.coalesce(written, tracks["thread_id"].cast(pl.String)).alias("thread")).to_series()
    return threads.gather(track_id.cast(pl.UInt32))


def _step(rank_trace: RankTrace, times_ns: pl.Series) -> pl.Series:
    if steps(rank_trace).is_empty():
        return pl.Series("step", [None] * len(times_ns), pl.Int64)
    return window_of(windows(rank_trace), times_ns).alias("step")
