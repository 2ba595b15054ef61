"""Define the table of operations: its columns, and the checks that a user's table must pass."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from holotrace.enrich.across_ranks.axes import AXES
from holotrace.enrich.collectives.collectives import FAMILIES
from holotrace.errors import InvalidOperationsError, what_exists
from holotrace.units import counted

COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "rank": pl.Int32,
    "dp_rank": pl.Int64,
    "stage": pl.Int64,
    "step": pl.Int64,
    "microbatch": pl.Int64,
    "kind": pl.String,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "chunk": pl.Int64,
    "global_chunk": pl.Int64,
    "sequence": pl.Int64,
    "instance": pl.Int64,
    "message_bytes": pl.Int64,
}
"""Columns of a table of operations, described in `operations_table`."""

PASSES = ("forward-compute", "backward-compute", "weight-compute")
"""The computations for a microbatch: forward pass, backward pass, and gradients of the weights.

If the gradients of the weights are computed separately, the backward pass computes only the gradients of the inputs.
"""

MESSAGES = ("forward-send", "forward-recv", "backward-send", "backward-recv")
"""Sends and receives between pipeline stages."""

AFTER_PASSES = (
    "gc",
    "layernorm-grads-all-reduce",
    "embedding-grads-all-reduce",
    "grads-reduce-scatter",
    "separate-grads-all-reduce",
    "optimizer-clip-main-grad",
    "optimizer",
)
"""The kinds that follow the last pass of a step, in order."""

_GRADIENTS = AFTER_PASSES[1:-1]
_OF_AXES = tuple(f"{axis}-{family.replace('_', '-')}" for axis in AXES for family in FAMILIES)

COMMUNICATION = (*MESSAGES, "params-all-gather", *_GRADIENTS, *_OF_AXES)
"""Kinds that move data between ranks; all others compute."""

STEP_START = "step-start"
"""Kind of the delay between the start of a step on the first rank and its start on this rank."""

PREPARATION = "preparation"
"""Kind of the work that a rank does in a step before it receives its first message."""

BEFORE_PASSES = (STEP_START, "data-loading", PREPARATION)
"""The kinds of operations before the first pass of a step."""

KINDS = (*BEFORE_PASSES, *PASSES, *MESSAGES, "params-all-gather", *AFTER_PASSES, *_OF_AXES)
"""All kinds of operations; kinds such as `dp-all-reduce` are collectives over one axis of parallelism."""

_NAMES = {
    "dp_rank": ("dp_rank", "dp"),
    "stage": ("stage", "pp_rank"),
    "microbatch": ("microbatch", "mb_id"),
    "kind": ("kind", "optype"),
    "chunk": ("chunk", "mc"),
    "global_chunk": ("global_chunk", "gmc"),
    "sequence": ("sequence", "seq_id"),
}
"""The accepted names of each column; the files published with the OSDI'25 paper use the second name."""

_UNITS = {"_ns": 1, "_us": 1_000, "_ms": 1_000_000, "_s": 1_000_000_000, "": 1_000_000_000}
_TIMES = {"start": ("start", "start_ts"), "duration": ("duration",)}


def operations_table(frame: pl.DataFrame, source: str = "the table of operations") -> pl.DataFrame:
    """Check a table of operations, and convert its columns to the standard names and types.

    Each row is one operation of one rank in one step. Rows may be in any order. The table below lists the columns,
    with alternative names after "also". All other columns are dropped.

        kind           str     one of `KINDS`, such as forward-compute, forward-send, grads-reduce-scatter; also `optype`
        start_ns       int64   start time; also start_us, start_ms, start_s; `start`, `start_ts` in seconds
        duration_ns    int64   length of the operation; also duration_us, duration_ms, duration_s; `duration` in seconds
        rank           int32   optional if dp_rank and stage are given
        dp_rank        int64   data-parallel rank; by default numbered by rank within the stage
        stage          int64   number of the pipeline stage, counted from 0; by default 0
        step           int64   number of the step, by default 0; times of different steps are not compared
        microbatch     int64   null if the operation belongs to no microbatch; also `mb_id`
        chunk          int64   model chunk within the stage (interleaved schedules), by default 0; also `mc`
        global_chunk   int64   model chunk within the model; by default chunk * stages + stage; also `gmc`
        sequence       int64   number among the operations of the same kind, rank and step, by default in order of
                               start; rows with equal numbers are parts of one operation; also `seq_id`
        instance       int64   number of the communication within its step, the same on all participating ranks; null
                               if unknown. Without this column, operations are matched by kind and order
        message_bytes  int64   size of the message; only communications of equal kind and size are compared

    Returns:
        The columns above, sorted by step, rank and start_ns.

    Raises:
        InvalidOperationsError: a column or a value is missing; the message names the column or the first row
            without a value.
    """
    if frame.is_empty():
        message = f"{source} has no rows; each row is one operation of one rank in one step"
        raise InvalidOperationsError(message)
    given = _with_times(_renamed(frame, source), source)
    known = _with_places(_typed(given, source), source)
    _check_kinds(known, source)
    _check_places(known, source)
    return _with_defaults(known).select(*COLUMNS).sort("step", "rank", "start_ns", "sequence", maintain_order=True)


def _renamed(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    names = {
        next(name for name in accepted if name in frame.columns): column
        for column, accepted in _NAMES.items()
        if any(name in frame.columns for name in accepted)
    }
    wanted = [pl.col(name).alias(column) for name, column in names.items()]
    others = [name for name in frame.columns if name not in names and name not in names.values()]
    renamed = frame.select(*wanted, *others)
    missing = [name for name in ("kind",) if name not in renamed.columns]
    missing += ["rank (or dp_rank and stage)"] * (not _has_place(renamed.columns))
    missing += [f"{time}_ns" for time, names in _TIMES.items() if _time_column(renamed.columns, names) is None]
    if missing:
        message = (
            f"{source} lacks {', '.join(missing)}; its columns are {', '.join(frame.columns)}. A table of operations "
            "needs kind, start_ns, duration_ns, and rank or both dp_rank and stage"
        )
        raise InvalidOperationsError(message)
    return renamed


def _has_place(columns: Iterable[str]) -> bool:
    return "rank" in columns or {"dp_rank", "stage"} <= set(columns)


def _time_column(columns: Iterable[str], names: Iterable[str]) -> tuple[str, int] | None:
    """Return the first of these columns that the table has, and its unit in nanoseconds."""
    return next(
        ((name + ending, unit) for name in names for ending, unit in _UNITS.items() if name + ending in columns), None
    )


def _with_times(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    for time, names in _TIMES.items():
        column, unit = _time_column(frame.columns, names) or ("", 1)
        if not frame.schema[column].is_numeric():
            message = f"column {column} of {source} has the type {frame.schema[column]}; times must be numbers"
            raise InvalidOperationsError(message)
        frame = frame.with_columns(_nanoseconds(frame[column], unit).alias(f"{time}_ns"))
    bad = frame.select(
        (pl.col("start_ns").is_null() | pl.col("duration_ns").is_null() | (pl.col("duration_ns") < 0)).arg_true()
    ).to_series()
    if len(bad):
        message = (
            f"row {bad[0]:,} of {source} has no start, or its duration is missing or negative "
            f"({counted(len(bad), 'such row')}); remove these operations, or record their times"
        )
        raise InvalidOperationsError(message)
    return frame


def _nanoseconds(times: pl.Series, unit: int) -> pl.Series:
    """Convert to whole nanoseconds; null for NaN and infinity."""
    if times.dtype.is_integer():
        return times.cast(pl.Int64) * unit
    return (times.cast(pl.Float64) * unit).round().cast(pl.Int64, strict=False)


def _typed(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    known = {name: data_type for name, data_type in COLUMNS.items() if name in frame.columns}
    try:
        return frame.select(pl.col(name).cast(data_type) for name, data_type in known.items())
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        wanted = ", ".join(f"{name} {data_type}" for name, data_type in known.items())
        message = f"{source} has values of the wrong type ({reason}); its columns must be {wanted}"
        raise InvalidOperationsError(message) from None


def _with_places(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """Add the columns rank, dp_rank, stage and step if they are missing."""
    columns = set(frame.columns)
    for name in {"rank", "dp_rank", "stage", "step"} & columns:
        rows = frame[name].is_null().arg_true()
        if len(rows):
            message = f"row {rows[0]:,} of {source} has no {name} ({counted(len(rows), 'such row')}); give every operation its {name}"
            raise InvalidOperationsError(message)
    places = frame.with_columns(pl.lit(0, pl.Int64).alias(name) for name in ("stage", "step") if name not in columns)
    if "rank" not in columns:
        number = pl.col("dp_rank") * (pl.col("stage").max() + 1) + pl.col("stage")
        places = places.with_columns(number.cast(pl.Int32).alias("rank"))
    if "dp_rank" not in columns:
        number = pl.col("rank").rank("dense").over("stage") - 1
        places = places.with_columns(number.cast(pl.Int64).alias("dp_rank"))
    return places


def _check_kinds(frame: pl.DataFrame, source: str) -> None:
    unknown = frame.with_row_index("row").filter(~pl.col("kind").fill_null("").is_in(KINDS))
    if len(unknown):
        row, kind = unknown.select("row", "kind").row(0)
        named = "no kind" if kind is None else f"the unknown kind {kind!r}"
        kinds = unknown["kind"].n_unique()
        message = (
            f"row {row:,} of {source} has {named} ({counted(len(unknown), 'row')} with {counted(kinds, 'unknown kind')}); rename the kind "
            f"or remove its rows. Known kinds are: {what_exists(KINDS, wanted=kind or '')}"
        )
        raise InvalidOperationsError(message)


def _check_places(frame: pl.DataFrame, source: str) -> None:
    counts = frame.group_by("rank").agg(pl.struct("dp_rank", "stage").n_unique().alias("count"))
    several = counts.filter(pl.col("count") > 1).sort("rank")
    if len(several):
        message = (
            f"rank {several['rank'][0]} of {source} has {several['count'][0]} different pairs of dp_rank and stage; a "
            "rank belongs to one stage of one replica; correct its dp_rank and stage, or its rank number"
        )
        raise InvalidOperationsError(message)


def _with_defaults(frame: pl.DataFrame) -> pl.DataFrame:
    empty = [pl.lit(None, COLUMNS[name]).alias(name) for name in COLUMNS if name not in frame.columns]
    known = frame.with_columns(empty).with_columns(
        _not_negative(name) for name in ("microbatch", "chunk", "global_chunk")
    )
    chunk = pl.col("chunk").fill_null(0)
    stages = pl.col("stage").max() + 1
    by_start = pl.struct("start_ns", "duration_ns").rank("ordinal").over("step", "rank", "kind").cast(pl.Int64) - 1
    return known.with_columns(
        chunk,
        pl.coalesce("global_chunk", chunk * stages + pl.col("stage")),
        pl.col("sequence").fill_null(by_start),
    )


def _not_negative(name: str) -> pl.Expr:
    """Replace negative values with null, because the published files write -1 if there is no microbatch or chunk."""
    return pl.when(pl.col(name) >= 0).then(name).alias(name)


def has_known_communication(operations: pl.DataFrame) -> bool:
    """Return whether any row has an `instance` or is a collective over one axis of parallelism.

    If so, `by_time` can infer the dependencies.
    """
    has_instance = operations["instance"].is_not_null().any()
    return bool(has_instance or operations["kind"].is_in(_OF_AXES).any())


def is_communication() -> pl.Expr:
    """Return whether an operation moves data between ranks."""
    return pl.col("kind").is_in(COMMUNICATION)
