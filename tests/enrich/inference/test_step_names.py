"""Every form of an engine's step names is parsed completely; malformed names are rejected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holotrace.enrich.inference.step_names import (
    RULES,
    StepName,
    add_step_name,
    checked_step_pattern,
    remove_added_step_names,
    step_of_name,
)
from holotrace.enrich.operator_costs.request_sums import request_sums
from holotrace.errors import InvalidOptionError

DETAILED = "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)"
DECODING = "context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)"
SGLANG_SUMS = "c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 g_sqsk=12"

# name: engine, kind, requests (all, prefill, decode), tokens (all, prefill, decode), tokens with padding
# fmt: off
NAMES = {
    DETAILED: ("vllm", "mixed", (46, 9, 37), (8192, 8155, 37), None),
    f"execute_32_{DECODING}": ("vllm", "decode", (32, 0, 32), (32, 0, 32), None),
    f"execute_48_{DECODING}": ("vllm", "decode", (32, 0, 32), (32, 0, 32), 48),
    "execute_context_2(14721)_generation_0(0)": ("vllm", "prefill", (2, 2, 0), (14721, 14721, 0), None),
    "execute_context_0(0)_generation_32(128)": ("vllm", "decode", (32, 0, 32), (128, 0, 128), None),
    "execute_context_2(6144)_generation_3(3)": ("vllm", "mixed", (5, 2, 3), (6147, 6144, 3), None),
    "execute_context_0(0)_generation_0(0)": ("vllm", None, (0, 0, 0), (0, 0, 0), None),
    "execute_context_1(888_788544)_generation_0(0)": ("vllm", "prefill", (1, 1, 0), (888, 888, 0), None),
    "execute_new_2_cached_0": ("vllm", "prefill", (2, 2, 0), (None, None, 0), None),
    "execute_new_0_cached_4": ("vllm", None, (4, None, None), (None, None, None), None),
    "execute_new_2_cached_3": ("vllm", None, (5, None, None), (None, None, None), None),
    "step[EXTEND bs=2 toks=14721]": ("sglang", "prefill", (2, 2, 0), (14721, 14721, 0), None),
    "step[DECODE bs=64]": ("sglang", "decode", (64, 0, 64), (64, 0, 64), None),
    "step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]": ("sglang", "decode", (64, 0, 64), (128, 0, 128), None),
    "step[MIXED bs=2]": ("sglang", "mixed", (2, None, None), (None, None, None), None),
    f"step[MIXED bs=2 {SGLANG_SUMS}]": ("sglang", "mixed", (2, 1, 1), (6, 5, 1), None),
    "step[TARGET_VERIFY bs=4]": ("sglang", "decode", (4, 0, 4), (None, 0, None), None),
    "step[DRAFT_EXTEND_V2 bs=4]": ("sglang", None, (4, None, None), (None, None, None), None),
    "step[IDLE bs=0]": ("sglang", None, (0, None, None), (None, None, None), None),
    "[Executor] _forward_step 12: 3 ctx reqs, 40 gen reqs": ("tensorrt_llm", "mixed", (43, 3, 40), (None, None, None), None),
    "[Executor] _forward_step: 3 ctx reqs, 0 gen reqs": ("tensorrt_llm", "prefill", (3, 3, 0), (None, None, 0), None),
    "_forward_step: 0 ctx reqs, 40 gen reqs": ("tensorrt_llm", "decode", (40, 0, 40), (None, 0, None), None),
    "[Executor] _forward_step 7: 2 ctx reqs, 512 ctx tokens, 0 gen reqs": ("tensorrt_llm", "prefill", (2, 2, 0), (512, 512, 0), None),
    "[Executor] _forward_step 8: 0 ctx reqs, 0 ctx tokens, 32 gen reqs": ("tensorrt_llm", "decode", (32, 0, 32), (None, 0, None), None),
    "prefill[bs=2 tok=14721 ctx=[7803, 6918]]": ("atom", "prefill", (2, 2, 0), (14721, 14721, 0), None),
    "prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3]": ("atom", "prefill", (6, 6, 0), (17408, 17408, 0), None),
    "decode[bs=117/128 tok=117 d=117]": ("atom", "decode", (117, 0, 117), (117, 0, 117), 128),
    "decode[bs=128 tok=384 p=2 d=126]": ("atom", "mixed", (128, 2, 126), (384, None, None), None),
    "decode[bs=32 tok=128 d=32 spec=3]": ("atom", "decode", (32, 0, 32), (128, 0, 128), None),
    "eager_decode[bs=2 tok=2 ctx=[1024, 77]]": ("atom", "decode", (2, 0, 2), (2, 0, 2), None),
    "prefill[bs=1 tok=64 ctx=64 tbo=1]": ("atom", "prefill", (1, 1, 0), (64, 64, 0), None),
    "dummy_decode[bs=8]": ("atom", None, (8, None, None), (None, None, None), None),
    "dummy_eager_decode[bs=1]": ("atom", None, (1, None, None), (None, None, None), None),
    "dummy_prefill[bs=1 tok=16384 ctx=16384]": ("atom", None, (1, None, None), (16384, None, None), None),
    "draft[0/3 bs=64]": ("atom", None, (64, None, None), (None, None, None), None),
    "dspark[bs=4 T=7]": ("atom", None, (4, None, None), (None, None, None), None),
    "model_inference": ("xdit", "denoising", (None, None, None), (None, None, None), None),
    "execute_diffusion_1_1024x1024": ("xdit", "denoising", (1, None, None), (None, None, None), None),
    "prefill bs=8 tokens=2048": ("annotation", "prefill", (8, 8, 0), (2048, 2048, 0), None),
    "decode bs=8": ("annotation", "decode", (8, 0, 8), (8, 0, 8), None),
    "Decode_step 3": ("annotation", "decode", (None, 0, None), (None, 0, None), None),
    "denoising step 4": ("annotation", "denoising", (None, None, None), (None, None, None), None),
}
# fmt: on


def said(name: str, *patterns: str) -> StepName:
    """Return the contents of a step's name."""
    step = step_of_name(name, patterns)
    assert step is not None
    return step


@pytest.fixture(autouse=True)
def added_names_are_removed() -> Iterator[None]:
    """Remove the rules that a test adds."""
    yield
    remove_added_step_names()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_says_kind_requests_and_tokens(name: str) -> None:
    """Engine, kind, requests and tokens are read from each form of a name; values that the name lacks are None."""
    step = said(name)
    assert (
        step.rule.engine,
        step.kind,
        (step.request_count, step.prefill_request_count, step.decode_request_count),
        (step.token_count, step.prefill_token_count, step.decode_token_count),
        step.padded_token_count,
    ) == NAMES[name]


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "execute",
        "execute_context_2(6144)_generation_",
        "execute_context_x(1)_generation_3(3)",
        "execute_context_2(6144)_generation_3(3) and more",
        "execute_context_1234567890123456789(1)_generation_0(0)",
        "execute_new_2_cached_",
        "step[DECODE bs=32",
        "step[]",
        "my step[DECODE bs=32]",
        "[Executor] _forward_step 12: ctx reqs, 40 gen reqs",
        "decode image",
        "decoder",
        "prefilling",
        "execute_diffusion_1_1024",
        "step[DECODE bs=32" + 500 * " " + "]",
    ],
)
def test_other_names_are_no_steps(name: str | None) -> None:
    """Malformed, truncated and long names, and names of other ranges, are not parsed as step names."""
    assert step_of_name(name) is None


def test_only_verified_drafts_and_drafting_are_marked() -> None:
    """The rules for speculative decoding mark the steps of the draft model and the steps that verify its tokens."""
    drafting = {"step[DRAFT_EXTEND_V2 bs=4]", "draft[0/3 bs=64]", "dspark[bs=4 T=7]"}
    assert {name for name in NAMES if said(name).rule.is_draft} == drafting
    assert {name for name in NAMES if said(name).rule.is_verifying} == {"step[TARGET_VERIFY bs=4]"}


def test_sums_over_requests_come_from_every_engine() -> None:
    """The cost of paged attention needs four sums per phase (prefill, decode); a phase without requests has zeros."""
    of_prefill = {"c_sq": 8155, "c_sk": 8430, "c_sqsq": 7475785, "c_sqsk": 7671310}
    assert request_sums(DETAILED) == of_prefill | {"g_sq": 37, "g_sk": 34489, "g_sqsq": 37, "g_sqsk": 34489}
    sglang = request_sums("step[EXTEND bs=2 toks=14721 c_sqsq=108745533 c_sqsk=108745533 c_sk=14721]")
    assert (sglang["c_sq"], sglang["c_sqsk"], sglang["g_sqsk"]) == (14721, 108745533, 0)
    atom = request_sums("decode[bs=32 tok=128 d=32 spec=3 sqsq=512 sqsk=262144 sk=65536]")
    assert (atom["g_sq"], atom["g_sqsq"], atom["g_sk"], atom["c_sq"]) == (128, 512, 65536, 0)
    assert request_sums("decode[bs=128 tok=384 p=2 d=126 sqsq=132612 sqsk=1114112 sk=258048]") == {}
    assert request_sums("execute_context_2(6144)_generation_3(3)") == {}


def test_every_engine_has_a_source() -> None:
    """The rule of an engine links to the code that writes the step names, and states the engine's versions."""
    of_engines = [rule for rule in RULES if rule.engine != "annotation"]
    assert all(rule.source.startswith("https://github.com/") and rule.versions for rule in of_engines)


def test_users_add_names() -> None:
    """A pattern passed to the analysis overrides a user's rule, which overrides the built-in rules."""
    add_step_name(r"my (?P<kind>prefill|decode) of (?P<requests>\d+) \((?P<tokens>\d+)\)", engine="mine")
    step = said("my prefill of 3 (77)")
    assert (step.rule.engine, step.kind, step.request_count, step.prefill_token_count) == ("mine", "prefill", 3, 77)
    assert said("my prefill of 3 (77)", "my.*").rule.engine == "pattern"


def test_a_file_adds_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`HOLOTRACE_STEP_NAMES` is the path of a file with rules."""
    path = tmp_path / "names.json"
    path.write_text(json.dumps({"rules": [{"pattern": r"tick (?P<requests>\d+)", "engine": "own", "kind": "decode"}]}))
    monkeypatch.setenv("HOLOTRACE_STEP_NAMES", str(path))
    assert said("tick 5").decode_token_count == 5


@pytest.mark.parametrize("pattern", ["(", "", r"(?P<batch>\d+)", 3])
def test_a_wrong_pattern_is_an_error(pattern: object) -> None:
    """An invalid regular expression, or one with an unknown group, raises an error that names the argument."""
    with pytest.raises(InvalidOptionError, match="patterns"):
        checked_step_pattern(pattern, "patterns")


def test_a_wrong_kind_is_an_error() -> None:
    """The error for an unknown kind lists the valid kinds."""
    with pytest.raises(InvalidOptionError, match="prefill, decode, mixed, denoising"):
        add_step_name("x", kind="training")
