"""The kind of device work: computation, communication, memory, or other.

The profiler does not record the kind. The first rule that applies decides:

1. the kind of the event: copies and memsets are memory, collective rows are communication;
2. the arguments: a kernel with arguments of a collective is communication;
3. the name: the user's rules, then the rules of the file that `HOLOTRACE_KERNEL_RULES` names, then `RULES`;
4. otherwise the work is computation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from holotrace.algorithms.signatures import function_name
from holotrace.errors import InvalidOptionError
from holotrace.schema import EventKind, KernelKind
from holotrace.store.rule_table import RuleTable, checked_pattern

T = TypeVar("T")

_SCANNED_LENGTH = 1_000
"""At most this many characters of a name are searched, because some patterns take more than linear time."""

RULES_VARIABLE = "HOLOTRACE_KERNEL_RULES"
"""Environment variable with the path of a rule file."""


@dataclass(frozen=True)
class Rule:
    """A pattern of kernel names, and the kind of the kernels that match it.

    pattern  regular expression, searched for in `holotrace.algorithms.signatures.function_name(name)`
    kind     the kind; None for rows that are not work, such as waits and markers
    reason   where such names come from
    only     the kind of event to which the rule applies; None for all kinds
    """

    pattern: str
    kind: KernelKind | None
    reason: str = ""
    only: EventKind | None = None


_COMMUNICATION = KernelKind.COMMUNICATION
_MTIA = EventKind.ACCELERATOR

_PREPARATIONS = (
    r"layout|preprocess|postprocess|epilogue|prologue|convert|mask_buffer|metadata|routing_map|prepare|sanitize|"
    r"indices|build_(block_row_)?i(ndex|dx)|align_block|send_reqs|expert_?count|token_?count|rank_?count|cum_?sum|"
    r"sparse_to_dense|dense_to_sparse|_scan_kernel|lamport_?init|local_(dispatch|combine|copy$)"
)
"""Words in the names of kernels that prepare an exchange or process its result on one device."""

RULES: tuple[Rule, ...] = (
    Rule(
        r"^triton_(poi|red|per|for|tem|mm|bmm|[a-z]+_fused)_",
        KernelKind.COMPUTATION,
        "TorchInductor names a fused kernel after the operators around it, such as all_gather and wait_tensor, "
        "although the kernel only computes",
    ),
    Rule(
        r"^(at|at_cuda_detail|cub|hipcub|thrust|rocprim|cutlass|cute|cudnn|cublas\w*|ck|ck_tile|flash|pytorch_flash)::",
        KernelKind.COMPUTATION,
        "PyTorch's operators and the libraries below them work on one device: at::native::_scatter_gather_…",
    ),
    Rule(
        rf"(?i)^(?=.*((^|::)\w*ep::|(^|::|_)ep_|uccl|mori|a2a|all_?(to|2)_?all|dispatch|combine|send_?recv|dis_scatter|lamport|(ag|gather)_))"
        rf".*({_PREPARATIONS})",
        KernelKind.COMPUTATION,
        "kernels that run before and after the exchanges of expert parallelism: get_dispatch_layout, ConvertDispatchOutputKernel, "
        "moeA2APrepareDispatchKernel, computeSendRecvIndicesKernel; "
        "https://github.com/deepseek-ai/DeepEP/blob/main/csrc/kernels/legacy/layout.cu, "
        "https://github.com/ROCm/mori/blob/main/src/ops/dispatch_combine/convert.hpp, "
        "https://github.com/flashinfer-ai/flashinfer/blob/main/include/flashinfer/comm/trtllm_alltoall.cuh",
    ),
    # collective libraries
    Rule(
        r"^nccl|nccl(Dev)?Kernel|(^|::)(oneRankReduce$|ctran)",
        _COMMUNICATION,
        "NCCL, and RCCL, which uses the same names: ncclDevKernel_AllReduce_…; "
        "https://github.com/NVIDIA/nccl/tree/master/src/device, https://github.com/ROCm/rccl/tree/develop/src/device",
    ),
    Rule(
        r"^mscclpp|^msccl(Kernel|_)|(^|::)mscclpp?::",
        _COMMUNICATION,
        "MSCCL and MSCCL++; https://github.com/microsoft/mscclpp/tree/main/src",
    ),
    Rule(r"^rccl|(^|::)rccl::", _COMMUNICATION, "RCCL's own kernels; https://github.com/ROCm/rccl"),
    Rule(
        r"^hccl|^hcom_|(^|::)hccl::|^MoeDistribute(Dispatch|Combine)",
        _COMMUNICATION,
        "HCCL: MTIA `hccl::…`, Gaudi, Ascend `hcom_allReduce_…` and MoeDistributeDispatch; "
        "https://gitee.com/ascend/cann-hccl",
    ),
    Rule(
        r"^xccl|(^|::)xccl::",
        _COMMUNICATION,
        "XCCL, PyTorch's process group on Intel GPUs; https://github.com/intel/torch-xpu-ops/tree/main/src/xccl",
    ),
    Rule(r"^oneccl|(^|::)(one)?ccl::", _COMMUNICATION, "oneCCL; https://github.com/uxlfoundation/oneCCL"),
    Rule(
        r"^(cncl|mccl|bkcl|ixccl|eccl)([A-Z_]|::)",
        _COMMUNICATION,
        "communication libraries for other devices; each is named like PyTorch's backend for its device; "
        "https://docs.pytorch.org/docs/stable/distributed.html#third-party-backends",
    ),
    Rule(
        r"(^|_|::)(roc|nv|mx|mori_)shmem(i|x|mx)?(_|[A-Z]|::|\w*kernel)|(^|::)(roc|nv)shmem|"
        r"(^|_)(alltoall|barrier|broadcast|fcollect|rdxn|reducescatter|sync|wait_until\w*)_on_stream(_|$)",
        _COMMUNICATION,
        "NVSHMEM and rocSHMEM; https://github.com/NVIDIA/nvshmem/tree/devel/src/include/internal/non_abi",
    ),
    # exchanges of expert parallelism
    Rule(
        r"(?i)(^|::)(deep_ep|uccl|(\w+_|\w+::)?ep|mooncake|internode(_ll)?|intranode)::(\w+::)*"
        r"\w*(dispatch|combine|notify|barrier|sync|send|recv|fetch|all_?to_?all|clean_low_latency)\w*$",
        _COMMUNICATION,
        "DeepEP and the libraries derived from it, such as dpsk::ep, hybrid_ep and UCCL; "
        "https://github.com/deepseek-ai/DeepEP/tree/main/csrc/kernels, https://github.com/uccl-project/uccl/tree/main/ep, "
        "https://github.com/NVIDIA/nccl/tree/master/contrib/nccl_ep",
    ),
    Rule(
        r"(^|::)mori(::|_).*([dD]ispatch|[cC]ombine|collective::)|(^|_|::)Ep(Dispatch|Combine)",
        _COMMUNICATION,
        "MORI; https://github.com/ROCm/mori/tree/main/src/ops, https://github.com/ROCm/mori/tree/main/src/collective",
    ),
    Rule(
        r"(^|::)pplx(::|_).*(dispatch|combine)|^(dispatch|combine)Kernel$",
        _COMMUNICATION,
        "https://github.com/perplexityai/pplx-kernels/tree/master/csrc/all_to_all",
    ),
    Rule(
        r"(?i)(?<![0-9])(?<!gemm_)a2av?(_|$|(dispatch|combine)kernel)|(^|_)(moe_?)?all_?2_?all",
        _COMMUNICATION,
        "all-to-all under its short name: moeA2ADispatchKernel, a2a_dispatch_send_kernel, pre_attn_all2all_kernel; "
        "https://github.com/NVIDIA/TensorRT-LLM/tree/main/cpp/tensorrt_llm/kernels/communicationKernels, "
        "https://github.com/perplexityai/pplx-garden/tree/main/p2p-all-to-all, "
        "https://github.com/bytedance/flux/tree/main/src",
    ),
    Rule(
        r"^(tile_)?kernel_(dispatch|combine|gather_combine|scatter)_(token|intra_?node|inter_?node)|"
        r"^(dispatch|combine)_kernel_v\d$|^_forward_(push|pull)_|^kernel_ag_(intra|inter)_node|^ring_put",
        _COMMUNICATION,
        "https://github.com/ByteDance-Seed/Triton-distributed/tree/main/python/triton_dist/kernels/nvidia",
    ),
    Rule(
        r"^(wait_(acks|combine|prefix)|(combine|store|reserve)_publish\w*)_kernel$",
        _COMMUNICATION,
        "https://github.com/flashinfer-ai/flashinfer/tree/main/flashinfer/moe_ep/kernel_src",
    ),
    Rule(
        r"(^|::)dis_scatter_(forward|backward)|topk_gather_rs_",
        _COMMUNICATION,
        "https://github.com/bytedance/flux/tree/main/src/coll, https://github.com/bytedance/flux/tree/main/src/moe_gather_rs",
    ),
    # kernels that read and write the memory of other devices
    Rule(
        r"(^|::)c10d::(symmetric_memory|intra_node_comm|\w+_extension)::|exchangeSplitAndOffset|(^|_|::)symm_mem_",
        _COMMUNICATION,
        "PyTorch's symmetric memory; https://github.com/pytorch/pytorch/tree/main/torch/csrc/distributed/c10d/symm_mem",
    ),
    Rule(
        r"cross_device_reduce",
        _COMMUNICATION,
        "the custom all-reduce of vLLM, SGLang and AITER; "
        "https://github.com/vllm-project/vllm/blob/main/csrc/custom_all_reduce.cuh",
    ),
    Rule(
        r"quick_?reduce|allreduce_prototype",
        _COMMUNICATION,
        "QuickReduce in vLLM and SGLang on ROCm; "
        "https://github.com/ROCm/aiter/blob/main/csrc/include/quick_all_reduce.cuh",
    ),
    Rule(
        r"(^|_|::)multimem_",
        _COMMUNICATION,
        "NVLink multicast: multimem_all_reduce_kernel; "
        "https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemoryOps.cu",
    ),
    Rule(
        r"(?i)(one|two)_?shot_?(all_?)?(reduce|param)|lamport",
        _COMMUNICATION,
        "one-shot and two-shot all-reduces, and collectives that use Lamport flags to wait for data; "
        "https://github.com/flashinfer-ai/flashinfer/tree/main/include/flashinfer/comm",
    ),
    Rule(
        r"(^|::|_)(barrier|put_signal|wait_signal|get_signal)_kernel$|(?i:(^|::|_|Ipc)barrier_?all)|^barrier(_triton_kernel)?$|"
        r"(^|_)(ipc|p2p|peer)_\w*(rsag|push|pull|put|get|copy|signal|barrier)|(copy|barrier\w*)_(kernel_)?(p2p|ipc)(_|$)",
        _COMMUNICATION,
        "signals between devices, and copies from one device to another; "
        "https://github.com/flashinfer-ai/flashinfer/blob/main/include/flashinfer/comm/pcie_ipc_all_reduce.cuh, "
        "https://github.com/bytedance/flux/blob/main/src/cuda/cudaipc_barrier_all.cu",
    ),
    Rule(
        r"userbuffers_|(^|_)ubx_kernel_",
        _COMMUNICATION,
        "userbuffers; "
        "https://github.com/NVIDIA/TransformerEngine/tree/main/transformer_engine/common/comm_gemm_overlap/userbuffers",
    ),
    Rule(
        r"push_pull_halos|halo_exchange",
        _COMMUNICATION,
        "halo exchanges of convolutions; https://github.com/NVIDIA/apex/tree/master/apex/contrib/csrc/peer_memory",
    ),
    Rule(
        r"(?i)(?<!sm)(?<!w)all_?reduce|(?<!sm)all_?gather|reduce_?scatter|(?<!sm)all_?(to|2)_?all|hybrid_?cube_?mesh",
        _COMMUNICATION,
        "a kernel named after a collective performs this collective, perhaps fused with a little arithmetic; "
        "https://github.com/ROCm/aiter/blob/main/csrc/include/custom_all_reduce.cuh",
    ),
    Rule(
        r"^__amd_rocclr_(copy|fill)",
        KernelKind.MEMORY,
        "the ROCm runtime copies and fills with its own kernels: __amd_rocclr_copyBuffer",
    ),
    Rule(
        r"^Copy(Host|Device)To(Host|Device)|^CopyBuffer|^(Fill|Copy)Buffer",
        KernelKind.MEMORY,
        "copies as roctracer named them: CopyHostToDevice, FillBuffer",
    ),
    Rule(r"^(hip)?Mem(cpy|set)", KernelKind.MEMORY, "copies and memsets in files that have no categories for them"),
    Rule(r"^event_(wait|record)", None, "MTIA queues that wait for or record an event, without doing work", _MTIA),
    Rule(r"^dma", KernelKind.MEMORY, "MTIA moves memory by DMA", _MTIA),
    Rule(
        r"^(job_exe|packet|pe_exe|cpum_exe_subgraph|collective_subgraph_execution)",
        KernelKind.OTHER,
        "MTIA jobs, packets and programs that do unknown work; not counted as computation, as in HTA",
        _MTIA,
    ),
)
"""The rules that come with holotrace; the first that matches decides."""


def add_rule(pattern: str, kind: KernelKind | str | None, *, reason: str = "") -> None:
    """Classify kernels whose name contains `pattern`; this rule overrides all others.

    Args:
        pattern: regular expression, searched for in the name without its template and call arguments.
        kind: a KernelKind or its name, such as "communication"; None if the matching rows are not work of a device.
        reason: a note for the reader of the rules.

    Raises:
        InvalidOptionError: the pattern is not a regular expression, or the kind does not exist.
    """
    _TABLE.add(_checked_rule(pattern, kind, reason, "add_rule"))


def remove_added_rules() -> None:
    """Remove every rule that `add_rule` added."""
    _TABLE.remove_added()


def active_rules() -> tuple[Rule, ...]:
    """Return the active rules in order of priority: added rules, rules from the rule file, then `RULES`."""
    return _TABLE.active()


def kind_of_name(name: str, event_kind: EventKind = EventKind.KERNEL) -> KernelKind | None:
    """Return the kind of kernels with this name according to the active rules; None if such rows are not work."""
    return matcher(active_rules(), event_kind)(name)


def name_classifier(event_kind: EventKind) -> Callable[[str], KernelKind | None]:
    """Return a faster `kind_of_name` for one kind of event; later changes to the rules do not affect it."""
    return matcher(active_rules(), event_kind)


@lru_cache(maxsize=16)
def matcher(rules: tuple[Rule, ...], event_kind: EventKind) -> Callable[[str], KernelKind | None]:
    """Return a function that finds the kind of a kernel from its name, according to these rules."""
    compiled = [(re.compile(rule.pattern), rule.kind) for rule in rules if rule.only in (None, event_kind)]

    def kind(name: str) -> KernelKind | None:
        text = function_name(name)[:_SCANNED_LENGTH]
        matching = (kind for pattern, kind in compiled if pattern.search(text))
        return next(matching, KernelKind.COMPUTATION)

    return kind


def _rule_of(entry: dict[str, Any], where: str) -> Rule:
    return _checked_rule(entry.get("pattern"), entry.get("kind", ""), str(entry.get("reason", "")), where)


def _checked_rule(pattern: object, kind: object, reason: str, where: str) -> Rule:
    return Rule(checked_pattern(pattern, where), _checked_kind(kind, where), reason)


def _checked_kind(kind: object, where: str) -> KernelKind | None:
    if kind is None or isinstance(kind, KernelKind):
        return kind
    names = {**{known.name.lower(): known for known in KernelKind}, "none": None}
    if not isinstance(kind, str) or kind.lower() not in names:
        message = f"{where}: {kind!r} is not a kind of kernel; the kinds are: {', '.join(names)}"
        raise InvalidOptionError(message)
    return names[kind.lower()]


_TABLE = RuleTable(RULES, variable=RULES_VARIABLE, wanted="`pattern` and `kind`", read=_rule_of)
