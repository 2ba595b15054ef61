"""What a piece of device work does: computation, communication, memory, or something else.

The profiler does not say it, so it is told apart in this order, first answer wins:

1. the kind of the event: copies and memsets are memory, collective rows are communication;
2. collective arguments: a kernel that carries them is communication;
3. the name: rules of the user, then those of the file that `HTA_KERNEL_RULES` names, then `RULES`;
4. otherwise it is computation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from hta.enrich.rule_table import RuleTable, checked_pattern
from hta.errors import InvalidOptionError
from hta.schema import EventKind, KernelKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hta.store.trace import RankTrace

T = TypeVar("T")

RULES_VARIABLE = "HTA_KERNEL_RULES"
"""Environment variable with the path of a rule file."""


@dataclass(frozen=True)
class Rule:
    """What one pattern says about names.

    pattern  regular expression, searched in `function_name(name)`
    kind     the answer; None for rows that wait or mark and occupy no device
    reason   where such names come from
    only     the one kind of event the rule is about; None for any
    """

    pattern: str
    kind: KernelKind | None
    reason: str = ""
    only: EventKind | None = None


_COMMUNICATION = KernelKind.COMMUNICATION
_MTIA = EventKind.ACCELERATOR

RULES: tuple[Rule, ...] = (
    Rule(
        r"^triton_[a-z]+_fused_",
        KernelKind.COMPUTATION,
        "TorchInductor names a fused kernel after the operators around it, all_gather and wait_tensor among them, "
        "though it only computes",
    ),
    Rule(r"^nccl|nccl(Dev)?Kernel", _COMMUNICATION, "NCCL, and RCCL, which kept the names: ncclDevKernel_AllReduce_…"),
    Rule(r"^mscclpp|^msccl(Kernel|_)|(^|::)mscclpp?::", _COMMUNICATION, "MSCCL and MSCCL++"),
    Rule(r"^rccl|(^|::)rccl::", _COMMUNICATION, "RCCL's own kernels"),
    Rule(r"^hccl|^hcom_|(^|::)hccl::", _COMMUNICATION, "HCCL: MTIA `hccl::…`, Gaudi, Ascend `hcom_allReduce_…`"),
    Rule(r"^xccl|(^|::)xccl::", _COMMUNICATION, "XCCL, PyTorch's process group on Intel GPUs"),
    Rule(r"^oneccl|(^|::)(one)?ccl::", _COMMUNICATION, "oneCCL"),
    Rule(r"^(roc|nv)shmem|(roc|nv)shmemi?_|(^|::)(roc|nv)shmem", _COMMUNICATION, "NVSHMEM and rocSHMEM"),
    Rule(
        r"(^|::)deep_ep::(?!.*layout)",
        _COMMUNICATION,
        "DeepEP: expert dispatch and combine, but not get_dispatch_layout",
    ),
    Rule(
        r"(^|::)(mori|pplx)(::|_).*(dispatch|combine)|(^|_)Ep(Dispatch|Combine)",
        _COMMUNICATION,
        "MORI-EP, pplx kernels",
    ),
    Rule(r"cross_device_reduce", _COMMUNICATION, "the custom all-reduce of vLLM, SGLang and AITER"),
    Rule(r"quick_?reduce|allreduce_prototype", _COMMUNICATION, "QuickReduce, vLLM and SGLang on ROCm"),
    Rule(
        r"(^|_|::)multimem_", _COMMUNICATION, "PyTorch symmetric memory on NVLink multicast: multimem_all_reduce_kernel"
    ),
    Rule(r"(?i)(one|two)_?shot_?(all_?)?reduce", _COMMUNICATION, "PyTorch symmetric memory, TensorRT-LLM, FlashInfer"),
    Rule(
        r"(^|::)(barrier|put_signal|wait_signal|get_signal)_kernel$|symmetric_memory::|intra_node_comm::",
        _COMMUNICATION,
        "PyTorch symmetric memory: signals between the devices of a node",
    ),
    Rule(r"userbuffers_", _COMMUNICATION, "Transformer Engine's userbuffers"),
    Rule(
        r"(?i)all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|hybrid_?cube_?mesh",
        _COMMUNICATION,
        "a kernel named after a collective performs one, perhaps fused with a little arithmetic",
    ),
    Rule(
        r"^__amd_rocclr_(copy|fill)",
        KernelKind.MEMORY,
        "the ROCm runtime copies and fills with kernels of its own: __amd_rocclr_copyBuffer",
    ),
    Rule(
        r"^Copy(Host|Device)To(Host|Device)|^CopyBuffer|^(Fill|Copy)Buffer",
        KernelKind.MEMORY,
        "copies as roctracer named them: CopyHostToDevice, FillBuffer",
    ),
    Rule(r"^(hip)?Mem(cpy|set)", KernelKind.MEMORY, "copies in files without the copy categories"),
    Rule(r"^event_(wait|record)", None, "MTIA queues wait for and record events; nothing runs", _MTIA),
    Rule(r"^dma", KernelKind.MEMORY, "MTIA moves memory by DMA", _MTIA),
    Rule(
        r"^(job_exe|packet|pe_exe|cpum_exe_subgraph|collective_subgraph_execution)",
        KernelKind.OTHER,
        "MTIA jobs, packets and programs whose content the row does not say; HTA keeps them apart from computation too",
        _MTIA,
    ),
)
"""The rules that ship; the first that matches decides."""

_UNNAMED = re.compile(r"\(anonymous namespace\)::|<unnamed>::")
_ARGUMENTS = re.compile("[<(]")
_BEFORE_THE_NAME = re.compile(r"^(?:void |(?:typename )?std::enable_if.*?>::type )")


def add_rule(pattern: str, kind: KernelKind | str | None, *, reason: str = "") -> None:
    """Classify kernels whose name contains `pattern` from now on, before all other rules.

    Args:
        pattern: regular expression, searched in the name up to its template and call arguments.
        kind: a KernelKind or its name, such as "communication"; None says that such rows are no work at all.
        reason: a note for the reader of the rules.

    Raises:
        InvalidOptionError: the pattern is no regular expression, or there is no such kind.
    """
    _TABLE.add(_checked_rule(pattern, kind, reason, "add_rule"))


def remove_added_rules() -> None:
    """Forget every rule of `add_rule`."""
    _TABLE.remove_added()


def active_rules() -> tuple[Rule, ...]:
    """Return the rules in force, the most important first: added ones, those of the rule file, `RULES`."""
    return _TABLE.active()


def rules_from_file(path: str | Path) -> tuple[Rule, ...]:
    """Read rules from a JSON or TOML file.

    The file holds a list `rules` of objects with `pattern`, `kind` (computation, communication, memory, other or
    none) and, if you like, `reason`.

    Raises:
        InvalidOptionError: the file cannot be read, or what it holds are no rules; the message says where.
    """
    return _TABLE.from_file(path)


def function_name(name: str) -> str:
    """Return the qualified function name alone: no return type, anonymous namespace, template or call arguments.

    Template arguments may name functors and types of anything; only the function itself says what a kernel does.
    """
    plain = _BEFORE_THE_NAME.sub("", _UNNAMED.sub("", name))
    return _ARGUMENTS.split(plain, maxsplit=1)[0]


def kind_of_name(name: str, event_kind: EventKind = EventKind.KERNEL) -> KernelKind | None:
    """Return what the rules in force say of a name; None for rows that are no work."""
    return _matcher(active_rules(), event_kind)(name)


def name_classifier(event_kind: EventKind) -> Callable[[str], KernelKind | None]:
    """Return `kind_of_name` for many names of one kind of event, with the rules as they are now."""
    return _matcher(active_rules(), event_kind)


def with_current_rules(function: Callable[[RankTrace], T]) -> Callable[[RankTrace], T]:
    """Return the function as it is to run in a worker: under the rules in force here and now."""
    return partial(_call_under, active_rules(), function)


def _call_under(rules: tuple[Rule, ...], function: Callable[[RankTrace], T], rank_trace: RankTrace) -> T:
    with _TABLE.in_force(rules):
        return function(rank_trace)


@lru_cache(maxsize=16)
def _matcher(rules: tuple[Rule, ...], event_kind: EventKind) -> Callable[[str], KernelKind | None]:
    compiled = [(re.compile(rule.pattern), rule.kind) for rule in rules if rule.only in (None, event_kind)]

    def kind(name: str) -> KernelKind | None:
        text = function_name(name)
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
    names = {**{each.name.lower(): each for each in KernelKind}, "none": None}
    if not isinstance(kind, str) or kind.lower() not in names:
        message = f"{where}: {kind!r} is no kind of kernel; the kinds are: {', '.join(names)}"
        raise InvalidOptionError(message)
    return names[kind.lower()]


_TABLE = RuleTable(RULES, variable=RULES_VARIABLE, wanted="`pattern` and `kind`", read=_rule_of)
