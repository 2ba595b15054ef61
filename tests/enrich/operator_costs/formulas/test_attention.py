"""Tests of attention costs: masks, windows, joined sequences, and the order of inputs in each library."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost
from holotrace.enrich.operator_costs.formulas.attention import pairs_in_window
from holotrace.enrich.operator_costs.request_sums import request_sums
from holotrace.enrich.operator_costs.rules import cost_of

BF16, INT, LONG = "c10::BFloat16", "int", "long int"
B, Q, K, H, G, D = 2, 6, 10, 4, 2, 8
"""Batch size, number of queries, number of keys, query heads, key heads, width of a head."""
PAIR = 2 * H * (D + D)
"""Operations of all heads for one pair of query and key."""
PAIR_BACKWARD = 2 * H * 5 * D

Inputs = dict[int, Any]


def call(operator: str, count: int, inputs: Inputs, **more: Any) -> Cost:
    """Return the cost of a call; `inputs` maps an input's position to its shape, its shape and type, or its value."""
    dims: list[Any] = [[] for _ in range(count)]
    types, values = [""] * count, [""] * count
    for index, given_input in inputs.items():
        if isinstance(given_input, list):
            dims[index], types[index] = given_input, BF16
        elif isinstance(given_input, tuple):
            dims[index], types[index] = given_input
        else:
            types[index], values[index] = "Scalar", str(given_input)
    return cost_of(Arguments(operator, tuple(dims), tuple(types), (), tuple(values), **more))


def batched(first: int = 0, queries: int = Q) -> Inputs:
    """Return query, key and value of shape [batch, length, heads, width]."""
    return {first: [B, queries, H, D], first + 1: [B, K, G, D], first + 2: [B, K, G, D]}


def packed(first: int = 0, queries: int = Q) -> Inputs:
    """Return query, key and value of shape [total length, heads, width]."""
    return {first: [B * queries, H, D], first + 1: [B * K, G, D], first + 2: [B * K, G, D]}


FORWARD = (
    # operator, number of inputs, positions of the mask and of the window
    ("flash_attn::_flash_attn_forward", 11, 5, 6),
    ("aiter::_flash_attn_forward", 22, 5, 6),
    ("aiter::mha_fwd", 21, 5, 6),
    ("aiter::fmha_v3_fwd", 18, 5, 6),
    ("flash_attn_3::fwd", 34, 24, 25),
    ("flash_attn_3::_flash_attn_forward", 34, 24, 25),
    ("xformers_flash::flash_fwd", 15, 10, 11),
    ("aten::_flash_attention_forward", 15, 8, 11),
)
BACKWARD = (
    ("flash_attn::_flash_attn_backward", 18, 11, 12),
    ("aiter::_flash_attn_backward", 23, 12, 13),
    ("aiter::mha_bwd", 22, 8, 9),
    ("aiter::fmha_v3_bwd", 20, 8, 9),
    ("flash_attn_3::bwd", 21, 16, 17),
    ("flash_attn_3::_flash_attn_backward", 22, 16, 17),
    ("aten::_flash_attention_backward", 17, 11, 15),
)
JOINED = (
    # operator, number of inputs, and the positions of these inputs: sequence ends, longest lengths, mask, window
    ("flash_attn::_flash_attn_varlen_forward", 20, 3, 5, 9, 10),
    ("aiter::mha_varlen_fwd", 29, 3, 5, 12, 13),
    ("aiter::fmha_v3_varlen_fwd", 28, 3, 5, 12, 13),
    ("aiter::_flash_attn_varlen_forward", 29, 3, 7, 12, 14),
    ("flash_attn_3::fwd", 34, 7, 12, 24, 25),
    ("xformers_flash::flash_fwd", 15, 3, 6, 10, 11),
    ("aten::_flash_attention_forward", 15, 3, 5, 8, 11),
)
JOINED_BACKWARD = (
    ("flash_attn::_flash_attn_varlen_backward", 24, 9, 11, 15, 16),
    ("aiter::mha_varlen_bwd", 28, 6, 8, 13, 14),
    ("aiter::fmha_v3_varlen_bwd", 27, 6, 8, 13, 14),
    ("flash_attn_3::bwd", 21, 9, 13, 16, 17),
    ("flash_attn_3::_flash_attn_backward", 22, 6, 10, 16, 17),
    ("aten::_flash_attention_backward", 17, 6, 8, 11, 15),
)
MASKS = (
    # causal, left, right, pairs of 6 queries and 10 keys, aligned at the last query and key
    (False, -1, -1, 60),
    (True, -1, -1, 6 * (10 - 3)),  # half of the last 6 x 6
    (True, 2, 0, 6 * 3),
    (False, 2, 1, 6 * 4 - 1),  # the last query has no key to the right
)


@pytest.mark.parametrize(("operator", "count", "causal", "window"), FORWARD)
@pytest.mark.parametrize(("is_causal", "left", "right", "pairs"), MASKS)
def test_pairs_under_the_mask_count(operator, count, causal, window, is_causal, left, right, pairs) -> None:  # noqa: PLR0917 -- the columns of two tables
    """Each library orders its inputs differently, but all align the mask with the last query and key."""
    cost = call(operator, count, {**batched(), causal: is_causal, window: left, window + 1: right})
    moved = 2 * (2 * B * Q * H * D + 2 * B * K * G * D)
    assert (cost.flops, cost.bytes, cost.dense_flops, cost.reason) == (B * pairs * PAIR, moved, B * Q * K * PAIR, "")


@pytest.mark.parametrize(("operator", "count", "causal", "window"), BACKWARD)
@pytest.mark.parametrize(("is_causal", "left", "right", "pairs"), MASKS)
def test_five_products_of_the_backward_pass(operator, count, causal, window, is_causal, left, right, pairs) -> None:  # noqa: PLR0917 -- the columns of two tables
    """The backward pass recomputes the scores, and moves query, key, value and all gradients."""
    inputs = {0: [B, Q, H, D], **batched(1), causal: is_causal, window: left, window + 1: right}
    cost = call(operator, count, inputs)
    moved = 2 * (3 * B * Q * H * D + 4 * B * K * G * D)
    assert (cost.flops, cost.bytes, cost.dense_flops) == (B * pairs * PAIR_BACKWARD, moved, B * Q * K * PAIR_BACKWARD)
    assert cost.repeated_flops == B * pairs * 2 * H * D


@pytest.mark.parametrize(("operator", "count", "ends", "longest", "causal", "window"), JOINED)
def test_joined_sequences_of_one_length_are_known(operator, count, ends, longest, causal, window) -> None:  # noqa: PLR0917 -- the columns of the table
    """If the longest sequence is as long as the average one, all sequences are equally long.

    Otherwise, the number of operations is unknown, because the trace does not record the lengths.
    """
    inputs = {**packed(), ends: ([B + 1], INT), ends + 1: ([B + 1], INT), causal: True, window: -1, window + 1: -1}
    known = call(operator, count, {**inputs, longest: Q, longest + 1: K})
    assert (known.flops, known.dense_flops) == (B * 6 * 7 * PAIR, B * Q * K * PAIR)
    unknown = call(operator, count, {**inputs, longest: Q + 1, longest + 1: K})
    assert (unknown.flops, unknown.reason) == (None, "the lengths of the sequences were not recorded")
    assert unknown.bytes == known.bytes == 2 * (2 * B * Q * H * D + 2 * B * K * G * D)


@pytest.mark.parametrize(("operator", "count", "ends", "longest", "causal", "window"), JOINED_BACKWARD)
def test_joined_sequences_of_the_backward_pass(operator, count, ends, longest, causal, window) -> None:  # noqa: PLR0917 -- the columns of the table
    """For joined sequences, the backward formula is the forward formula with five products instead of two."""
    inputs = {0: [B * Q, H, D], **packed(1), ends: ([B + 1], INT), causal: True, window: -1, window + 1: -1}
    known = call(operator, count, {**inputs, longest: Q, longest + 1: K})
    assert (known.flops, known.dense_flops) == (B * 6 * 7 * PAIR_BACKWARD, B * Q * K * PAIR_BACKWARD)
    assert call(operator, count, {**inputs, longest: Q + 1, longest + 1: K}).flops is None


def test_the_sums_of_a_step_give_the_lengths_of_joined_sequences() -> None:
    """If a call covers all tokens and keys of a step, the sums in the step's name give its number of query-key pairs.

    The causal mask removes half of the pairs between new tokens.
    """
    step = "execute_12_context_2(sq12sk20sqsq74sqsk122)_generation_0(sq0sk0sqsq0sqsk0)"
    inputs = {**packed(), 3: ([3], INT), 4: ([3], INT), 5: 7, 6: 11, 12: True, 13: -1, 14: -1}
    cost = call("aiter::mha_varlen_fwd", 29, inputs, sums=request_sums(step))
    assert cost.flops == (122 - 74 // 2) * PAIR
    assert call("aiter::mha_varlen_fwd", 29, {**inputs, 13: 4}, sums=request_sums(step)).flops is None


def test_a_cache_of_pages_needs_the_sums_of_the_step() -> None:
    """Keys and values are recorded with the shape of the whole cache; the step's name shows how much a call reads."""
    step = "execute_12_context_2(sq12sk20sqsq74sqsk122)_generation_0(sq0sk0sqsq0sqsk0)"
    inputs = {0: [12, H, D], 1: [99, 16, G, D], 2: [99, 16, G, D], 7: ([3], INT), 14: ([2, 5], INT), 24: True}
    assert "lengths of the requests" in call("flash_attn_3::fwd", 34, inputs).reason
    cost = call("flash_attn_3::fwd", 34, inputs, sums=request_sums(step))
    assert (cost.flops, cost.bytes) == ((122 - 74 // 2) * PAIR, 2 * 2 * D * (12 * H + 20 * G))
    prefill = {0: [12, H, D], 1: [1584, G, D], 2: [1584, G, D], 3: ([3], INT), 12: True}
    assert call("aiter::mha_batch_prefill", 30, prefill, sums=request_sums(step)).flops == cost.flops


def test_masks_of_memory_efficient_attention() -> None:
    """A mask of type 1 is aligned with the first query and key, one of type 2 with the last query and key.

    The cost with type 1 is known only if there are as many keys as queries.
    """
    operator = "aten::_efficient_attention_forward"
    assert call(operator, 14, {**batched(), 9: 2}).flops == B * 42 * PAIR
    assert "queries and keys differ" in call(operator, 14, {**batched(), 9: 1}).reason
    assert call(operator, 14, {**batched(queries=K), 9: 1}).flops == B * K * K // 2 * PAIR
    joined = {**batched(), 4: ([3], INT), 5: ([3], INT)}
    assert call(operator, 14, joined).reason == "the lengths of the sequences were not recorded"
    assert call("xformers::efficient_attention_forward_ck", 15, {**batched(), 9: 0}).flops == B * Q * K * PAIR


def test_gradients_of_xformers() -> None:
    """The first input is a boolean; the others are in FlashAttention's order, without the gradients."""
    operator = "xformers_flash::flash_bwd"
    mask = {13: True, 14: -1, 15: -1}
    batch = call(operator, 17, {0: False, 1: [B, Q, H, D], **batched(2), **mask})
    assert (batch.flops, batch.bytes) == (B * 42 * PAIR_BACKWARD, 2 * (3 * B * Q * H * D + 4 * B * K * G * D))
    sequences = {0: False, 1: [B * Q, H, D], **packed(2), 7: ([B + 1], INT), 8: ([B + 1], INT), 9: Q, 10: K, **mask}
    assert call(operator, 17, sequences) == batch


@pytest.mark.parametrize(
    ("operator", "ends", "mask"),
    [("aten::_efficient_attention_backward", 6, 14), ("xformers::efficient_attention_backward_ck", 5, 15)],
)
def test_gradients_of_memory_efficient_attention(operator, ends, mask) -> None:
    """The mask types mean the same as in the forward pass.

    If sequences are joined in one tensor, the cost is unknown, because the sequence lengths were not recorded.
    """
    inputs = {0: [B, Q, H, D], **batched(1)}
    assert call(operator, 18, {**inputs, mask: 0}).flops == B * Q * K * PAIR_BACKWARD
    assert call(operator, 18, {**inputs, mask: 2}).flops == B * 42 * PAIR_BACKWARD
    assert "queries and keys differ" in call(operator, 18, {**inputs, mask: 1}).reason
    assert call(operator, 18, {**inputs, ends: ([3], INT)}).reason == "the lengths of the sequences were not recorded"


def test_attention_of_cudnn() -> None:
    """In cuDNN's shapes, heads precede the sequence length."""
    inputs = {0: [B, H, K, D], 1: [B, H, K, D], 2: [B, H, K, D], 10: True}
    assert call("aten::_cudnn_attention_forward", 12, inputs).flops == B * K * K // 2 * PAIR
    backward = {0: [B, H, K, D], 1: [B, H, K, D], 2: [B, H, K, D], 3: [B, H, K, D], 14: True}
    assert call("aten::_cudnn_attention_backward", 16, backward).flops == B * K * K // 2 * PAIR_BACKWARD


def test_a_second_query_or_an_odd_mask_is_unknown() -> None:
    """If a second query is given, or a mask value is not a boolean, the cost is unknown."""
    assert "second query" in call("flash_attn_3::fwd", 34, {**batched(), 5: [B, Q, H, D]}).reason
    assert "0.125" in call("aiter::mha_fwd", 21, {**batched(), 5: 0.125}).reason


@given(st.integers(0, 9), st.integers(0, 9), st.integers(-1, 11), st.integers(-1, 11))
def test_pairs_in_a_window(queries, keys, left, right) -> None:
    """The formula agrees with counting the pairs one by one."""
    places = ((query + keys - queries, key) for query in range(queries) for key in range(keys))
    counted = sum((left < 0 or key >= at - left) and (right < 0 or key <= at + right) for at, key in places)
    assert pairs_in_window(queries, keys, left, right) == counted
