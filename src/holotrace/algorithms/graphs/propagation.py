"""Passes amounts from node to node until they reach a final target; the whole numbers add up exactly."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace import _native

Int64Array: TypeAlias = npt.NDArray[np.int64]


class Shares(NamedTuple):
    """The proportions in which nodes pass on the amounts they receive.

    first   the rows `first[i]` to `first[i + 1]` of the other columns are the targets of node i
    target  a node before node i or, if negative, the final target -1 - target
    weight  proportion of the target; a node without positive weights keeps what it receives
    """

    first: Int64Array
    target: Int64Array
    weight: Int64Array


class Arrived(NamedTuple):
    """The amounts that arrived, one per label and target.

    label     as given
    target    the node that kept the amount; a negative number means a final target, as in `Shares`
    amount
    received  for each node, the amount it received from other nodes
    """

    label: Int64Array
    target: Int64Array
    amount: Int64Array
    received: Int64Array


def pass_on(shares: Shares, node: Int64Array, label: Int64Array, amount: Int64Array) -> Arrived:
    """Pass on the amount of each label, starting from its `node`; nodes are processed from the last to the first.

    The results of a label add up exactly to its amount, because cumulative sums are rounded, not single results.

    >>> shares = Shares(np.array([0, 1, 3]), np.array([-1, 0, -2]), np.array([1, 2, 1]))
    >>> arrived = pass_on(shares, np.array([1]), np.array([7]), np.array([100]))
    >>> arrived.target.tolist(), arrived.amount.tolist(), arrived.received.tolist()
    ([-2, -1], [33, 67], [67, 0])

    Raises:
        ValueError: a node passes on to itself or to a later node.
    """
    return Arrived(*_native.pass_on(*shares, node, label, amount))
