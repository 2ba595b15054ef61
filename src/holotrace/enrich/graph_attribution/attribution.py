"""Chooses the recording that explains each replay of a graph.

A recording explains a replay if it contains the same kernels and shows which operators launched them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.common_subsequence import NO_PARTNER
from holotrace.algorithms.nested.nesting import NO_PARENT
from holotrace.enrich.events.event_rows import gathered, of_events, rows_of_events
from holotrace.enrich.graph_attribution.alignment import Work, aligned
from holotrace.enrich.graph_attribution.kernel_names import numbered_names
from holotrace.enrich.graph_attribution.references import CAPTURE, Sequence, captured_sequences, eager_sequences
from holotrace.enrich.graph_attribution.replays import replayed_work
from holotrace.enrich.recorded_host.nodes import recorded_nodes, recorded_runtime_owner
from holotrace.schema import EventKind
from holotrace.store.captures import batch_sizes
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]

_LEAST_SHARE = {CAPTURE: 0.5}
_LEAST_SHARE_ELSEWHERE = 0.8
"""A recording explains a replay only if it can be paired with at least this share of the replay's work. For recordings
without graphs, this least share is higher, because they may also contain other work with similar kernels.
"""


class Match(NamedTuple):
    """The recording whose work matches the work of a graph replay, with the pairs of matching work.

    reference  number of the recording in `references_of`
    how        the kind of recording, as in `references`
    nodes      for each kernel, copy or memset of the replay, its row in the recording's `recorded_nodes`; -1 if
               unknown
    is_sure    False if another recording with different shapes explains the replay equally well
    """

    reference: int
    how: str
    nodes: _Rows
    is_sure: bool


class Replay(NamedTuple):
    """One launch of a graph: its rows [first, last) in `replayed_work`, and the recording that explains it."""

    first: int
    last: int
    match: Match | None


class _Candidate(NamedTuple):
    reference: int
    sequence: Sequence


def references_of(rank_trace: RankTrace) -> tuple[RankTrace, ...]:
    """Return the recordings that may explain the graphs of a rank: its captures, and its own trace."""
    return (*(capture.trace for capture in rank_trace.captures), rank_trace.unselected)


@derived
def replays(rank_trace: RankTrace) -> tuple[Replay, ...]:
    """Return every launch of a graph, in order, with the recording that explains it.

    Captures for the replay's batch size are tried first. If no captures have this batch size, captures for the next
    larger size are tried, because engines pad batches. If these captures do not explain the replay, all recordings are
    tried.

    The chosen recording is the one that can be paired with the largest share of the replay's work. If several have the
    same share, the shortest one is chosen. If several are equally short, the first of them after the recording of
    the previous replay is chosen, because engines replay the parts of a model in the order in which they captured them.
    """
    work = replayed_work(rank_trace)
    if work.is_empty():
        return ()
    candidates = _candidates(rank_trace)
    launch = work["launch_index"].to_numpy()
    bounds = [0, *(np.flatnonzero(launch[1:] != launch[:-1]) + 1).tolist(), len(launch)]
    choice = _Choice(rank_trace, work, candidates)
    sizes = _batch_sizes(rank_trace, work["launch_index"].gather(bounds[:-1]))
    return tuple(
        Replay(first, last, choice.of(first, last, size))
        for first, last, size in zip(bounds, bounds[1:], sizes, strict=False)
    )


def _candidates(rank_trace: RankTrace) -> list[_Candidate]:
    return list(_listed(rank_trace))


def _listed(rank_trace: RankTrace) -> Iterator[_Candidate]:
    references = references_of(rank_trace)
    of_files = [capture.batch_size for capture in rank_trace.captures] + [None]
    for number, (reference, batch_size) in enumerate(zip(references, of_files, strict=True)):
        for sequence in captured_sequences(reference) or eager_sequences(reference):
            size = sequence.batch_size if batch_size is None else batch_size
            yield _Candidate(number, sequence._replace(batch_size=size))
    if captured_sequences(rank_trace.unselected):
        yield from (_Candidate(len(references) - 1, sequence) for sequence in eager_sequences(rank_trace.unselected))


def _batch_sizes(rank_trace: RankTrace, launches: pl.Series) -> list[int | None]:
    """Return the batch size of each launch, or None if no annotation around the launch contains a batch size.

    If several annotations around the launch contain a batch size, that of the innermost annotation is used.
    """
    nodes, owners = recorded_nodes(rank_trace), recorded_runtime_owner(rank_trace)
    stated = batch_sizes(rank_trace.texts(nodes["name"])).to_list()
    parent = nodes["parent"].to_list()
    around = np.append(owners["node"].to_numpy(), NO_PARENT)[rows_of_events(owners, launches)]
    return [_nearest(stated, parent, node) for node in around.tolist()]


def _nearest(stated: list[int | None], parent: list[int], node: int) -> int | None:
    while node != NO_PARENT:
        if stated[node] is not None:
            return stated[node]
        node = parent[node]
    return None


class _Choice:
    """Chooses the recording that names a replay's operators; compares each recording with equal replays only once."""

    def __init__(self, rank_trace: RankTrace, work: pl.DataFrame, candidates: list[_Candidate]) -> None:
        self._work = work
        self._candidates = candidates
        self._names = rank_trace.texts(work["name"]).to_list()
        self._ids = work["name"].to_numpy()
        self._kinds = np.array([_compared_kind(kind) for kind in work["kind"]], np.int64)
        self._streams = work["stream"].to_numpy()
        self._pairs: dict[tuple[bytes, int], _Rows] = {}
        self._same = _first_equal(candidates)
        self._references = references_of(rank_trace)
        self._known_shapes: dict[int, tuple[str | None, ...]] = {}
        self._last = -1

    def of(self, first: int, last: int, batch_size: int | None) -> Match | None:
        """Return the recording that names this replay's operators; None if no recording matches."""
        compared: list[int] | range = self._of_size(batch_size)
        best = self._best(first, last, compared)
        if best is None:
            compared = range(len(self._candidates))
            best = self._best(first, last, compared)
        if best is None:
            return None
        self._last, partner = best
        reference, sequence = self._candidates[self._last]
        is_sure = self._is_sure(self._last, compared)
        return Match(reference, sequence.how, np.append(sequence.nodes, NO_PARENT)[partner], is_sure)

    def _is_sure(self, chosen: int, compared: list[int] | range) -> bool:
        """Return whether all compared recordings with the same work as the chosen one also have its input shapes."""
        equal = [number for number in compared if self._same[number] == self._same[chosen]]
        return all(self._shapes(number) == self._shapes(chosen) for number in equal)

    def _shapes(self, number: int) -> tuple[str | None, ...]:
        """Return the input shapes of each operator of a recording."""
        if number not in self._known_shapes:
            reference, sequence = (
                self._references[self._candidates[number].reference],
                self._candidates[number].sequence,
            )
            events = gathered(recorded_nodes(reference)["event_index"], sequence.nodes)
            inputs = of_events(reference.table("operator_inputs", ["event_index", "input_dims"]), events)
            self._known_shapes[number] = tuple(reference.texts(inputs["input_dims"]))
        return self._known_shapes[number]

    def _of_size(self, batch_size: int | None) -> list[int]:
        """Return the captures for a batch size, or for the next larger one; if there are none, return all captures.

        Captures whose batch size is unknown are always included.
        """
        captures = [number for number, one in enumerate(self._candidates) if one.sequence.how == CAPTURE]
        sizes = {self._candidates[number].sequence.batch_size for number in captures} - {None}
        padded = min(
            (size for size in sizes if batch_size is not None and size is not None and size >= batch_size), default=None
        )
        return [
            number
            for number in captures
            if padded is None or self._candidates[number].sequence.batch_size in (padded, None)
        ]

    def _best(self, first: int, last: int, numbers: list[int] | range) -> tuple[int, _Rows] | None:
        best: tuple[tuple[float, int, int], int, _Rows] | None = None
        for number in sorted(numbers, key=lambda one: (one <= self._last, one)):
            sequence = self._candidates[number].sequence
            share = self._highest_share(first, last, number)
            if share < _LEAST_SHARE.get(sequence.how, _LEAST_SHARE_ELSEWHERE) or (best and share < best[0][0]):
                continue
            partner = self._partner(first, last, number)
            merit = (float((partner != NO_PARTNER).mean()), -len(sequence.names), 0)
            if merit[0] >= _LEAST_SHARE.get(sequence.how, _LEAST_SHARE_ELSEWHERE) and (best is None or merit > best[0]):
                best = (merit, number, partner)
        return None if best is None else best[1:]

    def _highest_share(self, first: int, last: int, number: int) -> float:
        """Return an upper bound on the share of the replay that a candidate explains.

        The bound is computed only from the numbers of kernels, copies and memsets in the replay and the candidate.
        """
        sequence = self._candidates[number].sequence
        kinds = Counter(_compared_kind(kind) for kind in sequence.kinds.tolist())
        own = Counter(self._kinds[first:last].tolist())
        return sum(min(count, kinds[kind]) for kind, count in own.items()) / (last - first)

    def _partner(self, first: int, last: int, number: int) -> _Rows:
        same = self._same[number]
        rows = slice(first, last)
        key = (self._ids[rows].tobytes() + self._streams[rows].tobytes(), same)
        if key not in self._pairs:
            sequence = self._candidates[same].sequence
            own, captured = numbered_names(self._names[rows], list(sequence.names))
            kinds = np.array([_compared_kind(kind) for kind in sequence.kinds.tolist()], np.int64)
            self._pairs[key] = aligned(Work(own, self._kinds[rows]), self._streams[rows], Work(captured, kinds))
        return self._pairs[key]


def _compared_kind(kind: int) -> int:
    """Return the kind to use in comparisons: copies and memsets keep their kind; everything else counts as a kernel."""
    return kind if kind in (EventKind.GPU_MEMCPY, EventKind.GPU_MEMSET) else EventKind.KERNEL


def _first_equal(candidates: list[_Candidate]) -> list[int]:
    """Return, for each candidate, the number of the first candidate that has the same names and kinds.

    Many layers have equal captures. A replay is compared with only the first of several equal captures.
    """
    first: dict[tuple[object, ...], int] = {}
    return [
        first.setdefault((one.sequence.names, one.sequence.kinds.tobytes()), number)
        for number, one in enumerate(candidates)
    ]
