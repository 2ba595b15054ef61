"""Find when a rank runs forward passes, backward passes and the optimizer, and when it loads data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import Intervals, concatenated, holding, intervals_of, union, union_of
from holotrace.algorithms.nested.nesting import NO_PARENT, nearest_above
from holotrace.enrich.across_ranks.exposed import uncovered
from holotrace.enrich.across_ranks.forward_calls import BACKWARD
from holotrace.enrich.device.launches import launched_work
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.schema import EventKind, KernelKind
from holotrace.store.trace import RankTrace

_ACTION = r"^PP:(\d+)(F|B|I|W)(\d+)$"
"""Annotations of torch.distributed.pipelining's schedules: `PP:2F0` means model chunk 2, forward, microbatch 0.

Source: https://github.com/pytorch/pytorch/blob/main/torch/distributed/pipelining/schedules.py
"""

_KIND_OF_ACTION = {
    "F": "forward-compute",
    "B": "backward-compute",
    "I": "backward-compute",
    "W": "weight-compute",
}
_KIND_OF_NAME = (
    (r"^enumerate\(Data(Loader|Pipe)\)#", "data-loading"),
    (r"^Optimizer\.", "optimizer"),
    (BACKWARD, "backward-compute"),
)
_COMMUNICATES = r"^(_?c10d|_?c10d_functional(_autograd)?|gloo|nccl|mpi|ucc)(::|:)|^record_param_comms"
_MESSAGE = r"^\w+:(send|recv)"
"""The annotation of a send or receive lasts until the host waits for the message, and may contain host computation."""

_HOST_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)

_NO_ACTION = -1


class Phases(NamedTuple):
    """The computation of a rank.

    table  disjoint intervals in time order: start_ns, end_ns, kind (from `table.KINDS`), action (int64; number
           of the pass among the annotated passes of the pipeline's schedule, -1 without an annotation), global_chunk
           and microbatch (both null without an annotation)
    busy   disjoint intervals in which the devices compute or the host loads data; if there are no computation kernels,
           intervals in which innermost operators run (the operators around them are ignored, because they may contain
           waits) or the host loads data
    """

    table: pl.DataFrame
    busy: Intervals


def phases(rank_trace: RankTrace) -> Phases:
    """Return when a rank's devices (or, without computation kernels, its host) compute, and in which phase.

    If the pipeline's schedule is annotated, the annotations show which pass runs. Otherwise, operators that the
    autograd engine runs belong to the backward pass, and operators outside both the engine and the optimizer belong to
    the forward pass. A kernel belongs to the phase in which the host launched it. Data loading on the host is included
    only while no computation kernel runs.
    """
    ranges = _ranges_by_kind(rank_trace)
    host = _of_host(_actions(rank_trace), ranges)
    work = launched_work(rank_trace).filter(pl.col("kernel_kind") == KernelKind.COMPUTATION)
    if len(work):
        table = _of_devices(work, host)
        return Phases(table, union_of(table))
    loading = next(intervals for kind, intervals in ranges if kind == "data-loading")
    return Phases(host, union(*concatenated((_innermost_operators(rank_trace), loading))))


def _of_host(actions: pl.DataFrame, ranges: Iterable[tuple[str, Intervals]]) -> pl.DataFrame:
    """Return the phases of the host.

    Where phases overlap, the time belongs to the annotated pass or, without one, to the first overlapping kind in
    `ranges`.
    """
    tables = [actions]
    taken = union_of(actions)
    for kind, intervals in ranges:
        tables.append(_table(uncovered(intervals, taken), kind))
        taken = union(*concatenated((taken, intervals)))
    return pl.concat(tables).sort("start_ns")


def _ranges_by_kind(rank_trace: RankTrace) -> list[tuple[str, Intervals]]:
    texts = rank_trace.strings
    named = [(kind, texts.str.contains(pattern)) for pattern, kind in _KIND_OF_NAME]
    ranges = [(kind, _ranges(rank_trace, _HOST_KINDS, is_named)) for kind, is_named in named]
    others = _ranges(rank_trace, [EventKind.CPU_OP], ~texts.str.contains(_COMMUNICATES))
    return [*ranges, ("forward-compute", others)]


def _ranges(rank_trace: RankTrace, kinds: tuple[EventKind, ...] | list[EventKind], chosen: pl.Series) -> Intervals:
    names = chosen.arg_true().cast(pl.UInt32)
    found = event_ranges(rank_trace, kinds, ["start_ns", "end_ns"], names=names)
    return found["start_ns"].to_numpy(), found["end_ns"].to_numpy()


def _innermost_operators(rank_trace: RankTrace) -> Intervals:
    """Return when the host runs innermost operators that neither communicate nor are inside a collective."""
    nodes = host_nodes(rank_trace)
    parent = nodes["parent"].to_numpy()
    is_operator = (nodes["node_class"] == NodeClass.OPERATOR).to_numpy()
    communicates, is_message = (_is_named(nodes, rank_trace, pattern) for pattern in (_COMMUNICATES, _MESSAGE))
    rows = np.flatnonzero(is_operator & ~communicates)
    outer = nearest_above(parent, is_operator, rows)
    has_inner = np.zeros(len(nodes), np.bool_)
    has_inner[outer[outer != NO_PARENT]] = True
    is_computation = nearest_above(parent, communicates & ~is_message, rows) == NO_PARENT
    return intervals_of(nodes[rows[~has_inner[rows] & is_computation]])


def _is_named(nodes: pl.DataFrame, rank_trace: RankTrace, pattern: str) -> npt.NDArray[np.bool_]:
    names = names_matching(rank_trace, pattern)
    return nodes["name"].is_in(names.implode()).to_numpy()


def _actions(rank_trace: RankTrace) -> pl.DataFrame:
    ids = names_matching(rank_trace, _ACTION)
    ranges = event_ranges(rank_trace, _HOST_KINDS, ["start_ns", "end_ns", "name"], names=ids).sort("start_ns")
    parts = rank_trace.texts(ranges["name"]).str.extract_groups(_ACTION)
    table = ranges.drop("name").with_columns(
        parts.struct.field("2").replace_strict(_KIND_OF_ACTION, return_dtype=pl.String).alias("kind"),
        pl.int_range(pl.len(), dtype=pl.Int64).alias("action"),
        parts.struct.field("1").cast(pl.Int64, strict=False).alias("global_chunk"),
        parts.struct.field("3").cast(pl.Int64, strict=False).alias("microbatch"),
    )
    ends_before = pl.col("end_ns").cum_max().shift(1).fill_null(0)
    disjoint = table.with_columns(pl.max_horizontal("start_ns", ends_before).alias("start_ns"))
    return disjoint.filter(pl.col("end_ns") > pl.col("start_ns"))


def _table(intervals: Intervals, kind: str) -> pl.DataFrame:
    return pl.DataFrame({"start_ns": intervals[0], "end_ns": intervals[1]}).with_columns(
        pl.lit(kind).alias("kind"),
        pl.lit(_NO_ACTION, pl.Int64).alias("action"),
        pl.lit(None, pl.Int64).alias("global_chunk"),
        pl.lit(None, pl.Int64).alias("microbatch"),
    )


def _of_devices(work: pl.DataFrame, host: pl.DataFrame) -> pl.DataFrame:
    kernels = _disjoint(work.sort("start_ns"))
    rows = pl.Series(holding(intervals_of(host), kernels["launch_start_ns"].fill_null(-1).to_numpy()))
    launched_in = rows.replace(-1, None).cast(pl.UInt32)
    computed = kernels.select("start_ns", "end_ns").with_columns(
        host["kind"].gather(launched_in).fill_null("forward-compute"),
        host["action"].gather(launched_in).fill_null(_NO_ACTION),
        host["global_chunk"].gather(launched_in),
        host["microbatch"].gather(launched_in),
    )
    loading = host.filter(pl.col("kind") == "data-loading")
    exposed = uncovered(intervals_of(loading), intervals_of(computed))
    return pl.concat([computed, _table(exposed, "data-loading")]).sort("start_ns")


def _disjoint(sorted_work: pl.DataFrame) -> pl.DataFrame:
    """Cut off the part of each kernel during which an earlier kernel is still running."""
    ends_before = pl.col("end_ns").cum_max().shift(1).fill_null(0)
    cut = sorted_work.with_columns(pl.max_horizontal("start_ns", ends_before).alias("start_ns"))
    return cut.filter(pl.col("end_ns") > pl.col("start_ns"))
