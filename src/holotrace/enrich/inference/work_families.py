"""Recognise the device work of attention and of mixtures of experts by the names of operators and kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.store.trace import RankTrace

_LONGEST = 1_000
"""Patterns are matched against at most this many characters of a name."""

PATTERNS = {
    # aten::scaled_dot_product_attention, vllm::unified_attention_with_output, kernel_unified_attention_2d, fmha_v2_…,
    # flash::flash_fwd_splitkv_kernel, FlashAttnFwdSm90, FlashInfer's BatchDecodeWithPagedKVCacheKernel,
    # SGLang's _fwd_grouped_kernel_stage1, cudnn_generated_fort_native_sdpa_…, AITER's sage_fwd, and the merging of split keys
    "attention": (
        r"(?i)attention|fmha|flash_?attn|flash_fwd|flash_?mla|(^|[_:])mla_|(^|[_:])mha_|paged_attn|"
        r"Batch(Decode|Prefill)With|Single(Decode|Prefill)With|_fwd_(grouped_)?kernel_stage\d|merge_attn|sdpa|scaled_dot_product|"
        r"^reduce_segments|FlashAttn|(^|_)sage_?(fwd|attn)"
    ),
    # fused_moe_kernel, moe_align_block_size_kernel, topkGatingSoftmax, aten::_grouped_mm, triton_kernels' _matmul_ogs
    "moe": r"(?i)moe|expert|topk_?gating|grouped_?(mm|gemm)|group_gemm|_matmul_ogs",
}


def is_of_family(rank_trace: RankTrace, family: str, kernels: pl.Series, operators: pl.Series) -> npt.NDArray[np.bool_]:
    """Return whether each kernel belongs to a family of work, judging by its name or its operator's name.

    Args:
        rank_trace: the rank.
        family: `attention` or `moe`.
        kernels: names of kernels, copies or memsets (string ids).
        operators: names of their operators (string ids); null if unknown.
    """
    named = (_matches(rank_trace, family, names) for names in (kernels, operators))
    result: npt.NDArray[np.bool_] = np.logical_or(*named)
    return result


def _matches(rank_trace: RankTrace, family: str, names: pl.Series) -> npt.NDArray[np.bool_]:
    distinct = names.unique().drop_nulls()
    texts = rank_trace.texts(distinct).str.head(_LONGEST)
    matching = distinct.filter(texts.str.contains(PATTERNS[family]))
    found: npt.NDArray[np.bool_] = names.is_in(matching.implode()).fill_null(value=False).to_numpy()
    return found
