"""Which sequences of kernels do operators launch most often?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, furthest_above
from holotrace.enrich.device.device_work import device_work, no_device_work
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_rows import rows_of_events
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.kernels.kernel_sequences import sequence_texts, sequences
from holotrace.errors import InvalidOptionError, what_exists
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import EventKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

SEPARATOR = "|"
"""Separates the names in a pattern."""


@dataclass(frozen=True, eq=False, repr=False)
class KernelSequences(Result):
    """The sequences of kernels that operators launched.

    per_pattern  one row per rank and sequence, sorted by rank, then by call_count (largest first), then by pattern:

        rank                   int32
        operator               str    name of the operator
        pattern                str    name of the operator, then names of its kernels in order of start, joined by `|`
        call_count             int64  operator calls that launched this sequence
        kernel_count_per_call  int64  kernels, copies and memsets that one call launched
        kernel_ns              int64  summed kernel time of all these calls
        operator_ns            int64  summed host time of these calls

    findings     one sentence per rank without device work

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.kernel_sequences(small_job(), min_kernel_count=1).answer
    'The costliest sequence takes 1 ms in total: aten::mm on rank 1 launches 1 kernel per call (2 calls).'
    """

    per_pattern: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Options(NamedTuple):
    operator_name: str | None
    min_kernel_count: int


class _Partial(NamedTuple):
    per_pattern: pl.DataFrame
    is_known: bool
    names: tuple[str, ...]


def kernel_sequences(
    trace: Trace,
    *,
    operator_name: str | None = None,
    min_kernel_count: int = 3,
    executor: Executor = IN_PROCESS,
) -> KernelSequences:
    """Count the sequences of kernels, copies and memsets that calls of operators launched.

    The sequence of a call contains all work that its thread launched during the call, including work of nested
    operators. Of nested calls that match, only the outermost call counts.

    Args:
        trace: the job.
        operator_name: count only operators and annotations whose names contain this string; by default, count all outermost
            operators.
        min_kernel_count: ignore calls that launched fewer kernels.
        executor: processes each rank.

    Raises:
        InvalidOptionError: `operator_name` is empty or occurs on no rank, or `min_kernel_count` is below 1.
        MissingDataError: no rank has device work.

    Source: docs/reference/analyses/kernel_sequences.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> result = holotrace.kernel_sequences(small_job(), min_kernel_count=1)
    >>> result.per_pattern.select("pattern", "call_count").row(0)
    ('aten::mm|gemm', 2)
    """
    return plan(operator_name=operator_name, min_kernel_count=min_kernel_count).run(trace, executor)


def plan(*, operator_name: str | None = None, min_kernel_count: int = 3) -> Plan[_Partial, KernelSequences]:
    """Return the two functions of `kernel_sequences`: one runs on each rank, the other combines the results of the ranks."""
    options = checked(operator_name, min_kernel_count)
    return Plan(partial(_one_rank, options=options), partial(_combine, options=options))


def sequences_over_ranks(result: KernelSequences) -> pl.DataFrame:
    """Return each sequence once: counts and times summed over the ranks, the most frequent first."""
    sums = pl.col("call_count", "kernel_ns", "operator_ns").sum()
    table = result.per_pattern.group_by("operator", "pattern", "kernel_count_per_call").agg(sums)
    return table.sort("call_count", "pattern", descending=[True, False])


def sequence_calls(rank_trace: RankTrace, *, operator_name: str | None, min_kernel_count: int) -> pl.DataFrame:
    """Return the calls that `kernel_sequences` counts.

    Returns:
        One row for each call that launched enough kernels: `operator_index` (event_index of the call), `name` (string
        id), `operator_ns`, `sequence` (string ids of the kernels), `kernel_count`, `kernel_ns`.
    """
    stacks = call_stacks(rank_trace)
    owned = _owned_work(rank_trace, stacks, operator_name)
    launched = sequences(owned, "row").filter(pl.col("kernel_count") >= min_kernel_count)
    calls = stacks[launched["row"]]
    return calls.select(
        pl.col("event_index").alias("operator_index"),
        "name",
        (pl.col("end_ns") - pl.col("start_ns")).alias("operator_ns"),
    ).hstack(launched.drop("row"))


def sequence_work(rank_trace: RankTrace, *, operator_name: str | None) -> pl.DataFrame:
    """Return `event_index`, `launch_index` and `operator_index` of all work that matching operators launched."""
    stacks = call_stacks(rank_trace)
    owned = _owned_work(rank_trace, stacks, operator_name)
    return owned.select("event_index", "launch_index").with_columns(
        stacks["event_index"].gather(owned["row"]).alias("operator_index")
    )


def sequence_patterns(rank_trace: RankTrace, calls: pl.DataFrame) -> pl.DataFrame:
    """Count how often each sequence occurs in the result of `sequence_calls`, and sum its times.

    Returns:
        `name` and `sequence` as in `calls`, then all columns of `KernelSequences.per_pattern` except `rank`.
    """
    table = calls.group_by("name", "sequence").agg(
        pl.len().cast(pl.Int64).alias("call_count"),
        pl.col("kernel_count").first().alias("kernel_count_per_call"),
        pl.col("kernel_ns", "operator_ns").sum(),
    )
    operator = rank_trace.texts(table["name"]).alias("operator")
    kernels = sequence_texts(rank_trace, table["sequence"], SEPARATOR).alias("kernels")
    pattern = pl.concat_str("operator", "kernels", separator=SEPARATOR).alias("pattern")
    return (
        table.with_columns(operator, kernels)
        .select(
            "name", "sequence", "operator", pattern, "call_count", "kernel_count_per_call", "kernel_ns", "operator_ns"
        )
        .sort("call_count", "pattern", descending=[True, False])
    )


def checked(operator_name: str | None, min_kernel_count: int) -> _Options:
    """Check the options, and return them.

    Raises:
        InvalidOptionError: `operator_name` is empty, or `min_kernel_count` is below 1.
    """
    if operator_name is not None and not operator_name:
        message = "operator_name='' matches every name; omit it to count every outermost operator"
        raise InvalidOptionError(message)
    if min_kernel_count < 1:
        message = f"min_kernel_count={min_kernel_count} is below 1"
        raise InvalidOptionError(message)
    return _Options(operator_name, min_kernel_count)


def _one_rank(rank_trace: RankTrace, *, options: _Options) -> _Partial:
    if device_work(rank_trace).is_empty():
        raise no_device_work(rank_trace, "kernel_sequences")
    calls = sequence_calls(rank_trace, **options._asdict())
    patterns = sequence_patterns(rank_trace, calls)
    rank = pl.lit(rank_trace.rank, pl.Int32).alias("rank")
    is_known = options.operator_name is None or bool(_matching(rank_trace, options.operator_name).any())
    names = () if is_known else _operator_names(rank_trace)
    return _Partial(patterns.select(rank, pl.all().exclude("name", "sequence")), is_known, names)


def _owned_work(rank_trace: RankTrace, stacks: pl.DataFrame, operator_name: str | None) -> pl.DataFrame:
    """Return the device work of matching calls, sorted by call and start; `row` is the row of the call in `stacks`."""
    launched = launches(rank_trace)
    rows = rows_of_events(stacks, launched["launch_index"])
    owner = np.full(len(rows), NO_PARENT, np.int64)
    known = np.flatnonzero(rows != NO_PARENT)
    calls, call_of_row = np.unique(rows[known], return_inverse=True)
    owner[known] = furthest_above(stacks["parent_row"].to_numpy(), _matching(rank_trace, operator_name), calls)[
        call_of_row
    ]
    owned = launched.select("event_index", "launch_index").with_columns(pl.Series("row", owner))
    work = device_work(rank_trace).select(
        "event_index", "name", "start_ns", (pl.col("end_ns") - pl.col("start_ns")).alias("kernel_ns")
    )
    owned_work = work.join(owned.filter(pl.col("row") != NO_PARENT), on="event_index", maintain_order="left")
    return owned_work.sort("row", maintain_order=True)


def _matching(rank_trace: RankTrace, operator_name: str | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mark the calls whose names contain `operator_name` or, if it is None, all operator calls."""
    stacks = call_stacks(rank_trace)
    if operator_name is None:
        return (stacks["kind"] == EventKind.CPU_OP).to_numpy()
    is_match = rank_trace.strings.str.contains(operator_name, literal=True)
    is_call = stacks["kind"].is_in([EventKind.CPU_OP, EventKind.USER_ANNOTATION])
    return (is_match.gather(stacks["name"]) & is_call).to_numpy()


def _operator_names(rank_trace: RankTrace) -> tuple[str, ...]:
    stacks = call_stacks(rank_trace)
    ids = stacks.filter(pl.col("kind") == EventKind.CPU_OP)["name"].unique()
    return tuple(rank_trace.texts(ids).sort())


def _combine(partials: dict[int, _Partial], options: _Options) -> KernelSequences:
    if not any(of_rank.is_known for of_rank in partials.values()):
        raise _unknown_operator(
            options.operator_name or "", [name for of_rank in partials.values() for name in of_rank.names]
        )
    return KernelSequences(pl.concat([of_rank.per_pattern for of_rank in partials.values()]))


def _unknown_operator(wanted: str, names: list[str]) -> InvalidOptionError:
    listed = what_exists(names, wanted=wanted)
    return InvalidOptionError(f"operator_name={wanted!r}: no operator's name contains this text; available: {listed}")
