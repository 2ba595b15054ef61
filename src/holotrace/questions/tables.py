"""Results as printed tables, with headings and units.

The terminal, the report and the pages print the same `View`s of a result, so they always agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import polars as pl

from holotrace.drawing.names import printable, short_name, short_names
from holotrace.enrich.kernels.kernel_sequences import SEQUENCE_SEPARATOR
from holotrace.questions.result_columns import COLUMNS, heading_of, unit_of
from holotrace.units import (
    bandwidth_text,
    duration_text,
    number_text,
    operations_text,
    percent_text,
    size_text,
    small_percent_text,
)

_KERNELS_SHOWN = 3


_NO_DEVICE = -1
"""The device number that stands for the CPU's memory, and for events without a device in the file."""


_KERNEL_LENGTH = 40


SEQUENCE_COLUMN = "first_kernels"


_MOST_NAMES = 20_000


_NOTHING: Mapping[str, str] = MappingProxyType({})


_PRINTED: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {
        "ns": duration_text,
        "ns since the Unix epoch": duration_text,
        "0..1": percent_text,
        "bytes/s": bandwidth_text,
        "bytes": size_text,
        "FLOP": operations_text,
        "FLOP/s": lambda rate: f"{operations_text(rate)}/s",
    }
)
"""The functions that format numbers, by the unit of the column."""

_OFTEN_SMALL = ("mfu_fraction", "hfu_fraction")
"""Fractions that are often so small that they are printed with two decimals: 0.03 % instead of 0.0 %."""


@dataclass(frozen=True)
class View:
    """One table of a result: its caption, the function that builds it, and the column that decides which rows are kept."""

    caption: str
    table: Callable[[Any], pl.DataFrame]
    telling: str
    is_detail: bool = False


@dataclass(frozen=True)
class Cell:
    """One printed value; `whole` is the full text if the printed text was shortened."""

    text: str
    is_number: bool
    whole: str | None = None


@dataclass(frozen=True)
class PrintedTable:
    """A table ready to print.

    `left_out` is the number of omitted rows. If rows are omitted, `chosen_by` is the heading of the column by which the
    remaining rows were chosen.
    """

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0
    chosen_by: str = ""


def print_view(view: View, result: object, limit: int) -> PrintedTable:
    """Format a view of a result with `print_frame`; the column named in `view.telling` decides which rows are kept."""
    return print_frame(view.caption, view.table(result), limit, telling=view.telling)


def print_frame(caption: str, frame: pl.DataFrame, limit: int, *, telling: str) -> PrintedTable:
    """Format a frame.

    If the frame has more than `limit` rows, keep only the `limit` rows with the largest absolute values in the column
    that `telling` names.
    """
    left_out = max(0, len(frame) - limit)
    kept = _most_telling(frame, limit, telling) if left_out else frame
    short = shown_names(kept)
    rows = tuple(
        tuple(cell(*named, short) for named in zip(kept.columns, row, strict=True)) for row in kept.iter_rows()
    )
    return PrintedTable(
        caption, tuple(map(heading, kept.columns)), rows, left_out, heading(telling) if left_out else ""
    )


def heading(column: str) -> str:
    """Return the heading of a column, such as `hidden share` for `overlap_fraction`."""
    return heading_of(column)


def shown_names(frame: pl.DataFrame) -> dict[str, str]:
    """Return short names for the kernels and kernel sequences in a table.

    Different kernels get different short names. If a table has more than `_MOST_NAMES` kernels, the result contains no
    names of kernels; if it has more than `_MOST_NAMES` sequences, no names of sequences.
    """
    columns = [frame.get_column(name) for name in ("name", "event") if frame.schema.get(name) == pl.String]
    names = {
        value: None for column in columns for value in column.drop_nulls().unique() if _is_short(column.name, value)
    }
    sequences = frame.get_column(SEQUENCE_COLUMN).unique() if SEQUENCE_COLUMN in frame.columns else ()
    first = _first_kernels(sequences) if len(sequences) <= _MOST_NAMES else {}
    return first | (short_names(names) if len(names) <= _MOST_NAMES else {})


def cell(column: str, value: float | str | None, short: Mapping[str, str] = _NOTHING) -> Cell:
    """Format a value in its column's unit; None and the device -1 (the CPU) become dashes.

    Args:
        column: name of the column.
        value: one of its values.
        short: the result of `shown_names` for the whole table, so that different kernels get different names.
    """
    if value is None or (column == "device" and value == _NO_DEVICE):
        return Cell(percent_text(None), is_number=True)
    if isinstance(value, str):
        return _text_cell(column, value, short)
    plain = number_text if column in COLUMNS else "{:,}".format  # print all digits of columns that a query defines
    print_value = small_percent_text if column in _OFTEN_SMALL else _PRINTED.get(unit_of(column), plain)
    return Cell(print_value(value), is_number=True)


def known_columns(table: pl.DataFrame) -> pl.DataFrame:
    """Drop columns that contain only nulls."""
    return table.select(column for column in table if len(table) == 0 or column.null_count() < len(table))


def with_bounds(table: pl.DataFrame, share: str, unknown: str) -> pl.DataFrame:
    """Rename `share` to `…_least_fraction` if it is only a lower bound; otherwise drop the column `unknown`.

    `share` is only a lower bound if any value of `unknown` is not 0.
    """
    if table.get_column(unknown).sum():
        return table.rename({share: f"{share.removesuffix('_fraction')}_least_fraction"})
    return table.drop(unknown)


def without_wholly_known(table: pl.DataFrame) -> pl.DataFrame:
    """Drop each column `…_known_fraction` in which every value is 0, 1 or null."""
    shares = [name for name in table.columns if name.endswith("_known_fraction")]
    return table.drop(name for name in shares if table.get_column(name).is_in([0.0, 1.0]).all())


def _first_kernels(sequences: Iterable[str]) -> dict[str, str]:
    """Shorten each sequence to the short names of its first kernels and the number of remaining kernels."""
    kernels = {sequence: sequence.split(SEQUENCE_SEPARATOR) for sequence in sequences}
    short = short_names((name for names in kernels.values() for name in names[:_KERNELS_SHOWN]), _KERNEL_LENGTH)
    return {sequence: _sequence_text(names, short) for sequence, names in kernels.items()}


def _sequence_text(names: Sequence[str], short: Mapping[str, str]) -> str:
    shown = SEQUENCE_SEPARATOR.join(short[name] for name in names[:_KERNELS_SHOWN])
    more = len(names) - _KERNELS_SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


def _most_telling(frame: pl.DataFrame, limit: int, telling: str) -> pl.DataFrame:
    """Keep the `limit` rows with the largest absolute values in the column `telling`, in their original order."""
    rank = pl.col(telling).fill_null(0).abs().rank("ordinal", descending=True)
    return frame.filter(rank <= limit)


def one_device_hidden(table: pl.DataFrame) -> pl.DataFrame:
    """Drop the column `device` if no rank has more than one device."""
    devices = table.group_by("rank").agg(pl.col("device").n_unique()).get_column("device").max()
    return table if devices is not None and devices != 1 else table.drop("device")


def _text_cell(column: str, value: str, short: Mapping[str, str]) -> Cell:
    whole = printable(value)
    if column == SEQUENCE_COLUMN:
        shown = short.get(value) or _first_kernels([value])[value]
    else:
        shown = short.get(value) or short_name(value) if _is_short(column, value) else whole
    shown = printable(shown)
    return Cell(shown, is_number=False, whole=None if shown == whole else whole)


def _is_short(column: str, value: str) -> bool:
    """Return whether to shorten a value: always in the column `name`; in the column `event` if it is a C++ signature."""
    return column == "name" or (column == "event" and (value.startswith(("void ", "_Z")) or value.endswith(")")))
