"""Compute the costs of mixtures of experts: two products for each token and each of its chosen experts."""

from __future__ import annotations

import re
from itertools import combinations
from math import prod
from typing import NamedTuple

from holotrace.enrich.collectives.element_types import element_bytes, type_name
from holotrace.enrich.operator_costs.arguments import Arguments, Shape
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError, unknown
from holotrace.units import counted

FUSED = re.compile(
    r"(vllm|sglang)::(in|out)place_fused_experts|aiter::fused_moe_?|vllm::rocm_aiter_fused_moe"
    r"|vllm::(flashinfer_fused_moe_blockscale_fp8|fi_trtllm_fp8_per_tensor_moe)"
)
"""Operators that run inside a layer; their inputs include the tokens and the weights of both matrix products."""

_CHOOSES = re.compile(r"top_?k|sort", re.IGNORECASE)
_INTEGERS = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"}
_PACKED = {"uint8": 2, "int8": 2, "int32": 8, "int64": 16, "float4_e2m1fn_x2": 2}
"""Number of 4-bit values in an element of each type."""
_OGS = re.compile(r"matmul_ogs_\w*?_(?:bf16|fp16|fp32|fp8\w*)x(?P<left>bf16|fp16|fp32|fp8\w*|mxfp\d)x")
_NUMBERS = re.compile(r"(?<![^,])\d+,\d+,(?P<ranks>\d+),\d+(?![^,])")
_ON_SEVERAL_RANKS = "experts are on several ranks, and it was not recorded which tokens this rank's experts received"
_OGS_TYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


class Weights(NamedTuple):
    """The weights of both products.

    first, second  shapes: `[experts, columns, K]`, or `[experts, K, columns]`; an element may contain
                   several packed values along K
    type           element type, as recorded
    element_bytes  bytes of one element
    """

    first: Shape
    second: Shape
    type: str
    element_bytes: int


class _Layer(NamedTuple):
    """The sizes of one expert.

    first, second  multiplications per token in the first and in the second matrix product
    packed         number of weights that are packed into one stored element
    """

    first: int
    second: int
    packed: int


def fused_experts(arguments: Arguments, hidden: int = 0, first: int = 1, second: int = 2, chosen: int = 4) -> Cost:
    """FLOPs: 2·T·k·(H·N + I·H) for T tokens, k experts each, and weights H x N, I x H. Bytes: tokens, result, weights.

    N is I, or 2·I with a gate. If there are so many tokens that they reach practically every expert when spread
    evenly, the bytes include all weights. If there are fewer tokens, the bytes are unknown, because the trace does
    not show which experts were chosen. If the experts are on several ranks, FLOPs and bytes are unknown.
    """
    if any(_maps_experts(arguments, index) for index in range(chosen + 1, arguments.count)):
        raise UnknownCostError(_ON_SEVERAL_RANKS)
    tokens, width = _tokens(arguments, hidden)
    return _cost(
        arguments, (tokens, width), arguments.shape(chosen, 2)[1], weights_at(arguments, first, second), hidden
    )


def fused_experts_into(arguments: Arguments) -> Cost:
    """Like `fused_experts`, with the arguments `result, tokens, weights, weights, …`; argument 8 is k."""
    return _cost(arguments, _tokens(arguments, 1), arguments.number(8), weights_at(arguments, 2, 3), 1)


def chosen_experts(arguments: Arguments, hidden: int = 0) -> Cost:
    """Like `fused_experts`, with the arguments `tokens, chosen experts, their scores, weights, …`, and optional biases.

    The first four consecutive whole numbers after the weights describe two groups of ranks: the ranks that split each
    expert, and the ranks that divide the experts among themselves. For each group, the first number is its size and the
    second is the rank's position in it.
    """
    weights = [index for index in arguments.tensors() if index > hidden + 2 and len(arguments.shape(index)) == 3][:2]  # noqa: PLR2004 -- experts, rows, columns
    if len(weights) != 2:  # noqa: PLR2004 -- of both products
        message = "the weights of the experts are not two lists of matrices"
        raise UnknownCostError(message)
    groups = _NUMBERS.search(",".join(text or "-" for text in arguments.values[weights[1] :]))
    if groups is None or groups["ranks"] != "1":
        message = _ON_SEVERAL_RANKS if groups else "the number of ranks that hold the experts was not recorded"
        raise UnknownCostError(message)
    return _packed_cost(arguments, hidden, arguments.shape(hidden + 1, 2)[1], weights_at(arguments, *weights))


def scored_experts(arguments: Arguments, first: int, second: int) -> Cost:
    """Like `fused_experts`, with the arguments `scores, …, tokens, …, weights, …, experts, k, …`."""
    weights = weights_at(arguments, first, second)
    numbers = [int(text) for text in arguments.values[second + 1 :] if text.isdigit()]
    if len(numbers) < 2:  # noqa: PLR2004 -- all experts, and those of a token
        message = "the number of experts per token was not recorded"
        raise UnknownCostError(message)
    if numbers[0] != weights.first[0]:
        raise UnknownCostError(_ON_SEVERAL_RANKS)
    return _packed_cost(arguments, 2, numbers[1], weights)


def _packed_cost(arguments: Arguments, hidden: int, chosen: int, weights: Weights) -> Cost:
    """Return the cost of a layer whose tokens may be stored as two 4-bit values per byte."""
    tokens, width = arguments.shape(hidden, 2)
    if width not in {weights.second[1], weights.second[1] // 2}:
        message = f"weights {list(weights.first)} and {list(weights.second)} do not fit tokens of width {width}"
        raise UnknownCostError(message)
    return _cost(arguments, (tokens, weights.second[1]), chosen, weights, hidden)


def first_product(arguments: Arguments, weights: int = 1, result: int = 6, chosen: int = 7) -> Cost:
    """FLOPs: 2·T·k·H·N: the first product of `fused_experts`. Bytes: tokens, weights and result."""
    return _one_product(arguments, weights, result, (arguments.shape(0)[0], arguments.number(chosen)))


def second_product(arguments: Arguments, weights: int = 2, result: int = 6, chosen: int = 7) -> Cost:
    """FLOPs: 2·T·k·I·H: the second product of `fused_experts`. Bytes: its input, weights and result."""
    return _one_product(arguments, weights, result, (arguments.shape(result)[0], arguments.number(chosen)))


def expert_kernel(arguments: Arguments) -> Cost:
    """One of the two products of `fused_experts`. FLOPs: 2·T·k·N·K. Bytes: inputs 0, 1 (weights) and 3 (result)."""
    tokens, chosen = arguments.shape(8, 2)
    experts, columns, shared = arguments.shape(1, 3)
    if arguments.shape(0)[-1] != shared or arguments.shape(3)[-1] != columns:
        message = "the shapes of the weights, the input and the result do not match"
        raise UnknownCostError(message)
    flops = 2 * tokens * chosen * columns * shared
    precision = arguments.precision(1)
    if not _reaches_all(experts, chosen, tokens):
        return Cost(flops, None, "matrix", precision, flops, _some_experts(experts, chosen, tokens))
    return Cost(flops, sum(map(arguments.bytes, (0, 1, 3))), "matrix", precision, flops)


def routed_layer(arguments: Arguments) -> Cost:
    """Like `fused_experts`, with arguments `tokens, scores of all experts`; inner operators give the weights and k.

    Operators inside the layer that have their own rule, such as a shared expert's products, are counted separately.
    """
    inner = next((call for call in arguments.related if FUSED.fullmatch(call.operator)), None)
    if inner is not None:
        return unknown(f"the products of the experts are attributed to the inner operator {inner.operator}")
    experts = arguments.shape(1, 2)[1]
    tokens = _tokens(arguments, 0)
    layers = _weights_inside(arguments, experts, tokens[1])
    if not layers:
        message = "the shapes of the experts' weights were not recorded: no inner operator takes them as inputs"
        raise UnknownCostError(message)
    if len(layers) > 1:
        message = "the operators inside the layer have several different pairs of weights"
        raise UnknownCostError(message)
    return _cost(arguments, tokens, _chosen_inside(arguments, experts), layers[0], 0)


def weights_at(arguments: Arguments, first: int, second: int) -> Weights:
    """Return the weights of both products, which are the inputs at the positions `first` and `second`."""
    one, other = arguments.shape(first, 3), arguments.shape(second, 3)
    return Weights(one, other, arguments.type(first), arguments.element_bytes(first))


def _tokens(arguments: Arguments, index: int) -> tuple[int, int]:
    shape = arguments.shape(index, 2)
    packed = 2 if type_name(arguments.type(index)) == "float4_e2m1fn_x2" else 1
    return shape[0], shape[1] * packed


def _cost(arguments: Arguments, tokens: tuple[int, int], chosen: int, weights: Weights, hidden: int) -> Cost:
    layer = _layer(tokens[1], weights)
    if layer is None:
        message = f"weights {list(weights.first)} and {list(weights.second)} do not fit tokens of width {tokens[1]}"
        raise UnknownCostError(message)
    flops = 2 * tokens[0] * chosen * (layer.first + layer.second)
    precision = _precision(arguments, hidden, weights, layer.packed)
    if not _reaches_all(weights.first[0], chosen, tokens[0]):
        return Cost(flops, None, "matrix", precision, flops, _some_experts(weights.first[0], chosen, tokens[0]))
    size = 2 if arguments.element_bytes(hidden) == 1 else arguments.element_bytes(hidden)
    moved = arguments.bytes(hidden) + tokens[0] * tokens[1] * size
    moved += (prod(weights.first) + prod(weights.second)) * weights.element_bytes
    return Cost(flops, moved, "matrix", precision, flops)


def _one_product(arguments: Arguments, weights: int, result: int, choices: tuple[int, int]) -> Cost:
    """Return the cost of one of the two products; `choices` is (number of tokens, experts per token)."""
    experts, columns, _ = arguments.shape(weights, 3)
    if arguments.shape(result)[-1] not in {columns, columns // 2}:
        message = "the shapes of the result and the weights do not match"
        raise UnknownCostError(message)
    width, (tokens, chosen) = arguments.shape(0)[-1], choices
    flops = 2 * tokens * chosen * columns * width
    shapes = Weights(arguments.shape(weights), (), arguments.type(weights), arguments.element_bytes(weights))
    precision = _precision(arguments, 0, shapes, max(1, width // max(arguments.shape(weights)[2], 1)))
    if not _reaches_all(experts, chosen, tokens):
        return Cost(flops, None, "matrix", precision, flops, _some_experts(experts, chosen, tokens))
    moved = sum(map(arguments.bytes, (0, weights, result)))
    return Cost(flops, moved, "matrix", precision, flops)


def _layer(hidden: int, weights: Weights) -> _Layer | None:
    """Return the sizes of one expert, for either order of the weights' dimensions.

    None if the two weights have different numbers of experts, or fit tokens of width `hidden` in neither order.
    """
    (one, *first), (other, *second) = weights.first, weights.second
    if one != other:
        return None
    for columns, shared, result, middle in (
        (first[0], first[1], second[0], second[1]),
        (first[1], first[0], second[1], second[0]),
    ):
        packed = hidden // shared if shared else 0
        is_packing = packed == 1 or packed == _PACKED.get(str(type_name(weights.type)))
        if (
            result == hidden
            and is_packing
            and shared * packed == hidden
            and columns in {middle * packed, 2 * middle * packed}
        ):
            return _Layer(hidden * columns, middle * packed * hidden, packed)
    return None


def _weights_inside(arguments: Arguments, experts: int, hidden: int) -> list[Weights]:
    """Find weights among the inputs of inner operators; return the pairs that fit tokens of width `hidden`."""
    found = dict.fromkeys(
        (tuple(call.dims[index]), call.type(index), call.element_bytes(index))
        for call in arguments.related
        for index in call.tensors()
        if _is_weights(call, index, experts)
    )
    pairs = [Weights(a, b, kind, size) for (a, kind, size), (b, other, _) in combinations(found, 2) if kind == other]
    alike = [Weights(shape, shape, kind, size) for shape, kind, size in found]
    return [pair for pair in pairs if _layer(hidden, pair)] or [pair for pair in alike if _layer(hidden, pair)]


def _is_weights(call: Arguments, index: int, experts: int) -> bool:
    """Whether an input consists of one matrix per expert."""
    shape = call.dims[index]
    is_known = element_bytes(call.type(index)) is not None
    return is_known and len(shape) == 3 and shape[0] == experts  # noqa: PLR2004 -- experts, rows, columns


def _chosen_inside(arguments: Arguments, experts: int) -> int:
    """Return how many experts each token chooses, from the operators inside the call that choose or sort experts."""
    numbers = {
        number
        for call in arguments.related
        if _CHOOSES.search(call.operator)
        for number in _numbers_chosen(call, arguments.shape(0)[0])
        if 0 < number < experts
    }
    if len(numbers) != 1:
        message = "the number of experts per token was not recorded"
        raise UnknownCostError(message)
    return numbers.pop()


def _numbers_chosen(call: Arguments, tokens: int) -> list[int]:
    """Return k: the argument of `topk(scores, k)`, or else the width of the tensor `[tokens, k]` of chosen experts."""
    listed = [
        call.dims[index][1]
        for index in call.tensors()
        if len(call.dims[index]) == 2  # noqa: PLR2004 -- tokens and choices
        and call.dims[index][0] == tokens
        and type_name(call.type(index)) in _INTEGERS
    ]
    is_top_k = call.operator in {"TopK", "aten::topk"}
    return [call.number(1, 0)] if is_top_k else listed


def _maps_experts(arguments: Arguments, index: int) -> bool:
    """Whether this input may map experts to ranks: it is a one-dimensional tensor of integers."""
    return (
        arguments.has_tensor(index)
        and len(arguments.dims[index]) == 1
        and type_name(arguments.type(index)) in {"int32", "int64"}
    )


def _reaches_all(experts: int, chosen: int, tokens: int) -> bool:
    """Whether evenly spread tokens reach practically every expert.

    The result is True if the expected number of unused experts, E·(1 - k/E)^T, is below 1/2.
    """
    if chosen >= experts:
        return True
    return experts * (1 - chosen / experts) ** min(tokens, 1 << 40) < 1 / 2


def _some_experts(experts: int, chosen: int, tokens: int) -> str:
    most = min(experts, chosen * tokens)
    read = f"{most if most <= chosen else f'{chosen} to {most}'} of {experts}"
    return f"the trace does not record which experts {counted(tokens, 'token')} chose ({read})"


def _precision(arguments: Arguments, hidden: int, weights: Weights, packed: int) -> str | None:
    """Return the precision of the products; None if it is unknown, as for some 4-bit weights."""
    kernel = next(iter(arguments.kernels), "")
    named = _OGS.search(kernel)
    if named:
        return _OGS_TYPES.get(named["left"], "float8" if "8" in named["left"] else None)
    kind = type_name(weights.type)
    if packed > 1 and kind == "int64" and arguments.precision(hidden) == "uint8":
        return "float4"
    if packed > 1:
        return arguments.precision(hidden) if "gptq_awq" in kernel else None
    return kind if kind and kind.startswith("float8") else arguments.precision(hidden)
