"""Which kernels run on tensor cores (NVIDIA) or matrix cores (AMD), and which operators could use them.

The profiler does not record which cores a kernel uses. A kernel's name often shows which cores it uses, but in words
that change with every generation of hardware and libraries. A table of rules lists these words with their sources. The
first rule that matches decides: the user's rules come first, then the rules of the file that
`HOLOTRACE_TENSOR_CORE_RULES` names, then `RULES`.

If no rule matches, the kernel's name and its kind of work decide:

- The cores are unknown if the name contains a word for matrix products, such as `gemm`.
- Otherwise, they are ordinary cores if the kernel communicates or moves memory, or if its name suggests other work.
- Otherwise, they are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias, TypeVar

import polars as pl

from holotrace.algorithms.signatures import demangled, function_name
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.kernels import kernel_kind
from holotrace.errors import InvalidOptionError
from holotrace.schema import EventKind, KernelKind
from holotrace.store.derived import derived_under_rules
from holotrace.store.rule_table import RuleTable, checked_pattern
from holotrace.store.trace import RankTrace

T = TypeVar("T")

Cores: TypeAlias = Literal["tensor", "ordinary", "unknown"]

Answer: TypeAlias = "Callable[[str], bool | None]"

SCANNED_LENGTH = 8_000
"""At most this many characters of a name are searched, because some patterns take quadratic time."""

_REMEMBERED_NAMES = 4_096
"""Number of kernel names whose answers are cached; the cache helps because all ranks of a job run the same kernels."""

_USES: dict[Cores, bool | None] = {"tensor": True, "ordinary": False, "unknown": None}

RULES_VARIABLE = "HOLOTRACE_TENSOR_CORE_RULES"
"""Environment variable with the path of a rule file."""


@dataclass(frozen=True)
class Rule:
    """A pattern of kernel names, and the cores that matching kernels use.

    pattern  regular expression, searched for in the whole name, because template arguments may name the instruction
    cores    "tensor" for tensor or matrix cores, "ordinary" for other cores, "unknown" if the name does not show which
    reason   why the pattern shows these cores, or where such names come from
    """

    pattern: str
    cores: Cores
    reason: str = ""


_PRODUCTS = (
    r"gemm|matmul|(^|_|[a-z])mm(_|[A-Z]|$)|bmm|conv(?!ert)|attention|attn|mha|mla|fmoe|fused_?moe|linear(?!iz)|einsum|dot|mqa|lstm|gru|"
    r"mlp|ffn|feed_?forward|prefill|decode|(moe|gemm)\w*_?stage_?\d|(?<!in_)chunk|delta_?rule|delta_?net|_ssd_|_gla_|_kda_"
)
"""Words in the names of functions that may multiply matrices; the words do not show whether tensor cores are used."""

_NO_PRODUCTS = (
    r"elementwise|pointwise|reduc(e|tion)|softmax|norm(?!al)|normal_kernel|copy|memset|memcpy|(?<!pre)fill|zero|cast|convert|"
    r"transpos|permut|concat|cat_|CatArray|split_(with|cat|heads|qkv|embedding)|slice|index|indices|gather|scatter|embedding|embs?_|sort|top_?[kp](?![a-z])|"
    r"arg_?(max|min)|sampl|random|rng|philox|distribution|bernoulli|dropout|activation|act_and_mul|act_mul|silu|gelu|relu|"
    r"sigmoid|tanh|swiglu|rotary|rope|mask|where|scan|cum_?sum|cum_?prod|prefix_?sum|unique|histogram|bincount|count|"
    r"quant|scale|adam|sgd|lamb|adagrad|multi_tensor|foreach|optimizer|loss|nll|criterion|cross_entropy|pool|upsampl|"
    r"interpolat|im2col|col2im|pad_|padding|nms|roi_|grid_sampl|kv_?cache|reshape|align_block|expand|finalize|combine|"
    r"merge_state|merge_attn|tri[ul]|flip|roll_|arange|linspace|bitmatrix|routing|spin_|offset|repack|bounds_check|bias|"
    r"batch_?norm|bn_(fw|bw)|nchwTo|nhwcTo|add_tensor|TensorOpWith|lookup|hash|compare|clamp|abs_|exp_|pow_|sqrt|"
    r"barrier|signal|prepare|initiali[sz]e|init_|layout|swizzle|pack_|unpack|shuffle|delay|sleep|increment|advance_step"
)
"""A name with one of these words belongs to a function without matrix products, unless `_PRODUCTS` matches it, too."""

RULES: tuple[Rule, ...] = (
    Rule(r"^(void )?nccl|nccl(Dev)?Kernel", "ordinary", "NCCL and RCCL only move and add data"),
    Rule(
        r"^triton_(poi|red|per|for|split_scan|mix_order_reduction)_",
        "ordinary",
        "TorchInductor's pointwise, reduction, persistent reduction and foreach kernels multiply no matrices; "
        "https://github.com/pytorch/pytorch/blob/main/torch/_inductor/runtime/triton_heuristics.py",
    ),
    Rule(r"_[fd]fma_|(?i:[_:]simt[_>,])|OpClassSimt", "ordinary", "xmma and CUTLASS variants for the ordinary cores"),
    Rule(
        r"(?i)dot_do_o|convert_dq|splitkv_combine|FlashAttnFwdCombine|FlashAttnBwdP(re|ost)process|"
        r"FmhaBwd(OGradDotO|ConvertQGrad)|FmhaFwd(SplitKVCombine|AppendKV)|merge_attn_states|fmhaReductionKernel",
        "ordinary",
        "kernels of FlashAttention, Composable Kernel, cuDNN and TensorRT-LLM before and after the matrix products",
    ),
    Rule(
        r"(?i)split_?k_?reduce|ReduceSplitK|init_device_workspace|prepare_grouped_gemm_data|elemWiseRNNcell|_?splitk\w{0,99}_reduce|(^|[\s:_])(gemm|bmm|mla|attn|attention|fmha|pa)\w{0,99}_(reducev?|combine|schedule)(_|\b)|"
        r"(^|[\s_])_?finalize_matmul|marlin\w{0,99}_repack|(awq|gptq)\w{0,99}(_dequant|_repack|_shuffle)|kn_mla_reduce|interleave\w{0,99}_weights|"
        r"compute\w{0,99}Offsets?Kernel|(^|[\s:])get_mla_metadata|(gemm|gemms|matmul)\w{0,99}_(args|offsets?|metadata|problem_sizes)\b",
        "ordinary",
        "helpers of matrix products, which sum partial results, rearrange weights or tabulate problem sizes; "
        "https://github.com/triton-lang/triton/blob/main/python/triton_kernels/triton_kernels/matmul_ogs_details, "
        "https://github.com/ROCm/aiter/blob/main/csrc/kernels/mla/reduce.cu",
    ),
    Rule(
        r"(?i)(^|[\s:_])gemvn?(s?p|x|\d?[tn]|_|<|\(|strided|k1)|gemmk1_kernel|gemmSN_|^(void )?dot_kernel|reduce_1Block_kernel|"
        r"^(void )?(scal|axpy|asum|nrm2|copy|swap|iamax)_kernel",
        "ordinary",
        "cuBLAS: products of a matrix and a vector, products with one short side, and operations on vectors",
    ),
    Rule(
        r"^(void )?(cub|at_cuda_detail|thrust|hipcub|rocprim|fft2d|regular_fft|vector_fft|multi_bluestein_fft)\w{0,99}::|"
        r"(^|[\s:])(regular|vector|postprocess|preprocess)_?(c2c|r2c|c2r)?_?fft|fft2d_(r2c|c2r)|flip_filter",
        "ordinary",
        "the sorts, scans and reductions of CUB, Thrust and rocPRIM, and the kernels of cuFFT",
    ),
    # NVIDIA: the instruction or its shape in the name
    Rule(
        r"[a-z](884|1688|8816|8832|16816|16832|16864|168128|168256)(?![0-9])",
        "tensor",
        "names of cuBLAS, cuDNN and CUTLASS 2 contain m, n and k of the mma instruction: Volta 884, Turing 1688, "
        "Ampere 16816",
    ),
    Rule(
        r"(?i)(?<![a-z])([hidqbuw]|[hiqw]g)mma(?![a-z])|tcgen05|(?-i:[a-z]Wmma)",
        "tensor",
        "instructions by name: hmma, imma, dmma, wmma, and on Hopper and Blackwell wgmma, qgmma, tcgen05",
    ),
    Rule(
        r"tensor\d+x\d+x\d+|(?<![a-zA-Z])(wmma_|sp_?)?tensorop_|OpClass(Wmma)?TensorOp|Mma\w{0,99}TensorOp|m(8|16)n8k(4|8|16|32|64)(?!\d)",
        "tensor",
        "tensor16x8x16 in names of xmma; tensorop or OpClassTensorOp in names of CUTLASS; m16n8k16 in names of tinygemm",
    ),
    Rule(
        r"SM(7[05]|8\d|9\d|1[012]\d)_(MMA_|U?\d+x\d+x\d+|SPARSE)|GMMA::|UMMA::|"
        r"Sm(9\d|1[012]\d)\w{0,99}(WarpSpecialized|Gmma|Umma)",
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
        "cuDNN kernels that NVIDIA's DLProf and the TensorBoard plugin counted as tensor-core kernels",
    ),
    Rule(
        r"cudnn_generated_fort_native_(sdpa|matmul|conv)|cudnn\w{0,99}_sm(8\d|9\d|1[012]\d)_flash",
        "tensor",
        "attention, matrix products and convolutions that cuDNN 8.9 and 9 generate for tensor cores",
    ),
    # attention and matrix products of other libraries
    Rule(r"fmha_cutlass[FB]_f32_\w{0,99}sm(5|6|70|75)", "ordinary", "memory-efficient attention in FP32 before Ampere"),
    Rule(
        r"fmha_cutlass[FB]_b?f\d+_\w{0,99}sm(7|8|9|1\d)",
        "tensor",
        "PyTorch's memory-efficient attention, which computes an FP32 product as three TF32 products",
    ),
    Rule(
        r"(^|::|\s|<)flash_(fwd|bwd)_|FlashAttn(Fwd|Bwd)|flash::(enable_sm|compute_attn)|flash_attn_cute|"
        r"FlashAttention(Forward|Backward)Sm",
        "tensor",
        "FlashAttention 2 (flash_fwd_kernel), 3 (compute_attn_ws, FlashAttnFwdSm90) and 4; "
        "https://github.com/Dao-AILab/flash-attention/tree/main/hopper",
    ),
    Rule(
        r"fmha_v2_|fmhaSm\d+|(^|::)(Batch|Single)?(FP8)?Prefill\w{0,99}Kernel|(POD\w{0,99}TensorKernel|BatchMLAPage\w{0,99}Kernel|CuteSM80)",
        "tensor",
        "attention kernels of TensorRT-LLM, and FlashInfer's prefill; "
        "https://github.com/flashinfer-ai/flashinfer/tree/main/include/flashinfer/attention",
    ),
    Rule(
        r"(^|::|\s)(Batch|Single)DecodeWith\w{0,99}KVCacheKernel|(^|::|\s)paged_attention_v[12]_(reduce_)?kernel|"
        r"(^|::|\s)(single|masked)_query_(cached_kv|multihead)_attention|masked_multihead_attention_kernel",
        "ordinary",
        "attention of one query token, without matrix products: FlashInfer's decode, vLLM's paged_attention_v1 and v2; "
        "https://github.com/vllm-project/vllm/blob/main/csrc/attention/attention_kernels.cuh",
    ),
    Rule(
        r"^(void )?(bmm|gemm|batchedGemm)\w{0,99}_(Mx)?(E\dm\d|Bfloat16|Fp16|Int8)\w{0,99}_sm1\d\d",
        "tensor",
        "names of TensorRT-LLM's generated kernels for Blackwell contain the types and the architecture: "
        "bmm_MxE4m3_…_sm100f; "
        "https://github.com/NVIDIA/TensorRT-LLM/tree/main/cpp/tensorrt_llm/kernels/trtllmGenKernels",
    ),
    Rule(
        r"(^|::|\s)grouped_gemm::.*Gemm\w{0,99}Kernel|deep_gemm::\w{0,99}(gemm|bmm|einsum|mqa|hc_prenorm)|(^|::|\s)Marlin\b|marlin\w{0,99}::Marlin|"
        r"(^|::)awq_gemm|(^|::)\w{0,99}tinygemm_m16n8",
        "tensor",
        "grouped matrix products, DeepGEMM, and the Marlin and AWQ kernels of vLLM and SGLang; "
        "https://github.com/deepseek-ai/DeepGEMM/tree/main/deep_gemm/include/deep_gemm/impls",
    ),
    Rule(
        r"(?i)(fp8|fp4|e4m3|e5m2|e2m1|a8w8|w8a8|a8w4|w4a8|a4w4)\w{0,99}(gemm|bmm|matmul|_mm(_|\b))|"
        r"(gemm|bmm|matmul)\w{0,99}_(fp8|mxfp8|a?fp4|nvfp4|a8w8|w8a8|a8w4|w4a8|a4w4|afp4wfp4)(_|\b)",
        "tensor",
        "these kernels multiply 8-bit or 4-bit numbers on tensor cores: _w8a8_block_fp8_matmul, "
        "_gemm_a8w8_blockscale_kernel; "
        "https://github.com/ROCm/aiter/tree/main/aiter/ops/triton",
    ),
    # AMD
    Rule(
        r"(?i)mfma|xdlops|_xdl(?![a-z])|Xdl(?-i:[A-Z_<]|\b)|gtcx",
        "tensor",
        "CDNA's matrix instruction, which Composable Kernel and MIOpen call xdl or gtcx",
    ),
    Rule(
        r"Cijk_.*_MI\d+x\d+",
        "tensor",
        "rocBLAS and hipBLASLt (Tensile): MI16x16x16 is the shape of the matrix instruction",
    ),
    Rule(
        r"^(Custom_)?Cijk_\w{0,99}_MT\d+x\d+x\d+\w{0,99}_(SE|SN|K1|ISA\d+\w{0,99})(_|$)|^Cijk_((?!_MT\d).)*$",
        "ordinary",
        "Tensile's kernels without a matrix instruction, and its kernels that only scale or sum results: "
        "Cijk_SB_PostGSU; "
        "https://github.com/ROCm/Tensile/wiki/Kernel-Parameters",
    ),
    Rule(
        r"ck_tile::.*(Gemm|FlatmmKernel|Fmha(Fwd|Bwd))|fmha_(fwd|bwd)_(hd\d+|d\d+)|FmhaFwd",
        "tensor",
        "Composable Kernel's tile library",
    ),
    Rule(
        r"(^|[\s:])ck::.*(DeviceGemm\w{0,99}Dl(_|<|\b)|_dl_|_dlops)|ck_tile::kentry<.*(norm2d|Reduce|TopkSoftmax|MoeSorting|"
        r"ElementWise|Permute|SmoothQuant|BatchedTranspose|Im2?Col)",
        "ordinary",
        "Composable Kernel on the ordinary cores; https://github.com/ROCm/composable_kernel/tree/develop/include/ck",
    ),
    Rule(
        r"^(MIOpen(BatchNorm|LRN|Pool|Softmax|Activ|Neuron|Dropout|Cat|Reduce)|SubTensorOp|Op\d?d?Tensor|naive_conv|"
        r"batched_transpose|mloPooling|Im2d2Col|Col2Im|transpose_)",
        "ordinary",
        "MIOpen; https://github.com/ROCm/rocm-libraries/tree/develop/projects/miopen/src/kernels",
    ),
    Rule(
        r"(?i)aiter.{0,400}(fmha|mla_(?!reduce)|gemm|flatmm|fmoe)",
        "tensor",
        "AITER's assembly for MI300 and later; https://github.com/ROCm/aiter/tree/main/hsa",
    ),
    Rule(
        r"^attn_fwd|^bwd_kernel_d(k_dv|q|kdv)",
        "tensor",
        "AOTriton, PyTorch's attention on ROCm; MFMA also supports FP32",
    ),
    # Intel
    Rule(
        r"(?i)(?<![a-z])dpas(?![a-z])|xetla|(?<![a-z])xmx(?![a-z])",
        "tensor",
        "Intel's matrix extensions; https://github.com/intel/xetla",
    ),
    # Triton
    Rule(
        r"^_?(p_)?matmul_(ogs_)?[NT]{3}_\w{0,99}(bf16|fp16|fp8|e4m3|e5m2|mxfp|nvfp|int8)|^kernel_unified_attention_[23]d",
        "tensor",
        "gpt-oss, and vLLM's unified attention: kernels that multiply numbers of at most 16 bits; "
        "https://github.com/triton-lang/triton/tree/main/python/triton_kernels, "
        "https://github.com/vllm-project/vllm/tree/main/vllm/v1/attention/ops",
    ),
    Rule(
        r"^triton_(tem|mm|bmm)_|^(\w{0,99}_)?(matmul|gemm|attn|attention|fused_moe)_(\w{0,99}_)?(kernel|fwd|bwd)\w{0,99}$|^_(attn|bwd)_",
        "unknown",
        "Triton's tl.dot runs on tensor cores except in FP32 without TF32, and the name does not show the type",
    ),
    # kernels that multiply in FP32 or do not multiply matrices
    Rule(
        r"(^|[\s:_])(volta|turing|ampere|hopper|maxwell|pascal|kepler|sm\d+)_(g?[sdcz]|h)(gemm|cudnn|syrk|trmm)_|"
        r"_scudnn_|(^|[\s:])(im|ex)plicit_convolve_[sdh]gemm|(^|[\s:])(s|d|c|z)gemm_(largek|kernel|sm\d)|convolve_common_engine|magma_[sdcz]gemm|"
        r"(wgrad|dgrad)_(alg\w{0,99}_)?engine|(wgrad|dgrad)2d_|conv_depthwise|depthwise_?conv|(^|[\s:])(dgrad|wgrad|fprop)_depthwise|"
        r"winograd_?(nonfused|3x3Kernel|Forward|Wgrad|::generate)|epilogue::impl::globalKernel|Winograd\w{0,99}Transform",
        "ordinary",
        "cuBLAS and cuDNN kernels without an mma shape in the name, and depthwise convolutions",
    ),
    Rule(
        r"^(void )?(at|c10)::(?!.*(gemm|_mm_|(?<![a-zA-Z])w?mma|fmha|attention_kernel))",
        "ordinary",
        "PyTorch's own kernels; PyTorch leaves matrix products to libraries; "
        "https://github.com/pytorch/pytorch/tree/main/aten/src/ATen/native/cuda",
    ),
    Rule(
        r"^(void )?(cudnn::(ops|bn)|vllm::(?!.*(gemm|_mm|marlin|attention|mla))|fbgemm_gpu::(?!.*(gemm|_mm|attention)))",
        "ordinary",
        "layouts, normalisation, caches, activations and embedding tables of cuDNN, vLLM and FBGEMM",
    ),
)
"""The rules that come with holotrace; the first that matches decides.

If no rule matches a kernel, the first of these conditions that holds decides:

- If the kernel's name contains one of `_PRODUCTS`, it is unknown on which cores the kernel runs.
- If the kernel moves or sends data, or its name contains one of `_NO_PRODUCTS`, the kernel runs on ordinary cores.
- For all other kernels, it is unknown.
"""

PLUGIN_OPERATORS = (
    r"aten::(_convolution|conv[123]d|conv_tbc|conv_transpose[123]d|convolution|prelu|addm[mv]|addmm_|addr|matmul|m[mv]|"
    r"linear|addbmm|baddbmm|bmm|chain_matmul|linalg_multi_dot|_thnn_fused_(lstm|gru)_cell|(lstm|gru)_cell|"
    r"rnn_(tanh|relu)_cell|cudnn_convolution(_transpose)?(_backward(_input|_weight)?)?)|"
    r"(CudnnConvolution(Transpose)?|Mm|Addmv|Mv|Addmm|Addbmm)Backward|BmmBackward0"
)
"""Patterns of whole operator names, from the TensorBoard plugin."""

_OPERATORS = (
    # convolutions and recurrent layers, including their backward passes
    r"aten::(convolution_backward|convolution(_backward)?_overrideable|lstm|gru)",
    r"aten::(miopen|cudnn|mkldnn|_cudnn)_((depthwise_)?convolution|rnn)\w*",
    # matrix products that newer versions of PyTorch added: FP8, INT8, grouped, sparse
    r"aten::(einsum|tensordot|inner|linear_backward|_addmm_activation|addbmm_|baddbmm_|_int_mm|_?grouped_mm)",
    r"aten::_(scaled_(grouped_)?mm|weight_int\dpack_mm|cslt_sparse_mm|sparse_semi_structured|mixed_dtypes_linear)\w*",
    # attention
    r"aten::_?(scaled_dot_product|flash|efficient|cudnn|triton)\w*attention\w*",
    r"aten::_(native_multi_head_attention|transformer_encoder_layer_fwd)",
    r"(flash_attn\w*|xformers|vllm|aiter)::.*(attn|attention|fmha).*",
    # matrix products in libraries
    r"(vllm|_C|aiter|fbgemm|torchao|deep_gemm|transformer_engine|trtllm)::.*(gemm|_mm|linear|matmul).*",
    # autograd nodes, with the number that PyTorch 1.10 and later versions append
    r"(Addm[mv]|Addbmm|Baddbmm|Bmm|M[mv]|Linear|Convolution|CudnnConvolution(Transpose)?|MiopenConvolution)Backward\d*",
    r"(CudnnRnn|(Scaled)?GroupedMm|ScaledDotProduct\w*Attention|FlashAtt\w*|EfficientAttention)Backward\d*",
)
"""Patterns of whole operator names, for operators that the TensorBoard plugin does not list."""


@derived_under_rules
def uses_tensor_cores(rank_trace: RankTrace) -> pl.DataFrame:
    """Return whether each kernel runs on tensor or matrix cores.

    Returns:
        In file order, one row for each kernel:

        event_index        uint32
        uses_tensor_cores  bool    null if the name does not show it
    """
    return kernel_answers(rank_trace, _answer_in_force())


def is_tensor_core_eligible(names: pl.Series) -> pl.Series:
    """Return, for each operator name, whether tensor cores could do the work, given suitable types and sizes."""
    return names.str.contains(rf"^(?:{'|'.join([PLUGIN_OPERATORS, *_OPERATORS])})$")


def answer_of_name(name: str) -> bool | None:
    """Return whether a kernel with this name uses tensor cores according to the active rules; None if unknown."""
    return _answer_in_force()(name)


def add_rule(pattern: str, cores: Cores, *, reason: str = "") -> None:
    """Declare on which cores the kernels run whose names contain `pattern`; this rule overrides all others.

    Raises:
        InvalidOptionError: the pattern is not a regular expression, or `cores` is none of "tensor", "ordinary", "unknown".
    """
    _TABLE.add(_checked_rule(pattern, cores, reason, "add_rule"))


def remove_added_rules() -> None:
    """Remove every rule that `add_rule` added."""
    _TABLE.remove_added()


def active_rules() -> tuple[Rule, ...]:
    """Return the active rules in order of priority: added rules, rules from the rule file, then `RULES`."""
    return _TABLE.active()


def kernel_answers(rank_trace: RankTrace, answer: Answer) -> pl.DataFrame:
    """Call `answer` once for each distinct kernel name, and return the columns of `uses_tensor_cores`."""
    rows = device_rows(rank_trace).filter(pl.col("kind") == EventKind.KERNEL)
    kernels = rows.select("event_index", "name").sort("event_index")
    distinct = kernels["name"].unique()
    answers = pl.Series(map(answer, rank_trace.texts(distinct)), dtype=pl.Boolean)
    by_name = pl.DataFrame({"name": distinct, "uses_tensor_cores": answers})
    return kernels.join(by_name, on="name", how="left", maintain_order="left").drop("name")


def _answer_in_force() -> Answer:
    return _matcher(active_rules(), kernel_kind.active_rules())


@lru_cache(maxsize=16)
def _matcher(rules: tuple[Rule, ...], kernel_rules: tuple[kernel_kind.Rule, ...]) -> Answer:
    compiled = [(re.compile(rule.pattern), _USES[rule.cores]) for rule in rules]
    kind_of = kernel_kind.matcher(kernel_rules, EventKind.KERNEL)

    @lru_cache(maxsize=_REMEMBERED_NAMES)
    def answer(name: str) -> bool | None:
        scanned = _scanned(name)
        for pattern, uses in compiled:
            if pattern.search(scanned):
                return uses
        return _by_work(name, kind_of)

    return answer


def _by_work(name: str, kind_of: Callable[[str], KernelKind | None]) -> bool | None:
    """Return False if the name shows that a kernel multiplies no matrices, for example because it copies data; else None."""
    function = function_name(name)[:SCANNED_LENGTH]
    if _MAY_MULTIPLY.search(function):
        return None
    return False if kind_of(name) is not KernelKind.COMPUTATION or _MULTIPLIES_NOTHING.search(function) else None


def _scanned(name: str) -> str:
    """Return the text that is searched for patterns: the beginning of the kernel name, demangled if possible."""
    readable = demangled(name)
    return (readable if "(" in readable or not name.startswith("_Z") else name)[:SCANNED_LENGTH]


_MAY_MULTIPLY = re.compile(_PRODUCTS, re.IGNORECASE)
_MULTIPLIES_NOTHING = re.compile(_NO_PRODUCTS, re.IGNORECASE)


def _rule_of(entry: dict[str, Any], where: str) -> Rule:
    return _checked_rule(entry.get("pattern"), entry.get("cores", ""), str(entry.get("reason", "")), where)


def _checked_rule(pattern: object, cores: object, reason: str, where: str) -> Rule:
    if not isinstance(cores, str) or cores not in _USES:
        message = f"{where}: cores={cores!r} is not one of: {', '.join(_USES)}"
        raise InvalidOptionError(message)
    return Rule(checked_pattern(pattern, where), cores, reason)


_TABLE = RuleTable(RULES, variable=RULES_VARIABLE, wanted="`pattern` and `cores`", read=_rule_of)
