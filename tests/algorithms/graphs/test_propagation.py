"""`pass_on` does not change the sum of the amounts, and its results agree with a computation in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.graphs.propagation import Shares, pass_on

NODES = 4


@st.composite
def shares(draw):
    """Return random shares: each of four nodes passes its amounts on to earlier nodes and to three final targets."""
    rows = [
        draw(st.lists(st.tuples(st.integers(-3, node - 1), st.integers(0, 9)), max_size=4)) for node in range(NODES)
    ]
    first = np.cumsum([0, *map(len, rows)])
    target, weight = (np.array([row[part] for own in rows for row in own], np.int64) for part in (0, 1))
    return Shares(first, target, weight)


amounts = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, 2), st.integers(0, 10**12)), max_size=6)


def exact(known: Shares, given_amounts: list[tuple[int, int, int]]) -> dict[tuple[int, int], Fraction]:
    """Return the amounts that end up at each node, computed with exact fractions."""
    at: dict[tuple[int, int], Fraction] = {}
    for node, label, amount in given_amounts:
        at[label, node] = at.get((label, node), Fraction(0)) + amount
    for node in reversed(range(NODES)):
        rows = range(known.first[node], known.first[node + 1])
        total = sum(int(known.weight[row]) for row in rows)
        for label in range(3):
            amount = at.get((label, node), Fraction(0))
            if not total or not amount:
                continue
            del at[label, node]
            for row in rows:
                key = (label, int(known.target[row]))
                at[key] = at.get(key, Fraction(0)) + amount * int(known.weight[row]) / total
    return at


@given(shares(), amounts)
def test_amounts_add_up_and_are_right_to_a_few_units(known, given_amounts):
    """For each label, the amounts that arrive add up to the amounts given; each is off by at most a few units."""
    columns = (np.array([row[part] for row in given_amounts], np.int64) for part in range(3))
    arrived = pass_on(known, *columns)

    expected = exact(known, given_amounts)
    for label in range(3):
        assert arrived.amount[arrived.label == label].sum() == sum(row[2] for row in given_amounts if row[1] == label)
    for label, target, amount in zip(arrived.label, arrived.target, arrived.amount, strict=True):
        assert abs(expected.get((label, target), 0) - amount) <= 4 * NODES * NODES


def test_nodes_pass_on_only_to_earlier_nodes():
    """If a node passes a share of its amount to itself, a ValueError is raised."""
    with pytest.raises(ValueError, match="cycle"):
        pass_on(Shares(np.array([0, 1]), np.array([0]), np.array([1])), *(np.empty(0, np.int64),) * 3)
