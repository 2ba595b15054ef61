"""The step names of inference engines, and the numbers in these names.

A name is interpreted by the first rule whose pattern matches the whole name. Numbers come from the named groups of the
pattern, and from pairs such as `bs=32` in the name. Rules in order of priority: patterns passed to the analysis, rules
that `add_step_name` added, rules from the file at `HOLOTRACE_STEP_NAMES`, then `RULES`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from holotrace.errors import InvalidOptionError
from holotrace.store.rule_table import RuleTable, checked_pattern

Kind: TypeAlias = Literal["prefill", "decode", "mixed", "denoising"]

KINDS: tuple[Kind, ...] = ("prefill", "decode", "mixed", "denoising")

RULES_VARIABLE = "HOLOTRACE_STEP_NAMES"
"""Environment variable: path of a rule file with a list `rules` of objects with `pattern`, `engine` and `kind`."""

SUMS = tuple(f"{phase}_{name}" for phase in ("c", "g") for name in ("sq", "sk", "sqsq", "sqsk"))
"""Sums over the requests in prefill (c) and over the requests in decode (g).

For each request, q is the number of new tokens, and k is the number of tokens that these attend to. `sq` is the sum of
q, `sk` of k, `sqsq` of q·q, and `sqsk` of q·k.
"""

_NUMBERS = (
    *("requests", "prefill_requests", "decode_requests", "tokens", "prefill_tokens", "decode_tokens"),
    *("padded_requests", "padded_tokens", "cached_requests", *SUMS),
)
GROUPS = ("kind", *_NUMBERS)
"""Named groups that a pattern may have."""

_KEYS = {
    **dict.fromkeys(("bs", "batch", "batch_size"), "requests"),
    **dict.fromkeys(("toks", "tok", "tokens", "num_tokens"), "tokens"),
    **dict.fromkeys(("c", "p"), "prefill_requests"),
    **dict.fromkeys(("g", "d"), "decode_requests"),
    **{name: name for name in SUMS},
}
"""The meaning of each key of `key=number` in a name."""

_PAIR = re.compile(r"\b([a-z_]{1,20})=(\d{1,18})(?:/(\d{1,18}))?\b")
_LONGEST = 500
"""Longer names are ignored: no engine writes them, and matching a pattern may take more than linear time."""


@dataclass(frozen=True)
class StepRule:
    """A rule for names of steps.

    pattern      regular expression that matches the whole name
    engine       the engine that writes such names
    kind         kind of the step; None if it is unknown, or if only the numbers in the name show it
    versions     engine versions that write such names
    source       where the engine writes the name
    is_draft     whether the step runs the draft model of speculative decoding
    is_verifying whether the step checks drafted tokens; if so, it has several tokens for each request
    holds_steps  whether the range contains several steps, such as all denoising steps of an image
    is_common    whether other programs use the name too; if so, the range is accepted only if the work inside it looks
                 like such a step
    until_next   whether the step includes work between the range and the next step, such as sampling
    """

    pattern: str
    engine: str
    kind: Kind | None = None
    versions: str = ""
    source: str = ""
    is_draft: bool = False
    is_verifying: bool = False
    holds_steps: bool = False
    is_common: bool = False
    until_next: bool = True


_VLLM = "https://github.com/vllm-project/vllm/blob/main/vllm/v1/worker/gpu_worker.py"
_SGLANG = "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/model_executor/model_runner.py"
_TENSORRT = "https://github.com/NVIDIA/TensorRT-LLM/blob/main/tensorrt_llm/_torch/pyexecutor/py_executor.py"
_ATOM = "https://github.com/ROCm/ATOM/blob/main/atom/model_engine/run_labels.py"
_XDIT = "https://github.com/xdit-project/xDiT/blob/main/xfuser/model_executor/models/runner_models/base_model.py"
_TRACELENS = "https://github.com/AMD-AGI/TraceLens/blob/main/TraceLens/TraceUtils/annotation_utils.py"
_N = r"\d{1,18}"


def _sums(phase: str) -> str:
    return r"\(" + "".join(rf"{name}(?P<{phase}_{name}>{_N})" for name in ("sq", "sk", "sqsq", "sqsk")) + r"\)"


# fmt: off
RULES = (
    StepRule(rf"execute_(?P<padded_tokens>{_N})_context_(?P<prefill_requests>{_N}){_sums('c')}_generation_(?P<decode_requests>{_N}){_sums('g')}", "vllm", None, "0.26 and later if detailed_trace_annotation is on; earlier versions with TraceLens' patches", _VLLM),
    StepRule(rf"execute_context_(?P<prefill_requests>{_N})\((?P<prefill_tokens>{_N})(_{_N})?\)_generation_(?P<decode_requests>{_N})\((?P<decode_tokens>{_N})(_{_N})?\)", "vllm", None, "before 0.26; later versions if detailed_trace_annotation is off", _VLLM),
    StepRule(rf"execute_new_(?P<prefill_requests>{_N})_cached_(?P<cached_requests>{_N})", "vllm", None, "versions before execute_context_", _VLLM),
    StepRule(r"step\[(EXTEND|SPLIT_PREFILL)\b.*\]", "sglang", "prefill", "0.5", _SGLANG),
    StepRule(r"step\[DECODE\b.*\]", "sglang", "decode", "0.5", _SGLANG),
    StepRule(r"step\[MIXED\b.*\]", "sglang", "mixed", "0.5", _SGLANG),
    StepRule(r"step\[TARGET_VERIFY\b.*\]", "sglang", "decode", "0.5", _SGLANG, is_verifying=True),
    StepRule(r"step\[DRAFT_EXTEND(_V2)?\b.*\]", "sglang", None, "0.5", _SGLANG, is_draft=True),
    StepRule(r"step\[(IDLE|PREBUILT|DUMMY_FIRST|DLLM_EXTEND)\b.*\]", "sglang", None, "0.5", _SGLANG),
    StepRule(rf"(\[Executor\] )?_forward_step( {_N})?: (?P<prefill_requests>{_N}) ctx reqs, ((?P<prefill_tokens>{_N}) ctx tokens, )?(?P<decode_requests>{_N}) gen reqs", "tensorrt_llm", None, "1.0 and later; earlier versions, which omit the iteration number", _TENSORRT),
    StepRule(r"prefill\[.*\]", "atom", "prefill", "0.1.3 and later", _ATOM),
    StepRule(r"(eager_)?decode\[.*\]", "atom", "decode", "0.1.3 and later", _ATOM),
    StepRule(r"dummy_(prefill|decode|eager_decode)\[.*\]", "atom", None, "0.1.3 and later", _ATOM),
    StepRule(rf"draft\[{_N}/{_N} bs={_N}\]|dspark\[bs={_N} T={_N}\]", "atom", None, "0.1.3 and later", _ATOM, is_draft=True),
    StepRule(rf"execute_diffusion_(?P<requests>{_N})_\d+x\d+", "xdit", "denoising", "26.6, with TraceLens' patches", _TRACELENS, holds_steps=True),
    StepRule(r"model_inference", "xdit", "denoising", "2026", _XDIT, holds_steps=True, is_common=True),  # PyTorch's profiler recipe uses this name too
    StepRule(r"(?i:denois(e|ing))(?i:[ _-]?step)?([ _#:-]*\d+)?([\s(,:].*)?", "annotation", "denoising", until_next=False),
    StepRule(r"(?i:prefill)(?i:[ _-]?(step|phase))?([ _#:-]*\d+)?([\s(,:].*=.*)?", "annotation", "prefill", until_next=False),
    StepRule(r"(?i:decod(e|ing))(?i:[ _-]?(step|phase|token))?([ _#:-]*\d+)?([\s(,:].*=.*)?", "annotation", "decode", until_next=False),
)
# fmt: on

LIKE_A_STEP = (
    r"^(execute_(\d+_)?(context|new)_|step\[|(\[Executor\] )?_forward_step\b|((dummy_)?(eager_)?(prefill|decode))\[)"
)
"""Prefixes of engines' step names. Names that have such a prefix but match no rule are reported as a finding."""


class StepName(NamedTuple):
    """The facts in the name of a step; a number is None if it is not in the name.

    rule             the rule that matches the name
    kind             prefill, decode, mixed or denoising
    request_count, prefill_request_count, decode_request_count
    token_count, prefill_token_count, decode_token_count   new tokens
    padded_token_count   tokens that the step computes, with padding
    sums             all `SUMS`; empty if one of them is unknown
    """

    rule: StepRule
    kind: Kind | None
    request_count: int | None
    prefill_request_count: int | None
    decode_request_count: int | None
    token_count: int | None
    prefill_token_count: int | None
    decode_token_count: int | None
    padded_token_count: int | None
    sums: Mapping[str, int]


def step_of_name(name: str | None, patterns: tuple[str, ...] = ()) -> StepName | None:
    """Parse the name of a step; None if it is not the name of a step.

    Args:
        name: the name of a host range.
        patterns: validated regular expressions; they take priority over all rules.

    >>> step = step_of_name("step[DECODE bs=32]")
    >>> step.rule.engine, step.kind, step.request_count, step.decode_token_count
    ('sglang', 'decode', 32, 32)
    """
    if name is None or len(name) > _LONGEST:
        return None
    return _reader((*(StepRule(pattern, "pattern") for pattern in patterns), *_TABLE.active()))(name)


def add_step_name(pattern: str, *, engine: str = "custom", kind: str | None = None) -> None:
    """Treat ranges whose names match `pattern` as steps, with priority over all other rules.

    Args:
        pattern: regular expression that matches the whole name. These named groups read values from the name: `kind`,
            `requests`, `tokens`, `prefill_requests`, `decode_requests`, `prefill_tokens`, `decode_tokens`, `padded_tokens`.
        engine: name of the engine in results.
        kind: prefill, decode, mixed or denoising, if all such steps have the same kind.

    Raises:
        InvalidOptionError: the pattern is not a regular expression or has an unknown group, or the kind is unknown.
    """
    _TABLE.add(_rule_of({"pattern": pattern, "engine": engine, "kind": kind}, "add_step_name"))


def remove_added_step_names() -> None:
    """Remove every rule that `add_step_name` added."""
    _TABLE.remove_added()


def checked_step_pattern(pattern: object, where: str) -> str:
    """Return the pattern if it is valid; error messages name `where` as the source of the pattern.

    Raises:
        InvalidOptionError: the pattern is not a regular expression, or has a group that is not in `GROUPS`.
    """
    checked = checked_pattern(pattern, where)
    unknown = sorted(set(re.compile(checked).groupindex) - set(GROUPS))
    if unknown:
        message = f"{where}: {pattern!r} has the unknown group {unknown[0]!r}; the groups are: {', '.join(GROUPS)}"
        raise InvalidOptionError(message)
    return checked


@dataclass
class _Reader:
    rules: tuple[StepRule, ...]
    compiled: list[tuple[re.Pattern[str], StepRule]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.compiled = [(re.compile(rule.pattern), rule) for rule in self.rules]

    def __call__(self, name: str) -> StepName | None:
        matches = ((pattern.fullmatch(name), rule) for pattern, rule in self.compiled)
        return next((_read(name, match.groupdict(), rule) for match, rule in matches if match), None)


@lru_cache(maxsize=16)
def _reader(rules: tuple[StepRule, ...]) -> _Reader:
    return _Reader(rules)


def _read(name: str, groups: Mapping[str, str | None], rule: StepRule) -> StepName:
    given = {key: int(text) for key, text in groups.items() if key in _NUMBERS and text and text.isdecimal()}
    numbers = _pairs(name, (groups.get("kind") or rule.kind or "")) | given
    kind = _kind(groups, numbers, rule)
    prefill, decode = _requests(numbers, kind)
    prefill_tokens, decode_tokens = _tokens(numbers, kind, rule, (prefill, decode))
    requests = numbers.get("requests", _sum(prefill, decode))
    tokens = _sum(prefill_tokens, decode_tokens)
    tokens = numbers.get("tokens") if tokens is None else tokens
    return StepName(
        rule,
        kind,
        numbers["prefill_requests"] + numbers["cached_requests"] if "cached_requests" in numbers else requests,
        prefill,
        decode,
        tokens,
        prefill_tokens,
        decode_tokens,
        _padded(numbers, requests, tokens),
        _all_sums(numbers, (prefill, decode), (prefill_tokens, decode_tokens)),
    )


def _pairs(name: str, kind: str) -> dict[str, int]:
    """Return the numbers in pairs such as `key=number` or `key=number/padded`.

    The prefix of a sum names its phase: `c_` prefill, `g_` decode. A sum without prefix belongs to the phase `kind`.
    """
    phase = {"prefill": "c", "decode": "g"}.get(kind, "")
    numbers: dict[str, int] = {}
    for key, number, padded in _PAIR.findall(name):
        known = _KEYS.get(key) or (f"{phase}_{key}" if f"{phase}_{key}" in SUMS else None)
        if known is not None:
            numbers.setdefault(known, int(number))
        if known == "requests" and padded:
            numbers["padded_requests"] = int(padded)
    return numbers


def _kind(groups: Mapping[str, str | None], numbers: Mapping[str, int], rule: StepRule) -> Kind | None:
    said = (groups.get("kind") or "").lower()
    if said:
        return next((kind for kind in KINDS if kind == said), None)
    prefill, decode = numbers.get("prefill_requests"), numbers.get("decode_requests")
    if prefill and decode:
        return "mixed"
    if rule.kind is not None or "cached_requests" in numbers:
        # A request that vLLM calls "cached" either decodes or continues the prefill of a long prompt.
        return "prefill" if "cached_requests" in numbers and not numbers["cached_requests"] and prefill else rule.kind
    return "prefill" if prefill and decode == 0 else "decode" if decode and prefill == 0 else None


def _requests(numbers: Mapping[str, int], kind: Kind | None) -> tuple[int | None, int | None]:
    requests = numbers.get("requests")
    if kind == "prefill":
        return numbers.get("prefill_requests", requests), 0
    if kind == "decode":
        return 0, numbers.get("decode_requests", requests)
    if "cached_requests" in numbers or kind == "denoising":
        return None, None
    return numbers.get("prefill_requests"), numbers.get("decode_requests")


def _tokens(
    numbers: Mapping[str, int], kind: Kind | None, rule: StepRule, requests: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    """Return the numbers of new tokens in prefill and in decode.

    If the name of a decode step contains no number of tokens, assume one token per request, except for TensorRT-LLM and
    for steps that verify drafts, where the number stays unknown.
    """
    prefill = numbers.get("prefill_tokens", numbers.get("c_sq"))
    decode = numbers.get("decode_tokens", numbers.get("g_sq"))
    if kind == "prefill":
        return numbers.get("tokens") if prefill is None else prefill, 0
    if kind == "decode":
        one_each = None if rule.is_verifying or rule.engine == "tensorrt_llm" else requests[1]
        return 0, numbers.get("tokens", one_each) if decode is None else decode
    return prefill, decode


def _padded(numbers: Mapping[str, int], requests: int | None, tokens: int | None) -> int | None:
    """Return the number of tokens including padding; None if the name does not show padding."""
    padded = numbers.get("padded_tokens")
    if padded is not None:
        return padded if tokens is None or padded > tokens else None
    return numbers.get("padded_requests") if tokens is not None and tokens == requests else None


def _all_sums(
    numbers: Mapping[str, int], requests: tuple[int | None, int | None], tokens: tuple[int | None, int | None]
) -> dict[str, int]:
    """Return all sums, or an empty dict if one is unknown.

    All sums of a phase without requests are 0. `sq` defaults to the number of new tokens in the phase.
    """
    known = {name: numbers[name] for name in SUMS if name in numbers}
    for phase, request_count, token_count in zip(("c", "g"), requests, tokens, strict=True):
        if request_count == 0:
            known = {name: 0 for name in SUMS if name.startswith(phase)} | known
        elif token_count is not None:
            known.setdefault(f"{phase}_sq", token_count)
    return known if len(known) == len(SUMS) else {}


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _rule_of(entry: dict[str, Any], where: str) -> StepRule:
    kind = entry.get("kind")
    if kind is not None and kind not in KINDS:
        message = f"{where}: {kind!r} is not a kind of step; the kinds are: {', '.join(KINDS)}"
        raise InvalidOptionError(message)
    return StepRule(checked_step_pattern(entry.get("pattern"), where), str(entry.get("engine", "custom")), kind)


_TABLE = RuleTable(RULES, variable=RULES_VARIABLE, wanted="`pattern`, `engine` and `kind`", read=_rule_of)
