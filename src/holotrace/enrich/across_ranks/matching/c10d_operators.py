"""Finds the `c10d::` operators that request communication on the host, with their times and peers.

gloo's worker threads pick up collectives in the order of the requests, but some time later. Collectives on different
threads may therefore start in an order that differs from the order of the requests. The annotation of a send or receive
begins inside its operator and ends after it.
"""

from __future__ import annotations

import json
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.innermost import NO_OWNER
from holotrace.enrich.collectives.collectives import POINT_TO_POINT, answers, collective_family
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.host.annotations import innermost_of
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_OPERATOR = r"^c10d::"
_EXCHANGE = "c10d::alltoall_base_"
_IN_PLACE = ("all_reduce", "broadcast", "reduce", "send", "recv")
"""Operators of these families take their tensors as the first argument. All other operators take the outputs as the
first argument, and the inputs as the second.

Source: https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/Ops.cpp
"""

_MOST_DIGITS = 9
_MOST_ELEMENTS = 1 << 50
_PEER_IN_NAME = r"(?:->|<-) *(\d+)"
"""Pattern of the peer in `nccl:send 0->1` and `nccl:recv 0<-1`."""


def asked_by_operators(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.DataFrame:
    """For each call that the host itself performs, return the time, peer and tag of the operator that requested it.

    Args:
        rank_trace: the rank.
        calls: rows of `host_collectives`: event_index, family, start_ns.

    Returns:
        One row per call:

        asked_ns    int64  start of the operator; start of the call if the operator is unknown
        group_peer  int32  peer of a send or receive, as its number within the group; null if unknown
        tag         int64  null if unknown
    """
    operators, asked = _operators(rank_trace), _with_dims(rank_trace, calls)
    owners = _around(rank_trace, operators, asked)
    rows = pl.Series(np.where(owners == NO_OWNER, _in_order(operators, asked), owners)).replace(NO_OWNER, None)
    known = operators[["start_ns", "concrete_inputs"]][rows.cast(pl.UInt32)]
    is_point_to_point = calls["family"].is_in(POINT_TO_POINT)
    inputs = known["concrete_inputs"].set(~is_point_to_point, None)
    return pl.DataFrame(
        [
            known["start_ns"].zip_with(known["start_ns"].is_not_null(), calls["start_ns"]).alias("asked_ns"),
            answers(inputs, partial(_whole_number, 2), pl.Int64).cast(pl.Int32, strict=False).alias("group_peer"),
            answers(inputs, partial(_whole_number, 3), pl.Int64).alias("tag"),
        ]
    )


def peer_in_name(rank_trace: RankTrace, event_index: pl.Series) -> pl.Series:
    """Read the peer's number in its group from the names of NCCL's annotations (`nccl:send 0->1`); int32 or null."""
    names = of_events(rank_trace.events_of([EventKind.USER_ANNOTATION], ["event_index", "name"]), event_index)["name"]
    return rank_trace.texts(names).str.extract(_PEER_IN_NAME).cast(pl.Int32, strict=False).alias("group_peer")


def with_exchange_operators(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.DataFrame:
    """Fill nulls in out_elements and in_split_sizes of all-to-alls from `c10d::alltoall_base_`.

    The operator's arguments are the output, the input, the group, and the split sizes of the output and of the input.

    Args:
        rank_trace: the rank.
        calls: family, described_index, out_elements and in_split_sizes (text).
    """
    is_silent = (calls["family"] == "all_to_all") & calls["out_elements"].is_null()
    if not is_silent.any():
        return calls
    operators = _operators(rank_trace).filter(pl.col("name").str.starts_with(_EXCHANGE))
    owners = innermost_of(operators, _begins(rank_trace, calls["described_index"]), ["track_id"])
    rows = pl.Series(np.where(is_silent.to_numpy(), owners, NO_OWNER)).replace(NO_OWNER, None).cast(pl.UInt32)
    known = operators[["input_dims", "concrete_inputs"]][rows]
    elements = answers(known["input_dims"], _output_elements, pl.Int64)
    splits = answers(known["concrete_inputs"], _input_splits, pl.String)
    return calls.with_columns(
        pl.coalesce("out_elements", elements).alias("out_elements"),
        pl.coalesce("in_split_sizes", splits).alias("in_split_sizes"),
    )


def _begins(rank_trace: RankTrace, event_index: pl.Series) -> pl.DataFrame:
    """Return where and when each host call begins: its thread (track_id) and its start time (moment)."""
    events = rank_trace.events_of(
        [EventKind.USER_ANNOTATION, EventKind.CPU_OP], ["event_index", "start_ns", "track_id"]
    )
    return of_events(events, event_index).select("track_id", moment="start_ns")


def _output_elements(dims: str | None) -> int | None:
    shape = _element(dims, 0)
    if not isinstance(shape, list) or not all(isinstance(size, int) for size in shape):
        return None
    elements = prod(shape)
    return elements if 0 <= elements < _MOST_ELEMENTS else None


def _input_splits(inputs: str | None) -> str | None:
    text = _element(inputs, 4)
    return text if isinstance(text, str) and text.startswith("[") else None


def _operators(rank_trace: RankTrace) -> pl.DataFrame:
    names = names_matching(rank_trace, _OPERATOR)
    columns = ["event_index", "name", "start_ns", "end_ns", "track_id"]
    operators = event_ranges(rank_trace, [EventKind.CPU_OP], columns, names=names).sort("start_ns")
    inputs = rank_trace.table("operator_inputs", ["event_index", "input_dims", "concrete_inputs"])
    known = operators.hstack(of_events(inputs, operators["event_index"]))
    texts = known.with_columns(rank_trace.texts(known[column]) for column in ("name", "input_dims", "concrete_inputs"))
    return texts.with_columns(answers(texts["name"], collective_family, pl.String).alias("family"))


def _with_dims(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.DataFrame:
    inputs = of_events(rank_trace.table("operator_inputs", ["event_index", "input_dims"]), calls["event_index"])
    dims = answers(rank_trace.texts(inputs["input_dims"]), _normal, pl.String).alias("input_dims")
    return calls.select("event_index", "family", "start_ns", dims)


def _normal(text: str | None) -> str | None:
    return None if text is None else json.dumps(json.loads(text))


def _around(rank_trace: RankTrace, operators: pl.DataFrame, calls: pl.DataFrame) -> npt.NDArray[np.int64]:
    """Return, for each call, the row of the operator running on the same thread when the call starts, or NO_OWNER."""
    tracks = of_events(
        rank_trace.events_of([EventKind.USER_ANNOTATION], ["event_index", "track_id"]), calls["event_index"]
    )
    return innermost_of(operators, tracks.with_columns(calls["start_ns"].alias("moment")), ["track_id"])


def _in_order(operators: pl.DataFrame, calls: pl.DataFrame) -> npt.NDArray[np.int64]:
    """Return, for each call, the row of its operator, or NO_OWNER.

    Calls and operators that have the same family and the same input shapes are matched in order.
    """
    rows = np.full(len(calls), NO_OWNER, np.int64)
    asked = _groups(operators.with_columns(_inputs_of(operators)))
    for key, performed in _groups(calls).items():
        wanted = asked.get(key, np.empty(0, np.int64))
        first = _first_asked(operators["start_ns"].to_numpy()[wanted], calls["start_ns"].to_numpy()[performed])
        paired = performed[first : first + len(wanted)]
        rows[paired] = wanted[: len(paired)]
    return rows


def _first_asked(asked_ns: npt.NDArray[np.int64], start_ns: npt.NDArray[np.int64]) -> int:
    """Return how many calls were requested before the recording began.

    All other calls are paired with the operators in order. No call can start before its operator, so the result is the
    smallest number of skipped calls for which no pair breaks this rule.
    """
    return int(np.max(np.searchsorted(start_ns, asked_ns) - np.arange(len(asked_ns)), initial=0))


def _groups(rows: pl.DataFrame) -> dict[tuple[object, ...], npt.NDArray[np.int64]]:
    """Return, for each combination of family and input shapes, its rows, sorted by start_ns."""
    numbered = rows.select("family", "input_dims", "start_ns", pl.int_range(pl.len()).alias("row")).sort("start_ns")
    grouped = numbered.group_by("family", "input_dims").agg("row")
    return {(family, dims): row.to_numpy() for family, dims, row in zip(*grouped.get_columns(), strict=True)}


def _inputs_of(operators: pl.DataFrame) -> pl.Series:
    """Return the shapes of each operator's input tensors, in the format that the annotation of the call uses."""
    first, second = (answers(operators["input_dims"], partial(_tensors, argument), pl.String) for argument in (0, 1))
    is_in_place = operators["family"].is_in(_IN_PLACE)
    return first.zip_with(is_in_place, second).alias("input_dims")


def _tensors(argument: int, dims: str | None) -> str | None:
    """Return the shapes in an argument as a list; the argument is one tensor or a list of tensors."""
    shape = _element(dims, argument)
    if not isinstance(shape, list):
        return None
    return json.dumps(shape if shape and isinstance(shape[0], list) else [shape])


def _whole_number(argument: int, inputs: str | None) -> int | None:
    text = _element(inputs, argument)
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) <= _MOST_DIGITS else None


def _element(array: str | None, position: int) -> object:
    """Return an element of a JSON array; None if it does not exist."""
    elements = None if array is None else json.loads(array)
    return elements[position] if isinstance(elements, list) and len(elements) > position else None
