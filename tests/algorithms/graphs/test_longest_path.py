"""Longest paths equal those of a search that tries all paths."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.graphs.longest_path import (
    NO_EDGE,
    Edges,
    binding_edges,
    chains,
    earliest_times,
    has_cycle,
    path_to,
    slacks,
)


def edges_of(node_count: int, pairs: list[tuple[int, int]]) -> Edges:
    """Return a graph with an edge from the first to the second node of each pair."""
    table = np.array(pairs, np.uint32).reshape(-1, 2)
    return Edges(node_count, table[:, 0].copy(), table[:, 1].copy())


DIAMOND = edges_of(4, [(0, 1), (0, 2), (1, 3), (2, 3)])


def numbers(*values: int) -> np.ndarray:
    """Return an array of whole numbers."""
    return np.array(values, np.int64)


def test_the_longest_path_decides() -> None:
    """Node 3 is reached at time 7 by 0 → 2 → 3 (5 + 2), not at time 2 by 0 → 1 → 3 (1 + 1)."""
    assert earliest_times(DIAMOND, numbers(1, 5, 1, 2)).tolist() == [0, 1, 5, 7]
    assert slacks(DIAMOND, numbers(0, 0, 5, 0)).tolist() == [0, 5, 0, 0]


def test_the_first_of_the_latest_arrivals_binds() -> None:
    """Edges 2 and 3 both reach node 3 at time 4; edge 2 counts as the binding edge because it comes first."""
    binding = binding_edges(DIAMOND, numbers(1, 1, 4, 4))

    assert binding.tolist() == [NO_EDGE, 0, 1, 2]
    assert path_to(3, DIAMOND, binding).tolist() == [0, 2]


def test_a_cycle_is_an_error() -> None:
    """A graph with the edges 1 → 2 and 2 → 1 raises a ValueError that names the cycle."""
    circle = edges_of(3, [(0, 1), (1, 2), (2, 1)])

    assert has_cycle(circle)
    assert not has_cycle(DIAMOND)
    for question in (earliest_times, slacks):
        with pytest.raises(ValueError, match="cycle"):
            question(circle, numbers(1, 1, 1))
    with pytest.raises(ValueError, match="cycle"):
        path_to(1, circle, numbers(NO_EDGE, 2, 1))


def test_edges_that_do_not_fit_are_errors() -> None:
    """A ValueError is raised for an edge to a missing node, and for fewer weights than edges."""
    with pytest.raises(ValueError, match="node 7"):
        has_cycle(edges_of(2, [(0, 7)]))
    with pytest.raises(ValueError, match="differ in length"):
        earliest_times(DIAMOND, numbers(1))


@st.composite
def weighted_graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]], list[int]]:
    """Return a node count, the edges of an acyclic graph with shuffled numbers, and weights."""
    count = draw(st.integers(1, 9))
    names = draw(st.permutations(range(count)))
    pairs = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=20))
    forward = [(names[min(pair)], names[max(pair)]) for pair in pairs if pair[0] != pair[1]]
    weights = draw(st.lists(st.integers(-5, 50), min_size=len(forward), max_size=len(forward)))
    return count, forward, weights


@given(weighted_graphs())
def test_times_and_slacks_equal_those_of_a_full_search(graph: tuple[int, list[tuple[int, int]], list[int]]) -> None:
    """The native functions agree with oracles that try every path."""
    count, pairs, weights = graph
    known = list(zip(pairs, weights, strict=True))

    @cache
    def longest_to(node: int) -> int:
        return max((longest_to(a) + weight for (a, b), weight in known if b == node), default=0)

    @cache
    def least_from(node: int) -> int:
        return min((least_from(b) + weight for (a, b), weight in known if a == node), default=0)

    edges, values = edges_of(count, pairs), numbers(*weights)
    assert earliest_times(edges, values).tolist() == [longest_to(node) for node in range(count)]
    assert slacks(edges, values).tolist() == [least_from(node) for node in range(count)]


def test_chains_share_their_beginning():
    """With edges 0→1→2→3 and 1→4, the chain to 2 is part of the chain to 3, and the chain to 4 branches off at 1."""
    edges = Edges(5, np.array([0, 1, 2, 1], np.uint32), np.array([1, 2, 3, 4], np.uint32))
    binding = np.array([NO_EDGE, 0, 1, 2, 3])

    found = chains(edges, binding, np.array([3, 4, 2], np.uint32))

    assert found.edges.tolist() == [2, 1, 0, 3]
    assert found.first.tolist() == [0, 3, 4]
    assert found.parent.tolist() == [NO_EDGE, 0]
    assert found.origin.tolist() == [0, 1]
    assert found.chain_of_end.tolist() == [0, 1, 0]
