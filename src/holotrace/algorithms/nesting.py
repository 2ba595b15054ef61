"""Which interval lies inside which.

What visits one interval or parent after the other is native code: a large trace has millions.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace import _native

NO_PARENT = -1

_Rows: TypeAlias = npt.NDArray[np.int64]


class Nesting(NamedTuple):
    """The place of every interval among the others of its group.

    parent          row of the interval around it, `NO_PARENT` where there is none
    depth           how many intervals lie around it, one in the other
    is_overlapping  whether it begins inside a sibling, which ends before it does
    """

    parent: _Rows
    depth: npt.NDArray[np.int32]
    is_overlapping: npt.NDArray[np.bool_]


def nesting(group: npt.NDArray[np.integer], start: _Rows, end: _Rows) -> Nesting:
    """Find the innermost interval of the same group that wholly contains each interval.

    Of two equal intervals the one in the earlier row is outside. Of several that contain an interval the parent is
    the one that begins last, at equal starts the shorter one. So an interval that begins inside another and ends
    after it is its sibling; both have the nearest parent that contains them.
    """
    return Nesting(*_native.nest(*_columns(group, start, end)))


def nesting_order(group: npt.NDArray[np.integer], start: _Rows, end: _Rows) -> npt.NDArray[np.uint32]:
    """Return the rows so that each comes after all that contain it: by group, start, the longest first, and row."""
    return _native.nesting_order(*_columns(group, start, end))


def depths(parent: _Rows) -> npt.NDArray[np.int32]:
    """Return how many parents each row has above it."""
    return _native.depths(parent)


def nearest_above(parent: _Rows, wanted: npt.NDArray[np.bool_], rows: _Rows) -> _Rows:
    """Return for each of these rows the nearest row above it that is wanted, `NO_PARENT` where there is none.

    A row may be `NO_PARENT` itself, here as below.
    """
    return _native.nearest_above(parent, wanted, rows)


def furthest_above(parent: _Rows, wanted: npt.NDArray[np.bool_], rows: _Rows) -> _Rows:
    """Return for each of these rows the last wanted row on the way up, `NO_PARENT` where there is none."""
    return _native.furthest_above(parent, wanted, rows)


def itself_or_above(parent: _Rows, wanted: npt.NDArray[np.bool_], rows: _Rows) -> _Rows:
    """Return for each of these rows itself where it is wanted, else `nearest_above`; `NO_PARENT` for that itself."""
    is_found = np.append(wanted, False)[rows]
    return np.where(is_found, rows, nearest_above(parent, wanted, rows))


def subtree_sums(parent: _Rows, values: _Rows, by_level: list[_Rows] | None = None) -> _Rows:
    """Return for each row the sum of its own value and those of all rows below it; one round for each level.

    `by_level` is `levels(parent)`, for who has it already.
    """
    sums = values.copy()
    for rows in reversed(levels(parent) if by_level is None else by_level):
        np.add.at(sums, parent[rows], sums[rows])
    return sums


def levels(parent: _Rows) -> list[_Rows]:
    """Return the rows that have a parent, level by level: those of depth 1, of depth 2, and so on."""
    depth = depths(parent)
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.searchsorted(depth[order], np.arange(1, int(depth.max(initial=0)) + 1)))[1:]


def path_numbers(parent: _Rows, keys: _Rows) -> _Rows:
    """Number the rows so that two have the same number exactly if their keys and those of all above are the same."""
    key = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    numbers, count = key.copy(), len(keys)
    for rows in levels(parent):
        # Beyond what any row has had so far, so that no two levels share a number.
        numbers[rows] = np.unique(numbers[parent[rows]] * count + key[rows], return_inverse=True)[1]
        numbers[rows] += int(numbers[parent[rows]].max(initial=0)) + count
    return np.asarray(np.unique(numbers, return_inverse=True)[1], np.int64)


def _columns(
    group: npt.NDArray[np.integer], start: _Rows, end: _Rows
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return np.ascontiguousarray(group, np.uint32), np.ascontiguousarray(start), np.ascontiguousarray(end)
