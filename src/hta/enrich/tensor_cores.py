"""Which kernels run on tensor cores (NVIDIA) or matrix cores (AMD), and which operators could.

The profiler does not say it; the names of the kernels do, in words that change with every generation of hardware and
libraries. So the words are a table, each with its source, and the first row that matches decides: rules of the user,
those of the file that `HTA_TENSOR_CORE_RULES` names, then `RULES`. A name that no rule knows runs on the ordinary cores.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import polars as pl

from hta.enrich import kernel_kind
from hta.enrich.rule_table import RuleTable, checked_pattern
from hta.errors import InvalidOptionError
from hta.schema import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hta.enrich.attribution import Compat
    from hta.store.trace import RankTrace

T = TypeVar("T")

Cores: TypeAlias = Literal["tensor", "ordinary", "unknown"]

_SCANNED_LENGTH = 8_000
"""Patterns see so much of a name: some take time that grows with the square of it, and names come from the program."""

_REMEMBERED_NAMES = 4_096
"""Ranks of a job run the same kernels."""

_USES: dict[Cores, bool | None] = {"tensor": True, "ordinary": False, "unknown": None}

RULES_VARIABLE = "HTA_TENSOR_CORE_RULES"
"""Environment variable with the path of a rule file."""


@dataclass(frozen=True)
class Rule:
    """What one pattern says about names of kernels.

    pattern  regular expression, searched in the whole name, template arguments too: they hold the instruction
    cores    where such kernels run: "tensor" (or matrix) cores, "ordinary" ones, "unknown" where the name does not tell
    reason   where such names come from
    """

    pattern: str
    cores: Cores
    reason: str = ""


RULES: tuple[Rule, ...] = (
    Rule(r"^(void )?nccl|nccl(Dev)?Kernel", "ordinary", "NCCL and RCCL add at most"),
    Rule(
        r"^triton_(poi|red|per|for)_",
        "ordinary",
        "TorchInductor's pointwise, reduction, persistent reduction and foreach kernels multiply no matrices",
    ),
    Rule(r"_[fd]fma_|(?i:[_:]simt[_>,])|OpClassSimt", "ordinary", "xmma and CUTLASS variants for the ordinary cores"),
    Rule(
        r"(?i)dot_do_o|convert_dq|splitkv_combine|FlashAttnFwdCombine|FlashAttnBwdP(re|ost)process",
        "ordinary",
        "FlashAttention, Composable Kernel and cuDNN: what comes before and after the products",
    ),
    # NVIDIA: the instruction or its shape in the name
    Rule(
        r"[a-z](884|1688|8816|8832|16816|16832|16864|168128|168256)(?![0-9])",
        "tensor",
        "cuBLAS, cuDNN and CUTLASS 2 write m, n and k of the mma instruction: Volta 884, Turing 1688, Ampere 16816",
    ),
    Rule(
        r"(?i)(?<![a-z])([hidqbuw]|[hiqw]g)mma(?![a-z])|tcgen05",
        "tensor",
        "instructions by name: hmma, imma, dmma, wmma, and of Hopper and Blackwell wgmma, qgmma, tcgen05",
    ),
    Rule(r"tensor\d+x\d+x\d+|(?i:(wmma|sp)?_?tensorop)", "tensor", "xmma writes tensor16x8x16, CUTLASS tensorop"),
    Rule(
        r"SM(7[05]|8\d|9\d|1[012]\d)_(MMA_|U?\d+x\d+x\d+|SPARSE)|GMMA::|UMMA::|"
        r"Sm(9\d|1[012]\d)\w*(WarpSpecialized|Gmma|Umma)",
        "tensor",
        "CUTLASS 3 and 4 name the MMA atom or the main loop among the template arguments",
    ),
    Rule(
        r"^nvjet",
        "tensor",
        "cuBLAS since CUDA 12.5, on Hopper and Blackwell: nvjet_hsh_256x128_64x4_…",
    ),
    Rule(r"xmma_", "tensor", "NVIDIA's xmma kernels, sm70 to sm120: sm80_xmma_fprop_implicit_gemm_…, sm90_xmma_gemm_…"),
    Rule(
        r"dgrad_1x1_stride_2x2|first_layer_wgrad_kernel|conv1x1|conv2d_c1_k1|direct_group",
        "tensor",
        "cuDNN kernels that NVIDIA's DLProf counted, as the TensorBoard plugin did",
    ),
    Rule(
        r"cudnn_generated_fort_native_(sdpa|matmul|conv)|cudnn\w*_sm(8\d|9\d|1[012]\d)_flash",
        "tensor",
        "cuDNN 8.9 and 9 generate attention and convolution for tensor cores",
    ),
    # attention and matrix products of other libraries
    Rule(r"fmha_cutlass[FB]_f32_\w*sm(5|6|70|75)", "ordinary", "memory-efficient attention in FP32 before Ampere"),
    Rule(
        r"fmha_cutlass[FB]_b?f\d+_\w*sm(7|8|9|1\d)",
        "tensor",
        "PyTorch's memory-efficient attention; FP32 as three TF32",
    ),
    Rule(
        r"(^|::|\s|<)flash_(fwd|bwd)_|FlashAttn(Fwd|Bwd)|flash::enable_sm|flash_attn_cute|FlashAttention(Forward|Backward)Sm",
        "tensor",
        "FlashAttention 2 (flash_fwd_kernel), 3 (FlashAttnFwdSm90) and 4",
    ),
    Rule(r"fmha_v2_|fmhaSm\d+|(^|::)(Batch|Single)Prefill\w*Kernel", "tensor", "TensorRT-LLM and FlashInfer, prefill"),
    Rule(
        r"deep_gemm::|(^|::|\s)[Mm]arlin|(^|::)(awq|gptq)_gemm", "tensor", "DeepGEMM; Marlin and AWQ in vLLM and SGLang"
    ),
    # AMD
    Rule(
        r"(?i)mfma|xdlops|_xdl(?![a-z])|gtcx",
        "tensor",
        "CDNA's instruction; Composable Kernel and MIOpen write xdl or gtcx",
    ),
    Rule(
        r"Cijk_.*_MI\d+x\d+",
        "tensor",
        "rocBLAS and hipBLASLt (Tensile): MI16x16x16 is the shape of the matrix instruction",
    ),
    Rule(
        r"ck_tile::.*(Gemm|Fmha(Fwd|Bwd))|fmha_(fwd|bwd)_(hd\d+|d\d+)|FmhaFwd",
        "tensor",
        "Composable Kernel's tile library",
    ),
    Rule(r"(?i)aiter.{0,400}(fmha|mla|gemm|flatmm|fmoe)", "tensor", "AITER's assembly for MI300 and later"),
    Rule(r"^attn_fwd|^bwd_kernel_d(k_dv|q|kdv)", "tensor", "AOTriton, PyTorch's attention on ROCm; MFMA has FP32 too"),
    # Triton
    Rule(
        r"^triton_(tem|mm|bmm)_|^(\w*_)?(matmul|gemm|attn|attention|fused_moe)_(\w*_)?(kernel|fwd|bwd)\w*$|^_(attn|bwd)_",
        "unknown",
        "Triton's tl.dot runs on tensor cores except in FP32 without TF32, and the name does not say the type",
    ),
)
"""The rules that ship; the first that matches decides."""

_PLUGIN_KERNELS = (
    r"h884|s884|h1688|s1688|hmma|i8816|16816|dgrad_1x1_stride_2x2|first_layer_wgrad_kernel|conv1x1|conv2d_c1_k1|"
    r"direct_group|xmma_implicit_gemm|xmma_sparse_conv|xmma_warp_specialized_implicit_gemm|xmma_gemm|"
    r"xmma_sparse_gemm|c1688"
)
"""Parts of names that the TensorBoard plugin knew: nothing after Ampere's first kernels, nothing of AMD."""

_PLUGIN_OPERATORS = (
    r"aten::(_convolution|conv[123]d|conv_tbc|conv_transpose[123]d|convolution|prelu|addm[mv]|addmm_|addr|matmul|m[mv]|"
    r"linear|addbmm|baddbmm|bmm|chain_matmul|linalg_multi_dot|_thnn_fused_(lstm|gru)_cell|(lstm|gru)_cell|"
    r"rnn_(tanh|relu)_cell|cudnn_convolution(_transpose)?(_backward(_input|_weight)?)?)|"
    r"(CudnnConvolution(Transpose)?|Mm|Addmv|Mv|Addmm|Addbmm)Backward|BmmBackward0"
)
"""Whole names of operators that the plugin knew."""

_OPERATORS = (
    # convolutions and recurrent layers, their backward passes too
    r"aten::(convolution_backward|convolution(_backward)?_overrideable|lstm|gru)",
    r"aten::(miopen|cudnn|mkldnn|_cudnn)_((depthwise_)?convolution|rnn)\w*",
    # products of matrices of later versions: FP8, INT8, grouped, sparse
    r"aten::(einsum|tensordot|inner|linear_backward|_addmm_activation|addbmm_|baddbmm_|_int_mm|_?grouped_mm)",
    r"aten::_(scaled_(grouped_)?mm|weight_int\dpack_mm|cslt_sparse_mm|sparse_semi_structured|mixed_dtypes_linear)\w*",
    # attention
    r"aten::_?(scaled_dot_product|flash|efficient|cudnn|triton)\w*attention\w*",
    r"aten::_(native_multi_head_attention|transformer_encoder_layer_fwd)",
    r"(flash_attn\w*|xformers|vllm|aiter)::.*(attn|attention|fmha).*",
    # matrix products of libraries
    r"(vllm|_C|aiter|fbgemm|torchao|deep_gemm|transformer_engine|trtllm)::.*(gemm|_mm|linear|matmul).*",
    # autograd's nodes, with the number that PyTorch 1.10 and later append
    r"(Addm[mv]|Addbmm|Baddbmm|Bmm|M[mv]|Linear|Convolution|CudnnConvolution(Transpose)?|MiopenConvolution)Backward\d*",
    r"(CudnnRnn|(Scaled)?GroupedMm|ScaledDotProduct\w*Attention|FlashAtt\w*|EfficientAttention)Backward\d*",
)
"""Whole names of operators that the plugin did not know."""


def uses_tensor_cores(rank_trace: RankTrace, compat: Compat | None = None) -> pl.DataFrame:
    """Say of each kernel whether it runs on tensor or matrix cores, under the rules as they are at this call.

    Returns:
        In file order, one row a kernel:

        event_index        uint32
        uses_tensor_cores  bool    null where the name does not tell; with `compat` the plugin's answer, never null
    """
    rules = _PLUGIN_RULES if compat else active_rules()
    by_rules = rank_trace.derive(_answers_by_rules)
    if rules not in by_rules:
        by_rules[rules] = _answers(rank_trace, rules)
    return by_rules[rules]


def is_tensor_core_eligible(names: pl.Series, compat: Compat | None = None) -> pl.Series:
    """Say of each name of an operator (str) whether tensor cores could do its work, at the right types and sizes."""
    known = (_PLUGIN_OPERATORS,) if compat else (_PLUGIN_OPERATORS, *_OPERATORS)
    return names.str.contains(rf"^(?:{'|'.join(known)})$")


def answer_of_name(name: str) -> bool | None:
    """Return what the rules in force say of a kernel's name; None where it does not tell."""
    return _matcher(active_rules())(name)


def add_rule(pattern: str, cores: Cores, *, reason: str = "") -> None:
    """Decide from now on about kernels whose name contains `pattern`, before all other rules.

    Raises:
        InvalidOptionError: the pattern is no regular expression, or `cores` none of "tensor", "ordinary", "unknown".
    """
    _TABLE.add(_checked_rule(pattern, cores, reason, "add_rule"))


def remove_added_rules() -> None:
    """Forget every rule of `add_rule`."""
    _TABLE.remove_added()


def active_rules() -> tuple[Rule, ...]:
    """Return the rules in force, the most important first: added ones, those of the rule file, `RULES`."""
    return _TABLE.active()


def rules_from_file(path: str | Path) -> tuple[Rule, ...]:
    """Read rules from a JSON or TOML file: a list `rules` of objects with `pattern`, `cores` and, if you like, `reason`.

    Raises:
        InvalidOptionError: the file cannot be read, or what it holds are no rules; the message says where.
    """
    return _TABLE.from_file(path)


def with_current_rules(function: Callable[[RankTrace], T]) -> Callable[[RankTrace], T]:
    """Return the function as it is to run in a worker: under these rules and those for kinds of kernels."""
    return kernel_kind.with_current_rules(partial(_call_under, active_rules(), function))


_PLUGIN_RULES = (Rule(_PLUGIN_KERNELS, "tensor", "the TensorBoard plugin"),)


def _call_under(rules: tuple[Rule, ...], function: Callable[[RankTrace], T], rank_trace: RankTrace) -> T:
    with _TABLE.in_force(rules):
        return function(rank_trace)


def _answers_by_rules(_: RankTrace) -> dict[tuple[Rule, ...], pl.DataFrame]:
    """Make the place where the answers are remembered."""
    return {}


def _answers(rank_trace: RankTrace, rules: tuple[Rule, ...]) -> pl.DataFrame:
    kernels = rank_trace.events_of([EventKind.KERNEL], ["event_index", "name"])
    distinct = kernels["name"].unique()
    answers = pl.Series(map(_matcher(rules), rank_trace.texts(distinct)), dtype=pl.Boolean)
    by_name = pl.DataFrame({"name": distinct, "uses_tensor_cores": answers})
    return kernels.join(by_name, on="name", how="left", maintain_order="left").drop("name")


@lru_cache(maxsize=16)
def _matcher(rules: tuple[Rule, ...]) -> Callable[[str], bool | None]:
    compiled = [(re.compile(rule.pattern), _USES[rule.cores]) for rule in rules]

    @lru_cache(maxsize=_REMEMBERED_NAMES)
    def answer(name: str) -> bool | None:
        scanned = name[:_SCANNED_LENGTH]
        return next((uses for pattern, uses in compiled if pattern.search(scanned)), False)

    return answer


def _rule_of(entry: dict[str, Any], where: str) -> Rule:
    return _checked_rule(entry.get("pattern"), entry.get("cores", ""), str(entry.get("reason", "")), where)


def _checked_rule(pattern: object, cores: object, reason: str, where: str) -> Rule:
    if not isinstance(cores, str) or cores not in _USES:
        message = f"{where}: cores={cores!r} is none of: {', '.join(_USES)}"
        raise InvalidOptionError(message)
    return Rule(checked_pattern(pattern, where), cores, reason)


_TABLE = RuleTable(RULES, variable=RULES_VARIABLE, wanted="`pattern` and `cores`", read=_rule_of)
