"""Costs of attention: two products for each pair of query and key."""

from __future__ import annotations

from typing import NamedTuple

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError


class Attention(NamedTuple):
    """The sizes of one call."""

    batch: int
    query_heads: int
    queries: int
    keys: int
    key_heads: int
    width: int
    value_width: int

    def pairs(self) -> int:
        """Return the number of pairs of a query and a key, over batch and heads."""
        return self.batch * self.query_heads * self.queries * self.keys


def heads_first(arguments: Arguments, first: int = 0) -> Attention:
    """Read query, key and value of shape [batch, heads, length, width]."""
    query, key, value = (arguments.shape(first + index, 4) for index in range(3))
    return _checked(Attention(query[0], query[1], query[2], key[2], key[1], query[3], value[3]), value[2])


def heads_last(arguments: Arguments, first: int = 0) -> Attention:
    """Read query, key and value of shape [batch, length, heads, width]."""
    query, key, value = (arguments.shape(first + index, 4) for index in range(3))
    return _checked(Attention(query[0], query[2], query[1], key[1], key[2], query[3], value[3]), value[1])


def scaled_dot_product(arguments: Arguments, causal: int | None = None, *, layout: str = "heads first") -> Cost:
    """2·B·H·Nq·Nk·(d + dv), half if causal and square; bytes of query, key, value and output."""
    sizes = heads_first(arguments) if layout == "heads first" else heads_last(arguments)
    dense = 2 * sizes.pairs() * (sizes.width + sizes.value_width)
    output = sizes.batch * sizes.query_heads * sizes.queries * sizes.value_width * arguments.element_bytes(0)
    moved = sum(arguments.bytes(index) for index in range(3)) + output
    return Cost(_masked(dense, sizes, arguments, causal), moved, "matrix", arguments.precision(0), dense)


def scaled_dot_product_backward(
    arguments: Arguments, causal: int | None = None, *, layout: str = "heads first"
) -> Cost:
    """Five products, the scores being computed again: 2·B·H·Nq·Nk·(3·d + 2·dv), half if causal and square.

    Bytes of the gradient of the output, of query, key, value, and of their gradients.
    """
    sizes = heads_first(arguments, 1) if layout == "heads first" else heads_last(arguments, 1)
    dense = 2 * sizes.pairs() * (3 * sizes.width + 2 * sizes.value_width)
    moved = arguments.bytes(0) + 2 * sum(arguments.bytes(index) for index in (1, 2, 3))
    flops = _masked(dense, sizes, arguments, causal)
    scores = 2 * sizes.pairs() * sizes.width * flops // max(dense, 1)
    return Cost(flops, moved, "matrix", arguments.precision(1), dense, repeated_flops=scores)


def variable_length(arguments: Arguments) -> Cost:
    """Sequences joined along one dimension: the lengths are data, so operations are unknown; bytes as ever."""
    query, _, value = (arguments.shape(index, 3) for index in range(3))
    output = query[0] * query[1] * value[2] * arguments.element_bytes(0)
    moved = sum(arguments.bytes(index) for index in range(3)) + output
    return Cost(None, moved, "matrix", arguments.precision(0), None, "the lengths of the sequences are data")


def paged(arguments: Arguments, keys: int = 1) -> Cost:
    """2·H·(d + dv)·(pairs of query and key); in prefill, the new tokens of a request see half of themselves.

    Sums over the requests come from the name of the engine's step. Bytes of the queries and outputs of all new tokens, and
    of the keys and values in the cache.
    """
    _, heads, width = arguments.shape(0, 3)
    key_heads = arguments.shape(keys)[-2]
    sums = arguments.sums
    if not sums:
        message = "the lengths of the requests are data, and no annotation of the step sums them up"
        raise UnknownCostError(message)
    dense = 4 * heads * width * (sums["c_sqsk"] + sums["g_sqsk"])
    flops = dense - 2 * heads * width * sums["c_sqsq"]
    tokens, cached = sums["c_sq"] + sums["g_sq"], sums["c_sk"] + sums["g_sk"]
    moved = 2 * width * arguments.element_bytes(0) * (tokens * heads + cached * key_heads)
    return Cost(flops, moved, "matrix", arguments.precision(0), dense)


def flash_forward(arguments: Arguments) -> Cost:
    """`aten::_flash_attention_forward`: as `scaled_dot_product` on [batch, length, heads, width], or joined sequences."""
    if len(arguments.shape(0)) == 3:  # noqa: PLR2004 -- joined sequences have no batch
        return variable_length(arguments)
    return scaled_dot_product(arguments, 8, layout="heads last")


def _masked(dense: int, sizes: Attention, arguments: Arguments, causal: int | None) -> int:
    """Return the operations under the mask; the argument is a boolean, or the number of a mask, 0 for none."""
    is_causal = causal is not None and arguments.text(causal) not in {"", "False", "0"}
    if not is_causal:
        return dense
    if sizes.queries != sizes.keys:
        message = "a causal mask over queries and keys of different number: which are masked is unknown"
        raise UnknownCostError(message)
    return dense // 2


def _checked(sizes: Attention, values: int) -> Attention:
    if sizes.keys != values or not sizes.key_heads or sizes.query_heads % sizes.key_heads:
        message = "query, key and value do not fit together"
        raise UnknownCostError(message)
    return sizes
