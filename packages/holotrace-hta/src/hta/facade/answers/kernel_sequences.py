"""Frequent kernel sequences with HTA's columns, and a copy of the trace in which they are marked."""

from __future__ import annotations

import pandas as pd
import polars as pl

from holotrace.analyses.kernel_sequences.compute import KernelSequences, checked, kernel_sequences
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.export.overlaid_trace import overlaid_name, write_overlaid_trace
from holotrace.figures import plot_kernel_sequences
from holotrace.locations import Location, expect_writable_folder, located
from holotrace.store.trace import Trace
from hta.facade.results.show import show
from hta.facade.results.times import microseconds
from hta.facade.trace.edited_rank import expect_events_of_file

_COLUMNS = ("pattern", "count", "GPU kernel duration (us)", "CPU op duration (us)")


def sequence_frame(  # noqa: PLR0913 -- HTA's arguments
    trace: Trace,
    operator_name: str,
    output_dir: str,
    *,
    min_pattern_len: int,
    rank: int,
    top_k: int,
    visualize: bool,
    compress_other_kernels: bool,
) -> pd.DataFrame:
    """Return the sequences of one rank; if there are any, write a copy of the trace that marks the first `top_k`.

    `frame.attrs` contains the path of the copy as `overlaid_trace` or, if the frame is empty, the `reason`.
    """
    folder = located(output_dir)
    expect_writable_folder(folder)
    checked(operator_name, min_pattern_len)
    chosen = trace.select([rank])
    try:
        result = kernel_sequences(chosen, operator_name=operator_name, min_kernel_count=min_pattern_len)
    except (InvalidOptionError, MissingDataError) as error:  # the trace has no such operator, or no GPU work
        return _empty(str(error))
    if result.per_pattern.is_empty():
        return _empty(f"no call of {operator_name!r} launches {min_pattern_len} or more kernels")
    if visualize:
        show(plot_kernel_sequences(result))
    expect_events_of_file(chosen.ranks[rank])
    target = folder / overlaid_name(chosen.ranks[rank].source)
    write_overlaid_trace(
        chosen.ranks[rank],
        target,
        operator_name=operator_name,
        min_kernel_count=min_pattern_len,
        top_count=top_k,
        compress_others=compress_other_kernels,
        overwrite=True,
    )
    return _frame(result, target)


def _frame(result: KernelSequences, target: Location) -> pd.DataFrame:
    table: pl.DataFrame = result.per_pattern
    values = (
        table["pattern"].to_list(),
        table["call_count"].to_numpy(),
        microseconds(table["kernel_ns"]),
        microseconds(table["operator_ns"]),
    )
    frame = pd.DataFrame(dict(zip(_COLUMNS, values, strict=True)))
    frame.attrs["overlaid_trace"] = str(target)
    return frame


def _empty(reason: str) -> pd.DataFrame:
    types = {"pattern": "object", "count": "int64"}
    frame = pd.DataFrame({column: pd.Series(dtype=types.get(column, "float64")) for column in _COLUMNS})
    frame.attrs["reason"] = reason
    return frame
