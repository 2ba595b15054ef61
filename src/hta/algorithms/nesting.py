"""Which interval lies inside which."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

NO_PARENT = -1

_Rows = npt.NDArray[np.int64]
_Scalar = TypeVar("_Scalar", bound=np.generic)


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

    Takes O(n log n), all in numpy. In the order (start, longest first, row) the parent is the nearest earlier
    interval that does not end before this one does, and every step to it jumps over all that is known to end sooner.
    """
    order = np.lexsort((-end, start, group))
    nearest, is_overlapping = parents_of_sorted(group[order], start[order], end[order])
    return Nesting(
        _unsorted(np.where(nearest == NO_PARENT, NO_PARENT, order[nearest]), order),
        _unsorted(depths(nearest), order),
        _unsorted(is_overlapping, order),
    )


def parents_of_sorted(group: npt.NDArray[np.integer], start: _Rows, end: _Rows) -> tuple[_Rows, npt.NDArray[np.bool_]]:
    """Return `parent` and `is_overlapping` of `nesting`, for intervals sorted by (group, start, longest first)."""
    nearest = np.arange(-1, len(group) - 1)
    nearest[np.flatnonzero(np.diff(group, prepend=group[:1] - 1))] = NO_PARENT
    return nearest, _jump(nearest, start, end)


def depths(parent: _Rows) -> npt.NDArray[np.int32]:
    """Return how many parents each row has above it; each round looks twice as far up."""
    depth: npt.NDArray[np.int32] = (parent != NO_PARENT).astype(np.int32)
    above = parent.copy()
    climbing = np.flatnonzero(depth)
    while len(climbing):
        depth_above, next_above = depth[above[climbing]], above[above[climbing]]
        depth[climbing] += depth_above
        above[climbing] = next_above
        climbing = climbing[next_above != NO_PARENT]
    return depth


def nearest_above(parent: _Rows, wanted: npt.NDArray[np.bool_], rows: _Rows) -> _Rows:
    """Return for each of these rows the nearest row above it that is wanted, `NO_PARENT` where there is none."""
    found = parent[rows]
    climbing = np.flatnonzero(_is_unwanted(found, wanted))
    while len(climbing):
        found[climbing] = parent[found[climbing]]
        climbing = climbing[_is_unwanted(found[climbing], wanted)]
    return found


def itself_or_above(parent: _Rows, wanted: npt.NDArray[np.bool_], rows: _Rows) -> _Rows:
    """Return for each of these rows itself where it is wanted, else `nearest_above`; `NO_PARENT` for that itself."""
    found = rows.copy()
    climbing = np.flatnonzero(_is_unwanted(found, wanted))
    found[climbing] = nearest_above(parent, wanted, found[climbing])
    return found


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


def furthest_above(parent: _Rows, wanted: npt.NDArray[np.bool_], rows: _Rows) -> _Rows:
    """Return for each of these rows the last wanted row on the way up, `NO_PARENT` where there is none."""
    found = nearest_above(parent, wanted, rows)
    climbing = np.flatnonzero(found != NO_PARENT)
    while len(climbing):
        above = nearest_above(parent, wanted, found[climbing])
        climbing, above = climbing[above != NO_PARENT], above[above != NO_PARENT]
        found[climbing] = above
    return found


def _jump(nearest: _Rows, start: _Rows, end: _Rows) -> npt.NDArray[np.bool_]:
    """Move every row's `nearest` to its parent, in place; return which rows begin inside a sibling."""
    is_overlapping = np.zeros(len(nearest), np.bool_)
    moving = np.flatnonzero(nearest != NO_PARENT)
    while len(moving):
        at = nearest[moving]
        too_short = end[at] < end[moving]
        moving, at = moving[too_short], at[too_short]
        is_overlapping[moving] |= end[at] > start[moving]
        further = nearest[at]
        nearest[moving] = further
        moving = moving[further != NO_PARENT]
    return is_overlapping


def _is_unwanted(found: _Rows, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    unwanted: npt.NDArray[np.bool_] = found != NO_PARENT
    unwanted[unwanted] = ~wanted[found[unwanted]]
    return unwanted


def _unsorted(values: npt.NDArray[_Scalar], order: _Rows) -> npt.NDArray[_Scalar]:
    result = np.empty_like(values)
    result[order] = values
    return result
