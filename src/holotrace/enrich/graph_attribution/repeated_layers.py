"""Finds the layers of a model in a sequence of kernels: each layer repeats the same kernels in the same order.

A model with n layers launches most kernels of a layer n times, or a multiple of n times. Of these kernels, those that
always run in the same order are the anchors of the layers. The kernels between the anchors may differ from layer to
layer, for example in mixtures of experts, or if local and global attention alternate.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_Rows = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
_Anchors = npt.NDArray[np.int64]
"""A matrix with one row for each anchor and one column for each layer: the index of the anchor's kernel in this layer.

The rows are sorted by the first column.
"""

FEWEST_LAYERS = 3
"""Two equal layers may be a coincidence."""

_FEWEST_ANCHORS = 3
_LEAST_ANCHORS = 1 / 3
"""Of all kernels from the first anchor to the last, at least this share must be anchors; else there are no layers."""

_MOST_LEADERS = 100
"""Only about this many kernels are tried as the first anchor, to save time on sequences without layers."""

_MOST_IN_A_LAYER = 8
"""A kernel that a layer runs more often than this is not an anchor."""

_COMPARED = 4
"""This many kernels before the first layer are compared with the kernels before other layers."""

_MOST = 0.5
_FREQUENT = 0.25
_LEAST_SHARE = 0.5
"""At least this share of the kernels must be in layers; otherwise, the repeated kernels are not the model's layers."""

_ATTENTION = re.compile(
    r"attention|attn|fmha|flash|sdpa|(?<![a-z])mla|selective_scan|mamba|ssd_|delta_rule|wkv", re.IGNORECASE
)
"""Kernels that a layer runs once: attention, or the recurrence that replaces it."""

_NORM = re.compile(r"norm|rsqrt", re.IGNORECASE)
"""Normalisations, including kernels of torch.compile with rsqrt in their names."""


class Layers(NamedTuple):
    """The layer of each kernel in a sequence; -1 outside layers.

    part         from 0; a sequence with a forward and a backward pass has two parts
    layer        from 0, in the order in which the layers run
    position     from 0, within the layer
    layer_count  number of layers in the pass
    """

    part: _Rows
    layer: _Rows
    position: _Rows
    layer_count: _Rows


def repeated_layers(kernels: _Rows, names: list[str]) -> Layers | None:
    """Return the layer of each kernel in a sequence; None if fewer than half of the kernels are in layers.

    Args:
        kernels: a number for each kernel; launches of the same kernel with the same geometry have the same number.
        names: name of each kernel.
    """
    layers = Layers(*(np.full(len(kernels), -1, np.int64) for _ in Layers._fields))
    is_norm = np.array([bool(_NORM.search(name)) for name in names], np.bool_)
    for part, anchors in enumerate(_parts(kernels, _attention_count(names))):
        for bounds in _passes(kernels, is_norm, anchors):
            for layer, (first, last) in enumerate(bounds):
                own = slice(first, last)
                layers.part[own], layers.layer[own], layers.layer_count[own] = part, layer, len(bounds)
                layers.position[own] = np.arange(last - first)
    return layers if (layers.layer >= 0).mean() >= _LEAST_SHARE else None


def _attention_count(names: list[str]) -> int | None:
    """Return how many times the most frequent attention kernel runs; None if there is no attention kernel."""
    counts = Counter(name for name in names if _ATTENTION.search(name))
    return max(counts.values()) if counts else None


def _parts(kernels: _Rows, attention_count: int | None) -> list[_Anchors]:
    """Choose the number of layers, and return one matrix of anchors for each part of the sequence.

    The number of layers is at most `attention_count`. For each possible number of layers, count the kernels that would
    be anchors. A number of layers is plausible if it gives at least half as many anchors as the number that gives the
    most. Choose the largest plausible number. For example, if two kinds of layers alternate, half the real number is
    also plausible, but would merge each pair of layers into one layer.

    If `attention_count` is None, the largest plausible number may be twice the real number, because each half of a
    layer can look like a layer. In this case, choose the plausible number for which the largest share of the layers run
    the same kernels.
    """
    candidates = {
        count: parts
        for count in _layer_counts(kernels)
        if (attention_count is None or count <= attention_count)
        and (parts := _consistent(kernels, _lines(kernels, count)))
    }
    best = max((_held(parts) for parts in candidates.values()), default=0)
    similar = [count for count, parts in candidates.items() if 2 * _held(parts) >= best]
    if not similar:
        return []
    if attention_count is not None:
        return candidates[max(similar)]
    return candidates[max(similar, key=lambda count: (round(_equal_share(kernels, candidates[count]), 1), count))]


def _held(parts: list[_Anchors]) -> int:
    return sum(anchors.size for anchors in parts)


def _equal_share(kernels: _Rows, parts: list[_Anchors]) -> float:
    """Return the share of the layers that run the most frequent sequence of kernels."""
    counts = [Counter(_contents(kernels, anchors[0])).most_common(1)[0][1] for anchors in parts]
    return sum(counts) / sum(len(anchors[0]) - 1 for anchors in parts)


def _layer_counts(kernels: _Rows) -> list[int]:
    """Return the possible numbers of layers: how often a kernel occurs, or this count divided by a small integer."""
    occurrences = np.unique(np.unique(kernels, return_counts=True)[1])
    numbers = {
        int(count) // repeats
        for count in occurrences
        for repeats in range(1, _MOST_IN_A_LAYER + 1)
        if not count % repeats
    }
    return sorted(number for number in numbers if number >= FEWEST_LAYERS)


def _lines(kernels: _Rows, layer_count: int) -> _Anchors:
    """Return the candidate anchors; a kernel that runs k times in every layer yields k candidates."""
    order = np.argsort(kernels, kind="stable")
    _, firsts, counts = np.unique(kernels[order], return_index=True, return_counts=True)
    is_fit = (counts % layer_count == 0) & (counts <= _MOST_IN_A_LAYER * layer_count)
    lines = [
        order[first : first + count].reshape(layer_count, -1).T
        for first, count in zip(firsts[is_fit], counts[is_fit], strict=True)
    ]
    rows = np.concatenate(lines) if lines else np.empty((0, layer_count), np.int64)
    return rows[np.argsort(rows[:, 0])]


def _consistent(kernels: _Rows, rows: _Anchors) -> list[_Anchors]:
    """Divide candidate anchors into parts, so that the anchors of a part run in the same order in every layer.

    Parts, such as the forward and the backward pass, run one after the other. Candidates that do not belong to any part
    are dropped.
    """
    parts, left = [], rows
    while len(left) >= _FEWEST_ANCHORS:
        leaders = range(0, len(left) - _FEWEST_ANCHORS + 1, 1 + len(left) // _MOST_LEADERS)
        groups = [_in_step(left, first) for first in leaders]
        largest = max(groups, key=np.count_nonzero)
        if np.count_nonzero(largest) < _FEWEST_ANCHORS:
            break
        parts.append(left[largest])
        left = left[~largest]
    return _apart([part for part in parts if _are_layers(kernels, part)])


def _are_layers(kernels: _Rows, part: _Anchors) -> bool:
    """Return whether these anchors show real layers: they must include enough different kernels and be close together."""
    held = part.size / (part.max() - part.min() + 1)
    return len(np.unique(kernels[part[:, 0]])) >= _FEWEST_ANCHORS and held >= _LEAST_ANCHORS


def _in_step(rows: _Anchors, first: int) -> _Bools:
    """Return which anchors run exactly once between any two successive runs of the anchor `first`."""
    own = rows[first]
    in_step: _Bools = (rows > own).all(axis=1) & (rows[:, :-1] < own[1:]).all(axis=1)
    in_step[first] = True
    return in_step


def _apart(parts: list[_Anchors]) -> list[_Anchors]:
    """Return parts that do not overlap, in order of position; where parts overlap, the largest is kept."""
    kept: list[_Anchors] = []
    for part in sorted(parts, key=lambda one: -one.size):
        if all(part.min() > other.max() or part.max() < other.min() for other in kept):
            kept.append(part)
    return sorted(kept, key=lambda one: int(one.min()))


def _passes(kernels: _Rows, is_norm: _Bools, anchors: _Anchors) -> list[list[tuple[int, int]]]:
    """Return, for each pass through the model, the rows [first, last) of each layer.

    A new pass begins where the kernels that run before the first layer, such as those of the embedding, run again.
    """
    usual = np.frombuffer(Counter(_contents(kernels, anchors[0])).most_common(1)[0][0], kernels.dtype)
    starts = anchors[0] - _kernels_before_first_anchor(kernels, is_norm, int(anchors[0, 0]), usual)
    is_first = _begins_pass(kernels, starts)
    ends = np.append(starts[1:], 0)
    begins_next = (anchors[:, :-1] >= starts[1:]).mean(axis=1) >= _MOST
    inside = anchors[~begins_next]
    tails = _tails(kernels, inside.max(axis=0)[:-1][~is_first[1:]] + 1, starts[1:][~is_first[1:]])
    for layer in np.flatnonzero(np.append(is_first[1:], True)).tolist():
        end = int(inside[:, layer].max()) + 1
        ends[layer] = end + max((_common(kernels[end:], tail) for tail in tails), default=0)
    bounds = list(zip(starts.tolist(), ends.tolist(), strict=True))
    begins = [*np.flatnonzero(is_first).tolist(), len(starts)]
    return [bounds[first:last] for first, last in pairwise(begins)]


def _begins_pass(kernels: _Rows, starts: _Rows) -> _Bools:
    """Return, for each layer, whether it is the first layer of a pass, judging by the kernels before it."""
    before = kernels[max(0, starts[0] - _COMPARED) : starts[0]]
    is_first = np.array([len(before) > 0 and np.array_equal(kernels[at - len(before) : at], before) for at in starts])
    is_first[0] = True
    lengths = np.diff(np.append(np.flatnonzero(is_first), len(starts)))
    return is_first if lengths.min() >= FEWEST_LAYERS else np.arange(len(starts)) == 0


def _contents(kernels: _Rows, firsts: _Rows) -> list[bytes]:
    """Return the kernels of each layer, from its first anchor to the first anchor of the next layer."""
    return [kernels[first:last].tobytes() for first, last in pairwise(firsts)]


def _kernels_before_first_anchor(kernels: _Rows, is_norm: _Bools, first: int, usual: _Rows) -> int:
    """Return how many kernels of a layer come before its first anchor.

    Kernels between the last anchor of a layer and the first anchor of the next layer may belong to either layer.
    Kernels right before the first anchor of the first layer belong to this layer if the other layers run the same
    kernels before their first anchors. There is one exception: a normalisation right before the first anchor belongs
    to the first layer even if the other layers run a different normalisation kernel before their first anchors. The
    kernels may differ because the kernel of later layers often also adds the residual.
    """
    before = min(first, len(usual) - 1)
    same = kernels[first - before : first] == usual[len(usual) - before :]
    common = int(np.argmin(same[::-1])) if not same.all() else before
    if common or not before:
        return common
    ends_in_norm = is_norm[np.flatnonzero(kernels == usual[-1])[0]]
    return int(is_norm[first - 1] and ends_in_norm)


def _tails(kernels: _Rows, ends: _Rows, starts: _Rows) -> list[_Rows]:
    """Return the sequences of kernels that often come after the last anchor of a layer."""
    tails = Counter(kernels[end:start].tobytes() for end, start in zip(ends, starts, strict=True))
    fewest = _FREQUENT * max(tails.values(), default=0)
    return [np.frombuffer(tail, kernels.dtype) for tail, count in tails.items() if count >= fewest]


def _common(kernels: _Rows, tail: _Rows) -> int:
    """Return the number of kernels in the longest common prefix of both sequences."""
    same = kernels[: len(tail)] == tail[: len(kernels)]
    return len(same) if same.all() else int(np.argmin(same))
