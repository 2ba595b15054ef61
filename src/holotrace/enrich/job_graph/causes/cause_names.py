"""Name the work of a host thread at each time: its kind, name, module and Python function."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.matching import distinct_rows
from holotrace.algorithms.nested.nesting import NO_PARENT, furthest_above, itself_or_above, nesting, nesting_order
from holotrace.enrich.collectives.collectives import HOST_COLLECTIVE
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import rows_of_events
from holotrace.enrich.host.forward_backward import forward_of
from holotrace.enrich.host.frames import BUILT_IN, LOADING, TORCH_WAITING, WAITING, is_user_frame
from holotrace.enrich.host.host_names import MODULE_PREFIX, without_addresses
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]

CAUSES = (
    "computation",
    "copy",
    "operator",
    "python",
    "data_loading",
    "garbage_collection",
    "allocation",
    "launch_delay",
    "host_idle",
    "synchronisation",
    "communication",
    "unknown",
)
"""The kinds of causes that docs/reference/analyses/wait_causes.md defines."""

Cause = pl.Enum(CAUSES)
"""The kind of a cause."""

CAUSE_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "cause": Cause,
    "name": pl.String,
    "module": pl.String,
    "frame": pl.String,
}
"""The columns that identify a cause across ranks."""

_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION, EventKind.PYTHON_FUNCTION, *LAUNCH_KINDS)
_COLLECTION = r"(?i)^<built-in function collect>|^gc\.py|garbage.collect|^(python )?gc(\b|$)"
_ALLOCATION = (
    r"^(cuda|hip|cu)(Host|Mem)?(Malloc|Free|Alloc|Create|Map|Unmap|Release)|^(cuda|hip)(Malloc|Free)|^zeMemAlloc"
)
_STEP = r"^ProfilerStep\s*#"
_ENGINE = r"^autograd::engine|^torch::autograd::|^c10d::|^DistributedDataParallel|run_backward|^record_param_comms"


class HostRanges(NamedTuple):
    """The host ranges of a rank, each with its cause.

    Time is attributed to the cause of the innermost range at that time.

    ranges      event_index, track_id, start_ns, end_ns, name (string id)
    parent      for each range, the row of the range around it
    cause_row   row of `causes` for each range; the last entry is for times without a range
    causes      distinct causes: `CAUSE_COLUMNS`
    may_wait    for each range, whether a thread may wait for communication in this range although the name of the
                range does not show a wait; the last entry is for times without a range
    is_python   for each range, whether it is a function written in Python; such a function waits only inside functions
                written in C, which are ranges of their own if they were recorded; the last entry is for times without
                a range and is false
    waits       for each range, whether its name shows that it waits for communication; the last entry is for times
                without a range and is false
    """

    ranges: pl.DataFrame
    parent: _Rows
    depth: npt.NDArray[np.int32]
    cause_row: _Rows
    causes: pl.DataFrame
    may_wait: _Bools
    is_python: _Bools
    waits: _Bools


@derived
def host_ranges(rank_trace: RankTrace) -> HostRanges:
    """Return the ranges of all threads, without collectives.

    A collective does not run on the thread that recorded it.
    """
    texts = _Texts.of(rank_trace)
    ranges = _ranges(rank_trace, texts)
    name = ranges["name"].to_numpy()
    nested = nesting(*(ranges[column].to_numpy() for column in ("track_id", "start_ns", "end_ns")))
    kind = ranges["kind"].to_numpy()
    is_python = kind == EventKind.PYTHON_FUNCTION
    is_operator = kind == EventKind.CPU_OP
    causes, cause_row = _causes(rank_trace, ranges, nested.parent, texts)
    may_wait = ~is_python & ~is_operator & ~np.isin(kind, LAUNCH_KINDS) | texts.engine[name]
    return HostRanges(
        ranges,
        nested.parent,
        nested.depth,
        cause_row,
        causes,
        np.append(may_wait, True),
        np.append(is_python & ~texts.built_in[name], False),
        np.append(texts.waiting[name] & (texts.built_in[name] | is_operator), False),
    )


class _Texts(NamedTuple):
    """Properties of strings; the value at position i belongs to the string with id i."""

    cleaned: pl.Series
    module: _Bools
    user: _Bools
    built_in: _Bools
    loading: _Bools
    collection: _Bools
    allocation: _Bools
    waiting: _Bools
    torch_waiting: _Bools
    engine: _Bools
    step: _Bools
    communication: _Bools

    @classmethod
    def of(cls, rank_trace: RankTrace) -> _Texts:
        text = rank_trace.strings
        patterns = (
            *(BUILT_IN, LOADING, _COLLECTION, _ALLOCATION),
            *(WAITING, TORCH_WAITING, _ENGINE, _STEP, HOST_COLLECTIVE),
        )
        signs = (pl.col("text").str.starts_with(MODULE_PREFIX), *map(pl.col("text").str.contains, patterns))
        is_match = text.to_frame("text").select(
            sign.fill_null(value=False).alias(str(number)) for number, sign in enumerate(signs)
        )
        module, *others = (column.to_numpy() for column in is_match)
        cleaned = without_addresses(text).str.replace("^" + MODULE_PREFIX, "")
        return cls(cleaned, module, is_user_frame(text).to_numpy(), *others)


def _ranges(rank_trace: RankTrace, texts: _Texts) -> pl.DataFrame:
    columns = ["event_index", "kind", "track_id", "name", "start_ns", "end_ns"]
    ranges = event_ranges(rank_trace, _KINDS, columns).filter(pl.col("end_ns") > pl.col("start_ns"))
    beside = texts.communication[ranges["name"].to_numpy()] & ~np.isin(ranges["kind"].to_numpy(), LAUNCH_KINDS)
    own = ranges.filter(pl.Series(~beside))
    return own[nesting_order(*(own[column].to_numpy() for column in ("track_id", "start_ns", "end_ns")))]


def _causes(rank_trace: RankTrace, ranges: pl.DataFrame, parent: _Rows, texts: _Texts) -> tuple[pl.DataFrame, _Rows]:
    """Return the distinct causes, and the row of each range's cause; the last entry is for time outside all ranges."""
    rows = np.arange(len(ranges))
    name, kind = ranges["name"].to_numpy().astype(np.int64), ranges["kind"].to_numpy()
    is_python = kind == EventKind.PYTHON_FUNCTION
    # Traces from 2021 record steps as operators.
    is_operator = (kind == EventKind.CPU_OP) & ~texts.step[name]
    frame = itself_or_above(parent, is_python & texts.user[name], rows)
    loading = itself_or_above(parent, texts.loading[name], rows)
    collection = itself_or_above(parent, texts.collection[name], rows)
    module = _modules(rank_trace, ranges, parent, is_python & texts.module[name])
    operator = _outermost_operators(parent, is_python, is_operator)
    is_call = np.isin(kind, LAUNCH_KINDS)
    is_allocation = is_call & texts.allocation[name]
    is_plain_python = is_python & ~texts.built_in[name]
    named = np.where(is_plain_python & (frame != NO_PARENT), frame, rows)
    named = np.where(operator != NO_PARENT, operator, named)
    named = np.where(is_allocation, rows, named)
    is_built_in = is_python & texts.built_in[name]
    outer_loading = furthest_above(parent, texts.loading[name], loading)
    loader = np.where(outer_loading == NO_PARENT, loading, outer_loading)
    # An inner range has a higher row number than the ranges around it. If a user function
    # has a higher row number than the data loader, the loader therefore calls this function, to build a batch.
    builds_batch = is_plain_python & (frame > loader)
    named = np.where((loading != NO_PARENT) & ~is_built_in & ~builds_batch, loader, named)
    named = np.where(collection != NO_PARENT, collection, named)
    cause = np.select(
        [
            collection != NO_PARENT,
            loading != NO_PARENT,
            is_allocation,
            is_python & ~texts.torch_waiting[name],
            (operator != NO_PARENT) | is_call,
        ],
        [CAUSES.index(word) for word in ("garbage_collection", "data_loading", "allocation", "python", "operator")],
        CAUSES.index("host_idle"),
    )
    is_step = texts.step[name]
    ids = {
        "cause": cause,
        "name": np.where(is_step, -1, name[named]),
        "module": np.where(module == NO_PARENT, -1, name[module]),
        "frame": np.where(frame == NO_PARENT, -1, name[frame]),
    }
    nothing = {"cause": CAUSES.index("host_idle"), "name": -1, "module": -1, "frame": -1}
    table = {key: np.append(column, nothing[key]).astype(np.int64) for key, column in ids.items()}
    first, cause_row = distinct_rows(list(table.values()))
    return _with_texts(pl.DataFrame({key: column[first] for key, column in table.items()}), texts.cleaned), cause_row


def _with_texts(distinct: pl.DataFrame, cleaned: pl.Series) -> pl.DataFrame:
    kinds = pl.Series("cause", CAUSES).gather(distinct["cause"]).cast(Cause)
    known = [
        cleaned.gather(distinct[column].replace(-1, None).cast(pl.UInt32)).alias(column)
        for column in ("name", "module", "frame")
    ]
    return pl.DataFrame([kinds, *known])


def _outermost_operators(parent: _Rows, is_python: _Bools, is_operator: _Bools) -> _Rows:
    """Return, for each range, the outermost operator around it (or the range itself); -1 if there is none.

    Only operators inside the innermost Python function around the range are considered.
    """
    rows = np.arange(len(parent))
    cut = np.where((parent != NO_PARENT) & is_python[parent] | is_python, NO_PARENT, parent)
    outermost = furthest_above(cut, is_operator, rows)
    return np.where(outermost == NO_PARENT, np.where(is_operator, rows, NO_PARENT), outermost)


def _modules(rank_trace: RankTrace, ranges: pl.DataFrame, parent: _Rows, is_module: _Bools) -> _Rows:
    """Return the innermost module around each range or, for a backward operator, around its forward operator."""
    rows = np.arange(len(parent))
    direct = itself_or_above(parent, is_module, rows)
    if not is_module.any():
        return direct
    links = forward_of(rank_trace)
    backward, forward = (rows_of_events(ranges, links[f"{end}_index"]) for end in ("event", "forward"))
    known = (backward != NO_PARENT) & (forward != NO_PARENT)
    of_forward = np.full(len(parent), NO_PARENT, np.int64)
    of_forward[backward[known]] = direct[forward[known]]
    linked = itself_or_above(parent, of_forward != NO_PARENT, rows)
    around = np.where(linked == NO_PARENT, NO_PARENT, of_forward[linked])
    # An autograd function gets the module of the backward operator inside it.
    outer = np.full(len(parent), NO_PARENT, np.int64)
    inner = np.flatnonzero(of_forward != NO_PARENT)
    above = parent[inner]
    outer[above[above != NO_PARENT]] = of_forward[inner[above != NO_PARENT]]
    return np.where(around != NO_PARENT, around, np.where(direct != NO_PARENT, direct, outer))
