"""Pass integer amounts from node to node until they reach a final target, without rounding errors in the sum."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace import _native

Int64Array: TypeAlias = npt.NDArray[np.int64]


class Shares(NamedTuple):
    """The proportions in which nodes pass on the amounts that they receive.

    first   the rows of node i in the other columns are `first[i]:first[i + 1]`
    target  a node before i, or `-1 - n` for the final target n
    weight  proportion that the target gets; a node without positive weights keeps what it receives
    """

    first: Int64Array
    target: Int64Array
    weight: Int64Array


class Arrived(NamedTuple):
    """The final amounts, one per label and target.

    label     the label of the amount
    target    the node that kept the amount, or `-1 - n` if the final target n received it
    amount
    received  for each node, the amount it received from other nodes
    """

    label: Int64Array
    target: Int64Array
    amount: Int64Array
    received: Int64Array


def pass_on(shares: Shares, node: Int64Array, label: Int64Array, amount: Int64Array) -> Arrived:
    """Pass each amount on from its node to targets; all parts of the amount keep its label.

    Nodes are processed from the last to the first.

    Running sums are rounded, not single parts. For each label, the final amounts therefore add up exactly to the
    original amounts.

    >>> shares = Shares(np.array([0, 1, 3]), np.array([-1, 0, -2]), np.array([1, 2, 1]))
    >>> arrived = pass_on(shares, np.array([1]), np.array([7]), np.array([100]))
    >>> arrived.target.tolist(), arrived.amount.tolist(), arrived.received.tolist()
    ([-2, -1], [33, 67], [67, 0])

    Raises:
        ValueError: a node passes amounts on to itself or to a later node.
    """
    return Arrived(*_native.pass_on(*shares, node, label, amount))
