"""Finds which intervals enclose which.

Loops over intervals or parents are native code, because a large trace has millions of rows.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace import _native

NO_PARENT = -1

_Rows: TypeAlias = npt.NDArray[np.int64]


class Nesting(NamedTuple):
    """How each interval is nested in other intervals of its group.

    parent          row of the enclosing interval, `NO_PARENT` if there is none
    depth           number of enclosing intervals
    is_overlapping  whether the interval begins inside a sibling but ends after it
    """

    parent: _Rows
    depth: npt.NDArray[np.int32]
    is_overlapping: npt.NDArray[np.bool_]


def nesting(group: npt.NDArray[np.integer], start: _Rows, end: _Rows) -> Nesting:
    """Find, for each interval, the innermost interval of its group that contains it entirely.

    If two intervals are equal, the earlier row is the outer one. If several intervals contain an interval, its parent
    is the one that begins last or, on a tie, the shortest. Two intervals that overlap only partly are siblings: neither
    is the parent of the other.
    """
    return Nesting(*_native.nest(*_columns(group, start, end)))


def nesting_order(group: npt.NDArray[np.integer], start: _Rows, end: _Rows) -> npt.NDArray[np.uint32]:
    """Return the order by group, start and length (longest first); each row follows all rows that contain it."""
    return _native.nesting_order(*_columns(group, start, end))


def depths(parent: _Rows) -> npt.NDArray[np.int32]:
    """Return the number of ancestors of each row."""
    return _native.depths(parent)


def nearest_above(parent: _Rows, wanted: npt.NDArray[np.bool_], rows: _Rows) -> _Rows:
    """Return, for each of `rows`, its nearest wanted ancestor, or `NO_PARENT`.

    `rows` may contain `NO_PARENT`, here and in the functions below.
    """
    return _native.nearest_above(parent, wanted, rows) if wanted.any() else _none(rows)


def furthest_above(parent: _Rows, wanted: npt.NDArray[np.bool_], rows: _Rows) -> _Rows:
    """Return, for each of `rows`, its furthest wanted ancestor, or `NO_PARENT`."""
    return _native.furthest_above(parent, wanted, rows) if wanted.any() else _none(rows)


def itself_or_above(parent: _Rows, wanted: npt.NDArray[np.bool_], rows: _Rows) -> _Rows:
    """Return, for each of `rows`, the row itself if it is wanted, else its nearest wanted ancestor, or `NO_PARENT`."""
    if not wanted.any():
        return _none(rows)
    is_found = np.append(wanted, False)[rows]
    return np.where(is_found, rows, nearest_above(parent, wanted, rows))


def subtree_sums(parent: _Rows, values: _Rows, by_level: list[_Rows] | None = None) -> _Rows:
    """Return, for each row, its value plus the values of all its descendants.

    `by_level` is `levels(parent)`, for callers that already have it.
    """
    sums = values.copy()
    for rows in reversed(levels(parent) if by_level is None else by_level):
        np.add.at(sums, parent[rows], sums[rows])
    return sums


def levels(parent: _Rows) -> list[_Rows]:
    """Return the rows that have a parent, level by level: the rows of depth 1, of depth 2, and so on."""
    depth = depths(parent)
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.searchsorted(depth[order], np.arange(1, int(depth.max(initial=0)) + 1)))[1:]


def path_numbers(parent: _Rows, keys: _Rows) -> _Rows:
    """Number the rows: two rows get the same number if and only if they and all their ancestors have equal keys."""
    key = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    numbers, count = key.copy(), len(keys)
    for rows in levels(parent):
        # New numbers are larger than all earlier ones, so no two levels share a number.
        numbers[rows] = np.unique(numbers[parent[rows]] * count + key[rows], return_inverse=True)[1]
        numbers[rows] += int(numbers[parent[rows]].max(initial=0)) + count
    return np.asarray(np.unique(numbers, return_inverse=True)[1], np.int64)


def _none(rows: _Rows) -> _Rows:
    return np.full(len(rows), NO_PARENT, np.int64)


def _columns(
    group: npt.NDArray[np.integer], start: _Rows, end: _Rows
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return np.ascontiguousarray(group, np.uint32), np.ascontiguousarray(start), np.ascontiguousarray(end)
