"""Find kernels and operators that use tensor cores according to the plugin."""

from __future__ import annotations

import re

import polars as pl

from holotrace.enrich.kernels.tensor_cores import PLUGIN_OPERATORS, SCANNED_LENGTH, kernel_answers
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_KERNELS = re.compile(
    r"h884|s884|h1688|s1688|hmma|i8816|16816|dgrad_1x1_stride_2x2|first_layer_wgrad_kernel|conv1x1|conv2d_c1_k1|"
    r"direct_group|xmma_implicit_gemm|xmma_sparse_conv|xmma_warp_specialized_implicit_gemm|xmma_gemm|"
    r"xmma_sparse_gemm|c1688"
)
"""Parts of the names of kernels that use tensor cores. Kernels for AMD, and for NVIDIA GPUs newer than the first Ampere
GPUs, are missing."""


@derived
def plugin_uses_tensor_cores(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the plugin's `uses_tensor_cores`, never null."""
    return kernel_answers(rank_trace, _uses_tensor_cores)


def plugin_is_eligible(names: pl.Series) -> pl.Series:
    """Return whether the plugin assumes that tensor cores could do the work of the operators with each name."""
    return names.str.contains(f"^(?:{PLUGIN_OPERATORS})$")


def _uses_tensor_cores(name: str) -> bool:
    return bool(_KERNELS.search(name[:SCANNED_LENGTH]))
