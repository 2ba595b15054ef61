"""Pairs the kernels of a graph's replay with the launches of its capture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from holotrace.algorithms.common_subsequence import NO_PARTNER, common_subsequence

_Int64 = npt.NDArray[np.int64]
UNNAMED = -1
"""In `Work.names`, this number means that the name was not recorded; launches on NVIDIA GPUs do not record names."""


class Work(NamedTuple):
    """Kernels, copies and memsets, in order.

    names   a number for the name of each; names that may refer to the same kernel have the same number; `UNNAMED` if
            the name is unknown
    kinds   the EventKind of each: kernel, copy or memset
    """

    names: _Int64
    kinds: _Int64


def aligned(replayed: Work, streams: _Int64, captured: Work) -> _Int64:
    """Return the captured launch of each replayed kernel, copy or memset; `NO_PARTNER` if unknown.

    Each stream runs its kernels in the order of their launches. So the streams are aligned one by one, beginning with
    the stream that has the most work. The kernels of a stream are paired with the launches that are still unpaired,
    along the longest common subsequence of the two lists. Then `_with_unnamed` pairs launches that have no kernel name.
    """
    partner = np.full(len(streams), NO_PARTNER, np.int64)
    is_left = np.ones(len(captured.names), np.bool_)
    numbers, counts = np.unique(streams, return_counts=True)
    for stream in numbers[np.argsort(-counts, kind="stable")]:
        rows, left = np.flatnonzero(streams == stream), np.flatnonzero(is_left)
        found = _in_order(_part(replayed, rows), _part(captured, left))
        known = found != NO_PARTNER
        partner[rows[known]] = left[found[known]]
        is_left[partner[rows[known]]] = False
    return partner


def _part(work: Work, rows: _Int64) -> Work:
    return Work(work.names[rows], work.kinds[rows])


def _in_order(replayed: Work, captured: Work) -> _Int64:
    named = np.flatnonzero(captured.names != UNNAMED)
    found = common_subsequence(replayed.names, captured.names[named])
    known = found != NO_PARTNER
    found[known] = named[found[known]]
    if len(named) == len(captured.names):
        return found
    return _with_unnamed(found, replayed, captured)


def _with_unnamed(found: _Int64, replayed: Work, captured: Work) -> _Int64:
    """Also pair the remaining launches with the remaining replayed work, separately between any two neighbouring pairs.

    Between two pairs, launches and work are paired in order if all of these launches are unnamed, and if the sequence
    of their kinds equals the sequence of kinds of the replayed work. Otherwise, they stay unpaired.
    """
    rows = np.concatenate([[-1], np.flatnonzero(found != NO_PARTNER), [len(found)]])
    others = np.concatenate([[-1], found[rows[1:-1]], [len(captured.names)]])
    for row, next_row, other, next_other in zip(rows, rows[1:], others, others[1:], strict=False):
        own, launched = slice(row + 1, next_row), slice(other + 1, next_other)
        kinds_agree = np.array_equal(replayed.kinds[own], captured.kinds[launched])
        if kinds_agree and (captured.names[launched] == UNNAMED).all():
            found[own] = np.arange(other + 1, next_other)
    return found
