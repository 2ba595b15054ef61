"""Compute the costs of attention: two matrix products, whose FLOPs grow with the number of query-key pairs."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError

_LENGTHS = "the lengths of the sequences were not recorded"
_FLASH_3_LENGTHS = (3, 10, 11, 14, 15, 16)
"""Optional inputs of FlashAttention 3 that make the lengths of the sequences depend on data.

In this order: the new keys, the lengths of the query sequences, the used lengths of the key sequences, the page table
of the cache, the row of each request in the cache, and the padding.
"""


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
        """Return the number of query-key pairs, summed over batch and heads."""
        return self.positions() * self.query_heads

    def positions(self) -> int:
        """Return the number of query-key pairs in one head, summed over the batch."""
        return self.batch * self.queries * self.keys


def heads_first(arguments: Arguments, first: int = 0) -> Attention:
    """Read the sizes from the shapes of query, key and value: [batch, heads, length, width]."""
    query, key, value = (arguments.shape(first + index, 4) for index in range(3))
    return _checked(Attention(query[0], query[1], query[2], key[2], key[1], query[3], value[3]), value[2])


def heads_last(arguments: Arguments, first: int = 0) -> Attention:
    """Read the sizes from the shapes of query, key and value: [batch, length, heads, width]."""
    query, key, value = (arguments.shape(first + index, 4) for index in range(3))
    return _checked(Attention(query[0], query[2], query[1], key[1], key[2], query[3], value[3]), value[1])


def scaled_dot_product(arguments: Arguments, causal: int | None = None, *, layout: str = "heads first") -> Cost:
    """FLOPs: 2·B·H·Nq·Nk·(d + dv), half if causal with Nq = Nk. Bytes: query, key, value and output."""
    sizes = heads_first(arguments) if layout == "heads first" else heads_last(arguments)
    dense = 2 * sizes.pairs() * (sizes.width + sizes.value_width)
    output = sizes.batch * sizes.query_heads * sizes.queries * sizes.value_width * arguments.element_bytes(0)
    moved = sum(arguments.bytes(index) for index in range(3)) + output
    return Cost(_masked(dense, sizes, arguments, causal), moved, "matrix", arguments.precision(0), dense)


def scaled_dot_product_backward(
    arguments: Arguments, causal: int | None = None, *, layout: str = "heads first"
) -> Cost:
    """FLOPs: five products, because scores are recomputed: 2·B·H·Nq·Nk·(3·d + 2·dv), half if causal with Nq = Nk.

    Bytes: output gradient, query, key and value, and their gradients.
    """
    sizes = heads_first(arguments, 1) if layout == "heads first" else heads_last(arguments, 1)
    dense = 2 * sizes.pairs() * (3 * sizes.width + 2 * sizes.value_width)
    moved = arguments.bytes(0) + 2 * sum(arguments.bytes(index) for index in (1, 2, 3))
    flops = _masked(dense, sizes, arguments, causal)
    scores = 2 * sizes.pairs() * sizes.width * flops // max(dense, 1)
    return Cost(flops, moved, "matrix", arguments.precision(1), dense, repeated_flops=scores)


def flash(arguments: Arguments, causal: int, window: int | None = None) -> Cost:
    """FlashAttention. FLOPs: 2·H·(d + dv)·(unmasked pairs). Bytes: as for `scaled_dot_product`.

    The mask is aligned at its end: the last query sees the last key. A causal mask over q queries and k keys leaves
    q·(k - q/2) of the q·k pairs, which is half of them if q = k. With a sliding window of keys, the unmasked
    pairs are counted exactly.
    """
    sizes = heads_last(arguments)
    each = 2 * sizes.query_heads * (sizes.width + sizes.value_width)
    twice = sizes.batch * _twice_visible(arguments, sizes.queries, sizes.keys, causal, window)
    output = sizes.batch * sizes.query_heads * sizes.queries * sizes.value_width * _result_bytes(arguments, 0)
    moved = sum(arguments.bytes(index) for index in range(3)) + output
    return Cost(each * twice // 2, moved, "matrix", arguments.precision(0), each * sizes.positions())


def flash_backward(arguments: Arguments, causal: int, window: int | None = None, first: int = 1) -> Cost:
    """`flash` with five products. FLOPs: 2·H·(3·d + 2·dv)·(unmasked pairs). Bytes: as for `scaled_dot_product_backward`."""
    sizes = heads_last(arguments, first)
    twice = sizes.batch * _twice_visible(arguments, sizes.queries, sizes.keys, causal, window)
    return _backward(arguments, sizes, twice, first=first)


def joined(  # noqa: PLR0913 -- positions of inputs
    arguments: Arguments,
    *,
    ends: int,
    longest: int,
    causal: int,
    window: int | None = None,
    pages: tuple[int, ...] = (),
) -> Cost:
    """Attention over sequences joined along one dimension: as `flash`, if the lengths of the sequences are known.

    The lengths are known if all sequences are as long as the longest one. Otherwise, the FLOPs are computed from sums
    over all requests, if the name of the inference engine's step contains these sums. If neither lengths nor sums are
    known, only the bytes are computed. If keys and values are in cache pages, FLOPs and bytes are computed as in
    `paged`.
    """
    if any(arguments.has_tensor(index) and arguments.dims[index] for index in pages):
        return paged(arguments)
    query, key, value = (arguments.shape(index, 3) for index in range(3))
    output = query[0] * query[1] * value[2] * _result_bytes(arguments, 0)
    moved = sum(arguments.bytes(index) for index in range(3)) + output
    each = 2 * query[1] * (query[2] + value[2])
    twice = _twice_visible_joined(arguments, (query[0], key[0]), (ends, longest, causal, window))
    if twice is None:
        return Cost(None, moved, "matrix", arguments.precision(0), None, _LENGTHS)
    return Cost(each * twice[0] // 2, moved, "matrix", arguments.precision(0), each * twice[1])


def joined_backward(  # noqa: PLR0913 -- positions of inputs
    arguments: Arguments, *, ends: int, longest: int, causal: int, window: int | None = None, first: int = 1
) -> Cost:
    """Gradient of `joined`: as `flash_backward`; the FLOPs may be unknown, as in `joined`."""
    query, key, value = (arguments.shape(first + index, 3) for index in range(3))
    sizes = Attention(1, query[1], query[0], key[0], key[1], query[2], value[2])
    twice = _twice_visible_joined(arguments, (query[0], key[0]), (ends, longest, causal, window))
    pairs = (None, None) if twice is None else twice
    return _backward(arguments, sizes, *pairs, first=first)


def flash_3(arguments: Arguments) -> Cost:
    """FlashAttention 3: as `paged` if there is a key-value cache, as `joined` if `cu_seqlens_q` is given, else as `flash`."""
    if arguments.is_given(5):
        message = "no formula covers calls with a second query, which is multiplied by the values"
        raise UnknownCostError(message)
    if any(arguments.is_given(index) for index in _FLASH_3_LENGTHS):
        return paged(arguments)
    if arguments.is_given(7):
        return joined(arguments, ends=7, longest=12, causal=24, window=25)
    return flash(arguments, causal=24, window=25)


def flash_3_backward(arguments: Arguments, ends: int, longest: int) -> Cost:
    """FlashAttention 3: as `joined_backward` if `cu_seqlens_q` is given, otherwise as `flash_backward`."""
    if arguments.is_given(ends):
        return joined_backward(arguments, ends=ends, longest=longest, causal=16, window=17)
    return flash_backward(arguments, causal=16, window=17)


def xformers_flash(arguments: Arguments) -> Cost:
    """FlashAttention called by xFormers: as `joined` if `cu_seqlens_q` is given, otherwise as `flash`."""
    if arguments.is_given(3):
        return joined(arguments, ends=3, longest=6, causal=10, window=11, pages=(5, 14))
    return flash(arguments, causal=10, window=11)


def xformers_flash_backward(arguments: Arguments) -> Cost:
    """The gradient of `xformers_flash`. Input 0 is a boolean, and input 1 is the gradient of the result."""
    if arguments.is_given(7):
        return joined_backward(arguments, ends=7, longest=9, causal=13, window=14, first=2)
    return flash_backward(arguments, causal=13, window=14, first=2)


def efficient_backward(arguments: Arguments, ends: int, mask: int) -> Cost:
    """Gradient of `efficient`: as `scaled_dot_product_backward`, or as `flash_backward` if `custom_mask_type` is 2."""
    if arguments.is_given(ends):
        sizes = Attention(1, arguments.shape(1, 4)[2], 0, 0, 0, 0, 0)
        return _backward(arguments, sizes, None)
    if arguments.text(mask) == "2":
        return flash_backward(arguments, causal=mask)
    return scaled_dot_product_backward(arguments, mask, layout="heads last")


def efficient(arguments: Arguments, ends: int = 4, mask: int = 9) -> Cost:
    """As `scaled_dot_product`, or as `flash` if `custom_mask_type` is 2; tensors are `[batch, length, heads, width]`.

    A causal mask is aligned with the first query and key if `custom_mask_type` is 1, and with the last query and key if
    it is 2.
    """
    if arguments.is_given(ends):
        query, value = arguments.shape(0, 4), arguments.shape(2, 4)
        output = prod(query[:3]) * value[3] * arguments.element_bytes(0)
        moved = sum(arguments.bytes(index) for index in range(3)) + output
        return Cost(None, moved, "matrix", arguments.precision(0), None, _LENGTHS)
    if arguments.text(mask) == "2":
        return flash(arguments, causal=mask)
    return scaled_dot_product(arguments, mask, layout="heads last")


def paged(arguments: Arguments, keys: int = 1) -> Cost:
    """FLOPs: 2·H·(d + dv)·(unmasked pairs of query and key).

    In prefill, the mask hides half of the pairs whose query and key are both new tokens of the same request. The
    pairs are computed from sums over all requests; the name of the inference engine's step contains these sums. Bytes:
    queries and outputs of all new tokens, and keys and values in the cache.
    """
    _, heads, width = arguments.shape(0, 3)
    key_heads = arguments.shape(keys)[-2]
    sums = arguments.sums
    if not sums:
        message = "the lengths of the requests were not recorded, and no annotation of the step gives their sums"
        raise UnknownCostError(message)
    dense = 4 * heads * width * (sums["c_sqsk"] + sums["g_sqsk"])
    flops = dense - 2 * heads * width * sums["c_sqsq"]
    tokens, cached = sums["c_sq"] + sums["g_sq"], sums["c_sk"] + sums["g_sk"]
    moved = 2 * width * arguments.element_bytes(0) * (tokens * heads + cached * key_heads)
    return Cost(flops, moved, "matrix", arguments.precision(0), dense)


def flash_forward(arguments: Arguments) -> Cost:
    """As `flash` if the inputs have 4 dimensions (batch, length, heads, width), otherwise as `joined`."""
    if len(arguments.shape(0)) == 3:  # noqa: PLR2004 -- joined sequences have no batch
        return joined(arguments, ends=3, longest=5, causal=8, window=11)
    return flash(arguments, causal=8, window=11)


def flash_form_backward(arguments: Arguments) -> Cost:
    """As `flash_backward` if the inputs have 4 dimensions, otherwise as `joined_backward`."""
    if len(arguments.shape(1)) == 3:  # noqa: PLR2004 -- joined sequences have no batch
        return joined_backward(arguments, ends=6, longest=8, causal=11, window=15)
    return flash_backward(arguments, causal=11, window=15)


def _backward(
    arguments: Arguments, sizes: Attention, twice: int | None, pairs: int | None = None, *, first: int = 1
) -> Cost:
    """Return the cost of computing the gradients of an attention call.

    Both numbers are for one head: `twice` is twice the number of visible pairs (None if unknown), and `pairs` is the
    number of all pairs (None to derive it from `sizes`).
    """
    moved = arguments.bytes(first - 1) + 2 * sum(arguments.bytes(first + index) for index in range(3))
    if twice is None:
        return Cost(None, moved, "matrix", arguments.precision(first), None, _LENGTHS)
    each = 2 * sizes.query_heads * (3 * sizes.width + 2 * sizes.value_width)
    scores = 2 * sizes.query_heads * sizes.width * twice // 2
    dense = each * (sizes.positions() if pairs is None else pairs)
    return Cost(each * twice // 2, moved, "matrix", arguments.precision(first), dense, repeated_flops=scores)


def _twice_visible(arguments: Arguments, queries: int, keys: int, causal: int, window: int | None) -> int:
    """Return twice the number of query-key pairs that the mask leaves visible.

    If there are as many queries as keys, a causal mask is assumed to hide half of the pairs. With three queries and
    three keys, this leaves 4.5 pairs; doubling the number makes it an integer.
    """
    left, right = (-1, -1) if window is None else (arguments.number(window, -1), arguments.number(window + 1, -1))
    right = 0 if _is_causal(arguments, causal) else right
    if left < 0 and right < 0:
        return 2 * queries * keys
    if left < 0 and right == 0:
        return queries * (2 * keys - queries) if queries <= keys else keys * keys
    return 2 * pairs_in_window(queries, keys, left, right)


def pairs_in_window(queries: int, keys: int, left: int, right: int) -> int:
    """Return how many pairs a window allows.

    The last query is at the position of the last key. A negative limit means no limit.

    >>> pairs_in_window(4, 4, 1, 0)  # each query sees itself and the one before
    7
    """
    first = queries if right < 0 else 0
    until = queries * keys if first else _clamped_sum(queries, keys, keys - queries + right + 1)
    return until - (0 if left < 0 else _clamped_sum(queries, keys, keys - queries - left))


def _clamped_sum(count: int, highest: int, start: int) -> int:
    """Return the sum of `count` consecutive numbers from `start` on, each clamped to 0..highest."""

    def up_to(last: int) -> int:
        if last <= 0:
            return 0
        return last * (last + 1) // 2 if last <= highest else highest * (highest + 1) // 2 + (last - highest) * highest

    return up_to(start + count - 1) - up_to(start - 1)


def _twice_visible_joined(
    arguments: Arguments, totals: tuple[int, int], at: tuple[int, int, int, int | None]
) -> tuple[int, int] | None:
    """Return twice the number of visible pairs, and the number of all pairs; None if the lengths are unknown."""
    ends, longest, causal, window = at
    if not arguments.is_given(ends):
        return None
    queries, keys = arguments.number(longest, 0), arguments.number(longest + 1, 0)
    count = arguments.shape(ends, 1)[0] - 1
    if count > 0 and totals == (count * queries, count * keys):
        return count * _twice_visible(arguments, queries, keys, causal, window), count * queries * keys
    sums = arguments.sums
    has_window = window is not None and arguments.number(window, -1) >= 0
    if sums and not has_window and totals == (sums["c_sq"] + sums["g_sq"], sums["c_sk"] + sums["g_sk"]):
        pairs = sums["c_sqsk"] + sums["g_sqsk"]
        return 2 * pairs - (sums["c_sqsq"] + sums["g_sqsq"] if _is_causal(arguments, causal) else 0), pairs
    return None


def _is_causal(arguments: Arguments, index: int) -> bool:
    """Whether the mask hides later keys from each query; input `index` is a boolean or a type of mask (0: no mask)."""
    text = arguments.text(index)
    if text not in {"", "False", "True", "0", "1", "2"}:
        message = f"argument {index} does not show whether the mask is causal: {text}"
        raise UnknownCostError(message)
    return text not in {"", "False", "0"}


def _result_bytes(arguments: Arguments, index: int) -> int:
    """Return the bytes per element of the result; 8-bit inputs give a 16-bit result."""
    return max(2, arguments.element_bytes(index))


def _masked(dense: int, sizes: Attention, arguments: Arguments, causal: int | None) -> int:
    """Return the number of operations that remain after masking.

    `causal` is the index of the mask argument, which is a boolean or a type of mask (0: no mask); None if the operator
    has no such argument.
    """
    if causal is None or not _is_causal(arguments, causal):
        return dense
    if sizes.queries != sizes.keys:
        message = "the numbers of queries and keys differ, so it is unknown which pairs the causal mask hides"
        raise UnknownCostError(message)
    return dense // 2


def _checked(sizes: Attention, values: int) -> Attention:
    if sizes.keys != values or not sizes.key_heads or sizes.query_heads % sizes.key_heads:
        message = "the shapes of query, key and value do not match"
        raise UnknownCostError(message)
    return sizes
