"""The registry of cost rules: one line for each rule, with the names of its operators, its formula and its source.

Users add rules with `add_rule`, or in a JSON or TOML file that `HOLOTRACE_COST_RULES` names:

    [[rules]]
    pattern = "mylib::gemm"
    flops = "2 * size(0, 0) * size(0, 1) * size(1, 1)"
    bytes = "bytes(0) + bytes(1) + size(0, 0) * size(1, 1) * element_bytes(0)"
    work = "matrix"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal, TypeAlias, get_args

import polars as pl

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost, UnknownCostError, Work, unknown
from holotrace.enrich.operator_costs.formula_text import checked_formula, value_of
from holotrace.enrich.operator_costs.formulas import (
    attention,
    convolutions,
    elementwise,
    experts,
    fused,
    movement,
    normalisations,
    products,
    quantised_products,
    reductions,
    transformer_engine,
)
from holotrace.errors import InvalidOptionError
from holotrace.store.rule_table import RuleTable, checked_pattern

Formula: TypeAlias = Callable[[Arguments], Cost]

RULES_VARIABLE = "HOLOTRACE_COST_RULES"
"""Environment variable with the path of a rule file."""

_REMEMBERED_NAMES = 8_192
"""Limit for the number of operator names whose rules a process caches.

All ranks that the process reads share the cache, because they call the same operators.
"""


@dataclass(frozen=True)
class Rule:
    """A rule for the cost of operators.

    pattern   regular expression that matches the whole name of the operator
    formula   computes the cost from the recorded inputs; its docstring states the formula
    source    where the formula comes from
    is_whole  whether the cost includes the costs of all operators inside the call
    reads     other operators that the formula reads: operators inside the call, or the forward call of a gradient
    """

    pattern: str
    formula: Formula
    source: str = ""
    is_whole: bool = False
    reads: Literal["", "inside", "forward"] = ""


@dataclass(frozen=True)
class TextFormula:
    """The text formulas of a user's rule; see `holotrace.enrich.operator_costs.formula_text`."""

    flops: str
    bytes: str
    work: Work = "vector"

    def __call__(self, arguments: Arguments) -> Cost:
        """Return the cost of a call."""
        tensors = arguments.tensors()
        precision = arguments.precision(tensors[0]) if tensors else None
        flops = value_of(self.flops, arguments) if self.flops else None
        moved = value_of(self.bytes, arguments) if self.bytes else None
        missing = [name for name, value in (("flops", flops), ("bytes", moved)) if value is None]
        reason = f"the rule has no formula for {' and '.join(missing)}" if missing else ""
        return Cost(flops, moved, self.work, precision, flops if self.work == "matrix" else 0, reason)


_GEMM = "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html#math-mem"
_COUNTER = "https://github.com/pytorch/pytorch/blob/main/torch/utils/flop_counter.py"
_FLASH = "https://github.com/Dao-AILab/flash-attention/blob/main/benchmarks/benchmark_flash_attention.py"
_FLASH_2 = "https://github.com/Dao-AILab/flash-attention/blob/main/flash_attn/flash_attn_interface.py"
_FLASH_3 = "https://github.com/Dao-AILab/flash-attention/blob/main/hopper/flash_api.cpp"
_XFORMERS = "https://github.com/facebookresearch/xformers/blob/v0.0.28/xformers/ops/fmha/flash.py"
_AITER_ATTENTION = "https://github.com/ROCm/aiter/blob/main/aiter/ops/mha.py"
_VLLM_KERNELS = "https://github.com/vllm-project/vllm/blob/main/csrc/libtorch_stable/torch_bindings.cpp"
_SGLANG_KERNELS = "https://github.com/sgl-project/sglang/blob/main/sgl-kernel/csrc/common_extension.cc"
_DEEP_GEMM = "https://github.com/deepseek-ai/DeepGEMM/blob/main/csrc/apis/gemm.hpp"
_AITER_PRODUCTS = "https://github.com/ROCm/aiter/blob/main/aiter/ops/gemm_op_a8w8.py"
_AITER_ROTATIONS = "https://github.com/ROCm/aiter/blob/main/aiter/ops/rope.py"
_TORCHAO = "https://github.com/pytorch/ao/blob/main/torchao/ops.py"
_ENGINE = "https://github.com/NVIDIA/TransformerEngine/blob/main/transformer_engine/pytorch/module/linear.py"
_LENS = "https://github.com/AMD-AGI/TraceLens/blob/main/TraceLens/PerfModel/perf_model.py"
_ONCE = "every tensor once"
_ATEN = "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/native_functions.yaml"
_ADAM = "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/cuda/fused_adam_utils.cuh"

_VLLM_EXPERTS = "https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/fused_moe/fused_moe.py"
_FLASHINFER_EXPERTS = "https://github.com/flashinfer-ai/flashinfer/blob/main/flashinfer/fused_moe/core.py"
_TRTLLM_EXPERTS = "https://github.com/NVIDIA/TensorRT-LLM/tree/main/tensorrt_llm/_torch/custom_ops"
_VLLM_FLASHINFER = "https://github.com/vllm-project/vllm/tree/main/vllm/model_executor/layers/fused_moe"
_AITER_EXPERTS = "https://github.com/ROCm/aiter/blob/main/aiter/ops/moe_op.py"

_reduce = reductions.reduction

# fmt: off
RULES = (
    # matrix products
    Rule(r"aten::(mm|bmm|_int_mm|_sparse_semi_structured_mm)", products.product, _GEMM, is_whole=True),
    Rule(r"aten::(addmm_?|_addmm_activation|baddbmm_?|_sparse_semi_structured_addmm)", products.with_bias_first, _GEMM, is_whole=True),
    Rule(r"aten::(_scaled_mm|_scaled_mm_v2)|trtllm::cublas_scaled_mm", products.scaled, _COUNTER, is_whole=True),
    Rule(r"aten::_(scaled_)?grouped_mm(_v2)?", products.grouped, _COUNTER, is_whole=True),
    Rule(r"aten::(mv)", products.matrix_vector, _GEMM, is_whole=True),
    Rule(r"aten::addmv_?", products.matrix_vector_with_bias, _GEMM, is_whole=True),
    Rule(r"aten::(dot|vdot)", products.dot, _GEMM),
    Rule(r"aten::mkldnn_linear_pointwise|mkldnn::_linear_pointwise|mkl::_mkl_linear", products.linear, _GEMM, is_whole=True),
    Rule(r"aten::_weight_int8pack_mm", partial(products.linear, bias=None), _GEMM, is_whole=True),
    Rule(r"vllm::rocm_unquantized_gemm(_impl)?", products.linear, _GEMM, is_whole=True),
    Rule(r"aiter::gemm_a16w16(_\w+)?", products.linear, _GEMM, is_whole=True),
    Rule(r"aten::(mkldnn_rnn_layer|_cudnn_rnn|miopen_rnn)", products.recurrent, _GEMM, is_whole=True),
    Rule(r"aten::(mkldnn_rnn_layer|_cudnn_rnn|miopen_rnn)_backward", partial(products.recurrent, passes=2), _GEMM, is_whole=True),
    # 8-bit and 4-bit matrix multiplications from kernel libraries
    Rule(r"(_C|sgl_kernel)::cutlass_scaled_mm(_azp)?", partial(quantised_products.product, a=1, b=2, result=0), _VLLM_KERNELS, is_whole=True),
    Rule(r"(_C|sgl_kernel)::cutlass_scaled_fp4_mm", partial(quantised_products.linear, a=1, b=2, result=0, packed=2), _VLLM_KERNELS, is_whole=True),
    Rule(r"sgl_kernel::(fp8|int8|fp8_blockwise)_scaled_mm", quantised_products.product, _SGLANG_KERNELS, is_whole=True),
    Rule(r"sglang::deep_gemm_fp8_fp8_bf16_nt|vllm::fp8_gemm_nt_op", partial(quantised_products.linear, a=0, b=2, result=4), _DEEP_GEMM, is_whole=True),
    Rule(r"aiter::(gemm_a8w8\w*_(ck|cktile|flydsl)|flatmm_a8w8_blockscale_asm|_flatmm_a8w8_blockscale_asm)", partial(quantised_products.linear, result=4), _AITER_PRODUCTS, is_whole=True),
    Rule(r"aiter::_?gemm_a8w8_blockscale_bpreshuffle_asm", partial(quantised_products.linear, result=2), _AITER_PRODUCTS, is_whole=True),
    Rule(r"aiter::gemm_a8w8(_bpreshuffle|_blockscale|_blockscale_bpreshuffle)?|vllm::(rocm_aiter_triton_gemm_a8w8_blockscale|_rocm_aiter_preshuffled_per_token_w8a8_gemm)", quantised_products.linear, _AITER_PRODUCTS, is_whole=True),
    Rule(r"aiter::(gemm_a4w4|gemm_afp4wfp4_)", partial(quantised_products.linear, packed=2), _AITER_PRODUCTS, is_whole=True),
    Rule(r"aiter::_?gemm_a4w4_asm", partial(quantised_products.linear, result=4, packed=2), _AITER_PRODUCTS, is_whole=True),
    Rule(r"aiter::batched_gemm_(a8w8|bf16)", quantised_products.batched_linear, _AITER_PRODUCTS, is_whole=True),
    Rule(r"torchao::(mx_fp8_bf16|scaled_int8_mm)", quantised_products.product, _TORCHAO, is_whole=True),
    Rule(r"torchao::rowwise_scaled_linear_sparse_cutlass_f8f8", quantised_products.sparse_linear, _TORCHAO, is_whole=True),
    Rule(r"aten::_weight_int4pack_mm(_with_scales_and_zeros)?", quantised_products.packed_weights, _ATEN, is_whole=True),
    # layers of Transformer Engine
    Rule(r"tex_ts::te_gemm_ts", transformer_engine.scripted_product, _LENS, is_whole=True),
    Rule(r"_Linear|_LayerNormLinear", transformer_engine.linear, _ENGINE, is_whole=True),
    Rule(r"_LayerNormMLP", transformer_engine.two_layers, _ENGINE, is_whole=True),
    Rule(r"_(LayerNorm)?LinearBackward", partial(transformer_engine.backward, products=1), _ENGINE, is_whole=True, reads="forward"),
    Rule(r"_LayerNormMLPBackward", partial(transformer_engine.backward, products=2), _ENGINE, is_whole=True, reads="forward"),
    Rule(r"_GroupedLinear", transformer_engine.grouped, _ENGINE, is_whole=True),
    # convolutions
    Rule(r"aten::(convolution|_convolution|convolution_overrideable)", convolutions.convolution, _COUNTER, is_whole=True),
    Rule(r"aten::(cudnn|miopen)_(depthwise_)?convolution", convolutions.library_convolution, _COUNTER, is_whole=True),
    Rule(r"aten::mkldnn_convolution", convolutions.library_convolution, _COUNTER, is_whole=True),
    Rule(r"aten::(_slow_conv2d_forward|_conv_depthwise2d)", convolutions.slow_convolution, _COUNTER, is_whole=True),
    Rule(r"aten::convolution_backward(_overrideable)?", convolutions.convolution_backward, _COUNTER, is_whole=True),
    # attention
    Rule(r"aten::_scaled_dot_product_flash_attention", partial(attention.scaled_dot_product, causal=4), _FLASH, is_whole=True),
    Rule(r"aten::_scaled_dot_product_flash_attention_for_cpu", partial(attention.scaled_dot_product, causal=4), _FLASH, is_whole=True),
    Rule(r"aten::_scaled_dot_product_efficient_attention", partial(attention.scaled_dot_product, causal=6), _FLASH, is_whole=True),
    Rule(r"aten::_scaled_dot_product_cudnn_attention", partial(attention.scaled_dot_product, causal=6), _FLASH, is_whole=True),
    Rule(r"aten::_scaled_dot_product_fused_attention_overrideable", partial(attention.scaled_dot_product, causal=5), _FLASH, is_whole=True),
    Rule(r"aten::_scaled_dot_product_flash_attention_backward", partial(attention.scaled_dot_product_backward, causal=11), _FLASH, is_whole=True),
    Rule(r"aten::_scaled_dot_product_flash_attention_for_cpu_backward", partial(attention.scaled_dot_product_backward, causal=7), _FLASH, is_whole=True),
    Rule(r"aten::_scaled_dot_product_efficient_attention_backward", partial(attention.scaled_dot_product_backward, causal=11), _FLASH, is_whole=True),
    Rule(r"aten::_scaled_dot_product_cudnn_attention_backward", partial(attention.scaled_dot_product_backward, causal=14), _FLASH, is_whole=True),
    Rule(r"aten::_cudnn_attention_forward", partial(attention.scaled_dot_product, causal=10), _FLASH, is_whole=True),
    Rule(r"aten::_cudnn_attention_backward", partial(attention.scaled_dot_product_backward, causal=14), _FLASH, is_whole=True),
    Rule(r"aten::_flash_attention_forward", attention.flash_forward, _FLASH, is_whole=True),
    Rule(r"aten::_flash_attention_backward", attention.flash_form_backward, _FLASH, is_whole=True),
    Rule(r"aten::_efficient_attention_forward|xformers::efficient_attention_forward_ck", attention.efficient, _FLASH, is_whole=True),
    Rule(r"aten::_efficient_attention_backward", partial(attention.efficient_backward, ends=6, mask=14), _FLASH, is_whole=True),
    Rule(r"xformers::efficient_attention_backward_ck", partial(attention.efficient_backward, ends=5, mask=15), _XFORMERS, is_whole=True),
    Rule(r"FlashAttnFunc", partial(attention.flash, causal=5), _FLASH),
    Rule(r"flash_attn(_2)?::_flash_attn_forward|aiter::(_flash_attn_forward|mha_fwd|fmha_v3_fwd)", partial(attention.flash, causal=5, window=6), _FLASH_2, is_whole=True),
    Rule(r"flash_attn(_2)?::_flash_attn_backward", partial(attention.flash_backward, causal=11, window=12), _FLASH_2, is_whole=True),
    Rule(r"flash_attn(_2)?::_flash_attn_varlen_forward", partial(attention.joined, ends=3, longest=5, causal=9, window=10, pages=(15,)), _FLASH_2, is_whole=True),
    Rule(r"flash_attn(_2)?::_flash_attn_varlen_backward", partial(attention.joined_backward, ends=9, longest=11, causal=15, window=16), _FLASH_2, is_whole=True),
    Rule(r"flash_attn_3::(fwd|_flash_attn_forward)", attention.flash_3, _FLASH_3, is_whole=True),
    Rule(r"flash_attn_3::bwd", partial(attention.flash_3_backward, ends=9, longest=13), _FLASH_3, is_whole=True),
    Rule(r"flash_attn_3::_flash_attn_backward", partial(attention.flash_3_backward, ends=6, longest=10), _FLASH_3, is_whole=True),
    Rule(r"xformers_flash::flash_fwd", attention.xformers_flash, _XFORMERS, is_whole=True),
    Rule(r"xformers_flash::flash_bwd", attention.xformers_flash_backward, _XFORMERS, is_whole=True),
    Rule(r"aiter::_flash_attn_backward", partial(attention.flash_backward, causal=12, window=13), _AITER_ATTENTION, is_whole=True),
    Rule(r"aiter::(mha|fmha_v3)_bwd", partial(attention.flash_backward, causal=8, window=9), _AITER_ATTENTION, is_whole=True),
    Rule(r"aiter::_flash_attn_varlen_forward", partial(attention.joined, ends=3, longest=7, causal=12, window=14, pages=(25,)), _AITER_ATTENTION, is_whole=True),
    Rule(r"aiter::(mha|fmha_v3)_varlen_fwd", partial(attention.joined, ends=3, longest=5, causal=12, window=13, pages=(19,)), _AITER_ATTENTION, is_whole=True),
    Rule(r"aiter::(mha|fmha_v3)_varlen_bwd", partial(attention.joined_backward, ends=6, longest=8, causal=13, window=14), _AITER_ATTENTION, is_whole=True),
    Rule(r"aiter::mha_batch_prefill", attention.paged, _AITER_ATTENTION, is_whole=True),
    Rule(r"vllm::unified_attention(_with_output)?", attention.paged, _LENS, is_whole=True),
    Rule(r"sglang_profiler::attention_paged_attention_ragged(_\d+)?", partial(attention.paged, keys=3), _LENS, is_whole=True),
    # mixtures of experts
    Rule(r"vllm::moe_forward(_shared)?", experts.routed_layer, _VLLM_EXPERTS, reads="inside"),
    Rule(r"(vllm|sglang)::(in|out)place_fused_experts|aiter::fused_moe_?|vllm::rocm_aiter_fused_moe", experts.fused_experts, _VLLM_EXPERTS, is_whole=True),
    Rule(r"aiter::fmoe(_int8_g1u0(_a16)?|_g1u1(_a16|_tkw1)?|_fp8_blockscale_g1u1)?", experts.fused_experts_into, _AITER_EXPERTS, is_whole=True),
    Rule(r"aiter::ck_moe_stage1", experts.first_product, _AITER_EXPERTS, is_whole=True),
    Rule(r"aiter::ck_moe_stage2", experts.second_product, _AITER_EXPERTS, is_whole=True),
    Rule(r"sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel(_\d+)?", experts.expert_kernel, _LENS, is_whole=True),
    Rule(r"aiter::moe_cktile2stages_gemm1_ck", partial(experts.first_product, result=2, chosen=6), _AITER_EXPERTS, is_whole=True),
    Rule(r"aiter::moe_cktile2stages_gemm2_ck", partial(experts.second_product, weights=1, result=2, chosen=6), _AITER_EXPERTS, is_whole=True),
    Rule(r"trtllm::fused_moe", experts.chosen_experts, _TRTLLM_EXPERTS, is_whole=True),
    Rule(r"flashinfer::cutlass_fused_moe", partial(experts.chosen_experts, hidden=1), _FLASHINFER_EXPERTS, is_whole=True),
    Rule(r"trtllm::fp8_block_scale_moe_runner|flashinfer::trtllm_fp8_block_scale_moe|sglang::trtllm_fp8_block_scale_moe_wrapper", partial(experts.scored_experts, first=4, second=6), _TRTLLM_EXPERTS, is_whole=True),
    Rule(r"vllm::flashinfer_fused_moe_blockscale_fp8", partial(experts.scored_experts, first=3, second=5), _VLLM_FLASHINFER, is_whole=True),
    Rule(r"vllm::fi_trtllm_fp8_per_tensor_moe", partial(experts.scored_experts, first=4, second=5), _VLLM_FLASHINFER, is_whole=True),
    # normalisations
    Rule(r"aten::(native_|miopen_|cudnn_)?layer_norm", normalisations.layer_norm, _LENS, is_whole=True),
    Rule(r"aten::(native_)?group_norm|aiter::_groupnorm_run", normalisations.group_norm, _LENS, is_whole=True),
    Rule(r"aten::((native_|miopen_|cudnn_|_native_)?batch_norm(_legit)?(_impl_index)?|instance_norm)", normalisations.batch_norm, _LENS, is_whole=True),
    Rule(r"aten::_fused_rms_norm", normalisations.rms_norm, _LENS, is_whole=True),
    Rule(r"aten::native_layer_norm_backward", normalisations.layer_norm_backward, _LENS, is_whole=True),
    Rule(r"aten::native_group_norm_backward", normalisations.group_norm_backward, _LENS, is_whole=True),
    Rule(r"aten::native_batch_norm_backward", normalisations.batch_norm_backward, _LENS, is_whole=True),
    Rule(r"aten::(miopen|cudnn)_batch_norm_backward", normalisations.library_batch_norm_backward, _LENS, is_whole=True),
    Rule(r"aten::_fused_rms_norm_backward", normalisations.rms_norm_backward, _LENS, is_whole=True),
    Rule(r"aiter::(rms_norm|rmsnorm2d_fwd(_ck)?)|vllm::rms_norm", partial(normalisations.rms_norm, parameter=1, normalised=None), _LENS, is_whole=True),
    Rule(r"aiter::(rmsnorm|rms_norm_cu)|_C::rms_norm|sgl_kernel::rmsnorm", partial(normalisations.rms_norm, parameter=2, normalised=None), _LENS, is_whole=True),
    Rule(r"aiter::(add_rmsnorm|rmsnorm2d_fwd_with_add(_ck)?)|_C::fused_add_rms_norm|sgl_kernel::fused_add_rmsnorm", normalisations.added_rms_norm, _LENS, is_whole=True),
    Rule(r"aten::_(log_)?softmax", normalisations.softmax, _ONCE),
    Rule(r"aten::_(log_)?softmax_backward_data", normalisations.softmax_backward, _ONCE),
    # reductions, pooling, losses
    Rule(r"aten::(sum|mean|prod|norm|linalg_vector_norm|linalg_norm|std|var|amin|amax|logsumexp|nansum|count_nonzero)", _reduce, _LENS),
    Rule(r"aten::(all|any)", partial(_reduce, result=1), _ONCE),
    Rule(r"aten::(argmax|argmin)", partial(_reduce, result=8), _ONCE),
    Rule(r"aten::(max|min|median|mode|kthvalue)", reductions.with_positions, _LENS),
    Rule(r"aten::_?(cumsum|cumprod|logcumsumexp|cummax|cummin)", reductions.scan, _LENS),
    Rule(r"aten::topk", reductions.largest, _ONCE, is_whole=True),
    Rule(r"aten::(sort|argsort)", reductions.sort, _ONCE, is_whole=True),
    Rule(r"aten::max_pool[23]d_with_indices", partial(reductions.pooling, positions=True), _ONCE),
    Rule(r"aten::avg_pool[23]d", partial(reductions.pooling, positions=False), _ONCE),
    Rule(r"aten::_?adaptive_(avg|max)_pool[123]d", reductions.adaptive_pooling, _ONCE),
    Rule(r"aten::(max_pool[23]d_with_indices|avg_pool[23]d|_adaptive_avg_pool[23]d)_backward", reductions.pooling_backward, _ONCE),
    Rule(r"aten::nll_loss(2d)?_forward", reductions.negative_log_likelihood, _ONCE),
    Rule(r"aten::nll_loss(2d)?_backward", reductions.negative_log_likelihood_backward, _ONCE),
    Rule(r"aten::(mse_loss|l1_loss|smooth_l1_loss|huber_loss|binary_cross_entropy(_with_logits)?|kl_div)", reductions.loss, _ONCE),
    # lookups and copies
    Rule(r"aten::(copy_|_foreach_copy_single)", elementwise.copy, _LENS),
    Rule(r"aten::arange", elementwise.arange, _ONCE),
    Rule(r"aten::(fill_|zero_|normal_|uniform_|random_|bernoulli_|exponential_|ones_like|zeros_like)", elementwise.fill, _ONCE),
    Rule(r"aten::(embedding)", movement.lookup, _ONCE, is_whole=True),
    Rule(r"aten::embedding_dense_backward", movement.lookup_backward, _ONCE, is_whole=True),
    Rule(r"aten::_?embedding_bag(_forward_only)?", movement.bags, _ONCE, is_whole=True),
    Rule(r"aten::index_select", movement.select, _ONCE),
    Rule(r"aten::(gather|take_along_dim)", movement.gather, _ONCE),
    Rule(r"aten::(scatter(_add)?_?|index_add_?|index_copy_?)", movement.scatter, _ONCE),
    Rule(r"aten::(_?cat|concat|stack)", movement.concatenation, _ONCE),
    Rule(r"aten::_chunk_cat", movement.padded_concatenation, _ONCE),
    Rule(r"aten::split_with_sizes_copy", movement.split, _ONCE),
    Rule(r"aten::index", movement.index, _ONCE),
    Rule(r"aten::_local_scalar_dense", movement.read, _ONCE),
    Rule(r"_C_cache_ops::reshape_and_cache(_flash)?|sglang::store_cache", movement.cache_update, _LENS, is_whole=True),
    # lists of tensors and optimizers
    Rule(r"aten::_fused_adamw?_", partial(movement.tensor_lists, flops_each=16, lists_written=3, lists_read=4), _ADAM, is_whole=True),
    Rule(r"aten::_fused_sgd_", partial(movement.tensor_lists, flops_each=4, lists_written=2, lists_read=3), _ONCE, is_whole=True),
    Rule(r"aten::_foreach_(add|sub|mul|div|maximum|minimum)_?", movement.tensor_lists, _ONCE),
    Rule(r"aten::_foreach_(lerp|addcmul|addcdiv)_?", partial(movement.tensor_lists, flops_each=3), _ONCE),
    Rule(r"aten::_foreach_(sqrt|neg|abs|exp|reciprocal|pow)_?", movement.tensor_lists, _ONCE),
    Rule(r"aten::_foreach_(zero_)", partial(movement.tensor_lists, flops_each=0, lists_read=0), _ONCE),
    Rule(r"aten::_foreach_(norm)", partial(movement.tensor_lists, flops_each=2, lists_written=0), _ONCE),
    Rule(r"aten::_foreach_copy_", partial(movement.tensor_lists, flops_each=0, lists_read=1), _ONCE),
    # elementwise operators
    Rule(r"aten::(eq|ne|lt|le|gt|ge|logical_(and|or|xor|not)|isnan|isinf|isneginf|isposinf|isfinite)_?", elementwise.comparison, _ONCE),
    Rule(r"aten::(add|sub|rsub|mul|div|true_divide|floor_divide|remainder|fmod|maximum|minimum|atan2|pow|bitwise_\w+|__\w+__)_?", partial(elementwise.elementwise, inputs=(0, 1)), _LENS),
    Rule(r"aten::(addcmul|addcdiv|where|lerp)_?", partial(elementwise.elementwise, inputs=(0, 1, 2)), _ONCE),
    Rule(r"aten::(masked_fill)_?", partial(elementwise.elementwise, inputs=(0, 1)), _ONCE),
    Rule(r"aten::(clamp|clamp_min|clamp_max|sigmoid|rsqrt|silu|neg|sqrt|abs|exp|exp2|expm1|log|log2|log10|log1p|sin|cos|tan|tanh|erf|relu|relu6|gelu|elu|leaky_relu|hardtanh|hardswish|hardsigmoid|mish|softplus|log_sigmoid_forward|reciprocal|sign|sgn|floor|ceil|round|trunc|clone_impl|triu|tril|square)_?", elementwise.elementwise, _LENS),
    Rule(r"aten::(sigmoid|tanh|threshold|gelu|silu|elu|leaky_relu|hardtanh|hardswish|hardsigmoid|softplus|mse_loss|log_sigmoid|glu|mish)_backward", partial(elementwise.elementwise, inputs=(0, 1)), _LENS),
    Rule(r"aten::(native_dropout)", elementwise.dropout, _ONCE, is_whole=True),
    Rule(r"aten::native_dropout_backward", partial(elementwise.elementwise, inputs=(0, 1), flops_each=2), _ONCE),
    Rule(r"aten::(replication|reflection)_pad[123]d", elementwise.pad, _LENS),
    Rule(r"aten::upsample_\w+?[123]d", elementwise.resample, _LENS),
    Rule(r"(sgl_kernel|_C|aiter)::(silu|gelu|gelu_tanh)_and_mul", elementwise.gated, _LENS, is_whole=True),
    Rule(r"(sgl_kernel|_C)::rotary_embedding", elementwise.rotary_embedding, _LENS, is_whole=True),
    Rule(r"aiter::rope_(cached_positions_)?2c_fwd_impl", elementwise.rotary_embedding_into, _AITER_ROTATIONS, is_whole=True),
    Rule(r"_C::(static|dynamic|dynamic_per_token)_scaled_(fp8|int8)_quant", elementwise.quantise_into, _VLLM_KERNELS, is_whole=True),
    # generated kernels
    Rule(r"triton_\w+", fused.generated, _LENS),
)
# fmt: on
"""The rules that come with holotrace; the first rule whose pattern matches an operator's whole name applies."""


def rules_of(operators: pl.Series) -> dict[str, Rule | None]:
    """Return {name: its active rule, or None}."""
    names, known = dict.fromkeys(operators.drop_nulls()), _rules_found(_TABLE.own())
    new = [name for name in names if name not in known]
    found = _first_matches(new)
    if len(known) < _REMEMBERED_NAMES:
        known.update(found)
    return {name: found[name] if name in found else known[name] for name in names}


@lru_cache(maxsize=2)
def _rules_found(_own: tuple[Rule, ...]) -> dict[str, Rule | None]:
    """Return the cache {operator name: rule} that belongs to these user-defined rules.

    The cache is empty at first, and callers fill it. If the user changes the rules, a new cache is created.
    """
    return {}


def _first_matches(names: Sequence[str]) -> dict[str, Rule | None]:
    """Return {name: the first rule whose pattern matches it, or None}."""
    unmatched, rules = pl.Series(names, dtype=pl.String), dict[str, Rule | None].fromkeys(names)
    for rule in active_rules():
        if unmatched.is_empty():
            break
        is_match = _matches(rule.pattern, unmatched)
        rules.update(dict.fromkeys(unmatched.filter(is_match), rule))
        unmatched = unmatched.filter(~is_match)
    return rules


def cost_of(arguments: Arguments) -> Cost:
    """Return the cost of a call according to the active rules, with a reason if values are unknown."""
    return cost_by(rules_of(pl.Series([arguments.operator])).get(arguments.operator), arguments)


def cost_by(rule: Rule | None, arguments: Arguments) -> Cost:
    """Return the cost of a call according to a rule, with a reason if values are unknown."""
    if rule is None:
        return unknown("no rule covers the operator")
    if not arguments.count:
        return unknown("the shapes of the inputs were not recorded (record_shapes=True)")
    try:
        return rule.formula(arguments)
    except UnknownCostError as error:
        return unknown(str(error))
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError) as error:
        return unknown(f"the inputs are not those that the rule expects: {error}")


def add_rule(  # noqa: PLR0913 -- the columns of the table
    pattern: str,
    formula: Formula | None = None,
    *,
    flops: str = "",
    bytes: str = "",  # noqa: A002 -- as the column says
    work: Work = "vector",
    is_whole: bool = True,
    source: str = "",
) -> None:
    """Set the cost of operators whose whole name matches `pattern`; this rule overrides all others.

    Args:
        pattern: a regular expression.
        formula: a function that takes `Arguments` and returns a `Cost`; it must be picklable if worker processes are
            used.
        flops: instead of `formula`: the operations of one call, as text such as `"2 * elements(0)"`.
        bytes: instead of `formula`: the bytes that one call moves, as text.
        work: "matrix" if tensor cores can do the arithmetic, "vector" if they cannot, "copy" if there is no arithmetic.
        is_whole: whether the cost includes the costs of all operators inside the call.
        source: where the formula comes from.

    Raises:
        InvalidOptionError: the pattern or a formula is invalid.

    >>> add_rule("mylib::scale", flops="elements(0)", bytes="2 * bytes(0)")
    >>> cost_of(Arguments("mylib::scale", ([4, 8],), ("float",))).bytes
    256
    >>> remove_added_rules()
    """
    where = "add_rule"
    used = formula or _text_formula({"flops": flops, "bytes": bytes, "work": work}, where)
    _TABLE.add(Rule(checked_pattern(pattern, where), used, source, is_whole))


def remove_added_rules() -> None:
    """Remove every rule that `add_rule` added."""
    _TABLE.remove_added()


def active_rules() -> tuple[Rule, ...]:
    """Return the active rules in order of priority: added rules, rules from the rule file, then `RULES`."""
    return _TABLE.active()


def _matches(pattern: str, operators: pl.Series) -> pl.Series:
    """Return whether the pattern matches each whole name, using Polars, which compiles patterns faster than Python."""
    try:
        return operators.str.contains(f"^(?:{pattern})$")
    except pl.exceptions.ComputeError:  # polars has no lookahead
        compiled = re.compile(pattern)
        return pl.Series([compiled.fullmatch(name) is not None for name in operators], dtype=pl.Boolean)


def _rule_of(entry: dict[str, Any], where: str) -> Rule:
    pattern = checked_pattern(entry.get("pattern"), where)
    return Rule(
        pattern, _text_formula(entry, where), str(entry.get("source", where)), bool(entry.get("is_whole", True))
    )


def _text_formula(entry: dict[str, Any], where: str) -> TextFormula:
    flops, moved = (checked_formula(entry[name], where) if entry.get(name) else "" for name in ("flops", "bytes"))
    work = entry.get("work", "vector")
    if not flops and not moved:
        message = f"{where}: a rule needs `flops` or `bytes`"
        raise InvalidOptionError(message)
    if work not in get_args(Work):
        message = f"{where}: work={work!r} is not one of: {', '.join(get_args(Work))}"
        raise InvalidOptionError(message)
    return TextFormula(flops, moved, work)


_TABLE = RuleTable(RULES, variable=RULES_VARIABLE, wanted="`pattern`, and `flops` or `bytes`", read=_rule_of)
