"""The partial result of one rank: its calls, the modules that requested them, its exposed communication, and its steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import Intervals, covered_before
from holotrace.algorithms.nested.nesting import NO_PARENT, nearest_above
from holotrace.analyses.parallelism.grouped_products import grouped_products
from holotrace.enrich.across_ranks.axes import DDP, DDP_ANNOTATION, FSDP_ANNOTATION
from holotrace.enrich.across_ranks.exposed import uncovered
from holotrace.enrich.across_ranks.forward_calls import in_forward
from holotrace.enrich.across_ranks.matching.calls import OfRank, of_rank
from holotrace.enrich.collectives.collectives import answers, communication
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import gathered, of_events, rows_of_events
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.enrich.host.operators import launching_operator
from holotrace.enrich.steps.step_roles import roles
from holotrace.enrich.steps.steps import device_extended_windows, rows_of_windows
from holotrace.schema import EventKind
from holotrace.store.tables.packed_tables import reduced
from holotrace.store.trace import RankTrace

_MODULE = r"^nn\.Module: "
_COMMUNICATION_OPERATOR = r"^c10d::"
_GRADIENT_READY = r"torch::autograd::AccumulateGrad"
"""Operators in which DDP's hooks run; the hook of a bucket's last gradient starts the reduction of this bucket.

Source: https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/reducer.cpp
"""


class ParallelRank(NamedTuple):
    """The partial result of one rank.

    communicating  the calls of the rank, to match them with the calls of other ranks
    steps          step, start_ns, end_ns, computation_ns
    exposed        step (null if none), start_ns, end_ns: communication that computation does not hide
    asked_by       event_index, module: the FSDP unit or module that requested the call (null if unknown), in_forward: whether
                   the host requested the call in the forward pass (null if unknown)
    tokens         event_index, sent_rows, received_rows of all-to-alls with recorded splits
    products       see `holotrace.analyses.parallelism.grouped_products`
    """

    communicating: OfRank
    steps: pl.DataFrame
    exposed: pl.DataFrame
    asked_by: pl.DataFrame
    tokens: pl.DataFrame
    products: pl.DataFrame

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the tables in compressed form."""
        return reduced(self)


def parallel_rank(rank_trace: RankTrace) -> ParallelRank:
    """Return the partial result of one rank."""
    communicating = of_rank(rank_trace)
    computation = _computation(rank_trace)
    within = device_extended_windows(rank_trace)
    times = communicating.calls["start_ns"].to_numpy(), communicating.calls["end_ns"].to_numpy()
    starts, ends = within["start_ns"].to_numpy(), within["end_ns"].to_numpy()
    computed = covered_before(computation, ends) - covered_before(computation, starts)
    return ParallelRank(
        communicating,
        within.rename({"window": "step"}).with_columns(pl.Series("computation_ns", computed)),
        _by_step(uncovered(times, computation), within),
        _asked_by(rank_trace, communicating.calls),
        _tokens(rank_trace),
        grouped_products(rank_trace),
    )


def _computation(rank_trace: RankTrace) -> Intervals:
    """Return the intervals in which the rank computes on its devices or, if it has no kernels, in host operators."""
    of_role = roles(rank_trace)
    return of_role["kernel"] if len(of_role["kernel"][0]) else of_role["cpu"]


def _by_step(exposed: Intervals, within: pl.DataFrame) -> pl.DataFrame:
    """Cut exposed ranges at step boundaries, and add the step of each range."""
    edges = np.concatenate([within["start_ns"].to_numpy(), within["end_ns"].to_numpy()])
    is_inside = covered_before(exposed, edges + 1) > covered_before(exposed, edges)
    starts = np.sort(np.concatenate([exposed[0], edges[is_inside]]))
    ends = np.sort(np.concatenate([exposed[1], edges[is_inside]]))
    pieces = pl.DataFrame({"start_ns": starts, "end_ns": ends}).filter(pl.col("end_ns") > pl.col("start_ns"))
    rows = rows_of_windows(within, pieces["start_ns"].to_numpy())
    return pieces.select(gathered(within["window"], rows).alias("step"), "start_ns", "end_ns")


def _asked_by(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.DataFrame:
    """Return the innermost FSDP annotation or module around each call's operator, and whether the call is in the forward pass."""
    nodes = host_nodes(rank_trace)
    parent, operators = nodes["parent"].to_numpy(), rows_of_events(nodes, _asking_operators(rank_trace, calls))
    is_unit = (nodes["node_class"] == NodeClass.MODULE) | _is_named(rank_trace, nodes, FSDP_ANNOTATION)
    units = gathered(nodes["name"], nearest_above(parent, is_unit.to_numpy(), operators))
    names = rank_trace.texts(units).str.replace(_MODULE, "")
    is_of_ddp = _is_named(rank_trace, nodes, _GRADIENT_READY) & _is_named(rank_trace, nodes, DDP_ANNOTATION).any()
    asked_by_ddp = pl.Series(nearest_above(parent, is_of_ddp.to_numpy(), operators) != NO_PARENT)
    modules = names.set(names.is_null() & asked_by_ddp, DDP).alias("module")
    return pl.DataFrame([calls["event_index"], modules, in_forward(rank_trace, calls["asked_ns"])])


def _asking_operators(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.Series:
    """Return the operator that launched each call; for host calls, the c10d operator that began at the same time."""
    launched = of_events(launching_operator(rank_trace), calls["event_index"])["operator_index"]
    names = names_matching(rank_trace, _COMMUNICATION_OPERATOR)
    operators = event_ranges(rank_trace, [EventKind.CPU_OP], ["event_index", "start_ns"], names=names)
    first = operators.unique("start_ns", keep="first")
    joined = calls.join(first, left_on="asked_ns", right_on="start_ns", how="left", maintain_order="left", suffix="_of")
    return launched.zip_with(launched.is_not_null(), joined["event_index_of"])


def _is_named(rank_trace: RankTrace, nodes: pl.DataFrame, pattern: str) -> pl.Series:
    return nodes["name"].is_in(names_matching(rank_trace, pattern).implode())


def _tokens(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the number of rows that each all-to-all with recorded splits sends and receives; in MoE layers, a row is a token."""
    calls = communication(rank_trace).filter(pl.col("family") == "all_to_all")
    columns = {"in_split_sizes": "sent_rows", "out_split_sizes": "received_rows"}
    table = rank_trace.table("collectives", ["event_index", *columns])
    splits = of_events(table, calls["described_index"]).select(*columns)
    rows = [answers(rank_trace.texts(splits[name]), _sum_of_splits, pl.Int64).alias(to) for name, to in columns.items()]
    return pl.DataFrame([calls["event_index"], *rows]).drop_nulls()


def _sum_of_splits(text: str | None) -> int | None:
    """Return the sum of split sizes such as `[3, 5]`; None if the list is empty or was truncated by the profiler."""
    if text is None or "..." in text:
        return None
    numbers = [int(number) for number in text.strip("[] ").split(",") if number.strip().isdecimal()]
    return sum(numbers) if numbers else None
