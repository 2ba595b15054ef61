"""Inference steps are found by their names or, without names, by repeated forward passes."""

from __future__ import annotations

from typing import Any

import polars as pl

from holotrace.enrich.inference.inference_steps import InferenceSteps, inference_steps
from holotrace.testing.builder import TraceBuilder

EMBEDDING = "aten::embedding"
ATTENTION = "aten::scaled_dot_product_attention"


def found(builder: TraceBuilder, *patterns: str) -> InferenceSteps:
    """Return the steps of rank 0."""
    return inference_steps(builder.build().ranks[0], patterns)


def rows(builder: TraceBuilder, *columns: str) -> list[tuple[Any, ...]]:
    """Return the given columns of the steps; times are in µs."""
    table = found(builder).table.with_columns(pl.col("start_ns", "end_ns", "until_ns") // 1_000)
    return table.select(columns).rows()


def module(builder: TraceBuilder, name: str, start_us: int, duration_us: int) -> None:
    """Add a call of a module."""
    call = {"ph": "X", "cat": "python_function", "pid": 1000, "tid": 1, "ts": start_us, "dur": duration_us}
    builder.event(name=f"nn.Module: {name}", **call)


def embedding(builder: TraceBuilder, start_us: int, indices: list[int], table: tuple[int, int] = (8192, 1024)) -> None:
    """Add a lookup of embeddings."""
    dims = {"Input Dims": [list(table), indices, [], [], []]}
    builder.operator(EMBEDDING, start_us=start_us, duration_us=2, args=dims)


def attention(builder: TraceBuilder, start_us: int, queries: int, keys: int, *, is_causal: bool) -> None:
    """Add attention over 4 sequences."""
    args = {
        "Input Dims": [[4, 16, queries, 64], [4, 16, keys, 64], [4, 16, keys, 64], [], [], [], [], []],
        "Concrete Inputs": ["", "", "", "", "0.", str(is_causal), "", "False"],
    }
    builder.operator(ATTENTION, start_us=start_us, duration_us=2, args=args)


def test_work_after_a_range_of_an_engine_belongs_to_its_step() -> None:
    """In vLLM, sampling runs after the step's range, so a step lasts until the next step or the recording's end."""
    builder = TraceBuilder()
    builder.annotation("execute_context_1(7)_generation_0(0)", start_us=0, duration_us=10)
    builder.annotation("execute_context_0(0)_generation_1(1)", start_us=30, duration_us=10)
    builder.operator("aten::argmax", start_us=50, duration_us=5)
    assert rows(builder, "kind", "start_ns", "end_ns", "until_ns") == [("prefill", 0, 10, 30), ("decode", 30, 40, 50)]


def test_a_range_of_a_user_ends_where_it_ends() -> None:
    """Work between the `decode` ranges of a user belongs to no step."""
    builder = TraceBuilder().annotation("decode bs=2", start_us=0, duration_us=10)
    builder.annotation("decode bs=2", start_us=30, duration_us=10).operator("aten::sum", start_us=80, duration_us=5)
    assert rows(builder, "start_ns", "until_ns") == [(0, 10), (30, 40)]


def test_a_range_with_one_step_inside_is_the_same_step() -> None:
    """TraceLens' patch puts `execute_…` around SGLang's `step[…]`.

    Both ranges are one step; the step's counts come from the name of the outer range.
    """
    outer = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)"
    builder = TraceBuilder().annotation(outer, start_us=0, duration_us=100)
    builder.annotation("step[DECODE bs=32]", start_us=10, duration_us=50)
    assert rows(builder, "step_name", "engine", "request_count", "attention_pair_count", "start_ns", "end_ns") == [
        (outer, "sglang", 32, 32785, 0, 100)
    ]


def test_a_range_with_several_steps_inside_is_none() -> None:
    """If a user's `decode` range contains several steps of an engine, only the engine's steps are found."""
    builder = TraceBuilder().annotation("decode", start_us=0, duration_us=100)
    for start in (10, 50):
        builder.annotation("step[DECODE bs=4]", start_us=start, duration_us=20)
    assert rows(builder, "engine", "start_ns") == [("sglang", 10), ("sglang", 50)]


def test_pairs_under_the_causal_mask() -> None:
    """3 new tokens after 2 cached ones attend to 3, 4 and 5 tokens; a decoding token attends to all 7."""
    name = "execute_4_context_1(sq3sk5sqsq9sqsk15)_generation_1(sq1sk7sqsq1sqsk7)"
    assert rows(TraceBuilder().annotation(name, start_us=0, duration_us=1), "attention_pair_count") == [(12 + 7,)]


def test_impossible_sums_give_no_pairs() -> None:
    """If a step's name says that 3 new tokens attend to only 2 tokens, which is impossible, the pair count is null."""
    name = "execute_3_context_1(sq3sk2sqsq9sqsk6)_generation_0(sq0sk0sqsq0sqsk0)"
    assert rows(TraceBuilder().annotation(name, start_us=0, duration_us=1), "attention_pair_count") == [(None,)]


def test_decoding_beside_verification_may_be_drafting() -> None:
    """SGLang uses the step names of its main model for its draft model too.

    A step with such a name may belong to either model, so its number of tokens is unknown, and a finding says so.
    """
    builder = TraceBuilder().annotation("step[DECODE bs=4]", start_us=0, duration_us=5)
    builder.annotation("step[TARGET_VERIFY bs=4]", start_us=10, duration_us=5)
    assert rows(builder, "request_count", "decode_token_count") == [(4, None), (4, None)]
    assert found(builder).findings[0].startswith("step[DECODE …] occurs once alongside step[TARGET_VERIFY …]")


def test_padding_shows_in_the_embedding() -> None:
    """SGLang pads 5 requests to 8 tokens, so the lookup has 8 indices; without padding, the padded count is null."""
    builder = TraceBuilder()
    for start, index_count in ((0, 8), (50, 5)):
        builder.annotation("step[DECODE bs=5]", start_us=start, duration_us=20)
        embedding(builder, start + 1, [index_count])
    assert rows(builder, "token_count", "padded_token_count") == [(5, 8), (5, None)]


def test_shapes_complete_a_name_without_numbers() -> None:
    """The name `decode` has no batch size, but the lookup of [4, 1] indices shows 4 requests with one token each."""
    builder = TraceBuilder().annotation("prefill", start_us=0, duration_us=20)
    embedding(builder, 1, [4, 128])
    builder.annotation("decode", start_us=30, duration_us=20)
    embedding(builder, 31, [4, 1])
    columns = ("kind", "request_count", "prefill_token_count", "decode_token_count")
    assert rows(builder, *columns) == [("prefill", 4, 512, 0), ("decode", 4, 0, 4)]


def test_cached_requests_with_a_token_each_decode() -> None:
    """Step names of old vLLM versions give only the number of cached requests.

    If there are as many tokens as requests, the step decodes; with more tokens, its kind is unknown.
    """
    builder = TraceBuilder()
    for start, tokens in ((0, 4), (50, 9)):
        builder.annotation("execute_new_0_cached_4", start_us=start, duration_us=20)
        embedding(builder, start + 1, [tokens])
    assert rows(builder, "kind") == [("decode",), (None,)]


def test_names_that_look_like_steps_are_reported() -> None:
    """If a name resembles an engine's step but matches no rule, a finding says so."""
    builder = TraceBuilder().annotation("execute_context_2(6144)_gen_3(3)", start_us=0, duration_us=5)
    builder.annotation("step[DECODE bs=1]", start_us=10, duration_us=5)
    result = found(builder)
    assert result.table.height == 1
    assert result.findings[0] == (
        "1 name looks like a step of an engine but matches no pattern: 'execute_context_2(6144)_gen_3(3)'; pass a "
        "pattern for it"
    )


def test_a_pattern_of_the_user_finds_steps() -> None:
    """Named groups of the pattern give the kind and the number of requests."""
    builder = TraceBuilder().annotation("tick decode x7", start_us=0, duration_us=5)
    table = found(builder, r"tick (?P<kind>\w+) x(?P<requests>\d+)").table
    assert table.select("engine", "kind", "request_count", "token_count").row(0) == ("pattern", "decode", 7, 7)


def test_annotations_of_old_files_are_operators() -> None:
    """Files from before 2022 record annotations as operators."""
    builder = TraceBuilder().operator("step[DECODE bs=3]", start_us=0, duration_us=10)
    assert rows(builder, "kind", "request_count") == [("decode", 3)]


def test_denoising_steps_inside_a_range_of_xdit() -> None:
    """One range contains all steps; each call of the transformer is a step, but decoding the image is not."""
    builder = TraceBuilder().annotation("execute_diffusion_2_1024x1024", start_us=0, duration_us=100)
    module(builder, "T5EncoderModel_0", 1, 5)
    for start in (10, 30, 50):
        module(builder, "FluxTransformer2DModel_0", start, 15)
    module(builder, "UNetMidBlock2D_0", 80, 10)
    columns = ("engine", "found_by", "kind", "request_count", "start_ns", "end_ns", "until_ns")
    common = ("xdit", "module", "denoising", 2)
    assert rows(builder, *columns) == [(*common, 10, 25, 30), (*common, 30, 45, 50), (*common, 50, 65, 65)]


def test_denoising_steps_without_stacks_are_calls_of_a_compiled_graph() -> None:
    """Without stacks, the compiled graph that xDiT calls repeatedly is the transformer; its calls are steps."""
    builder = TraceBuilder().annotation("model_inference", start_us=0, duration_us=100)
    builder.annotation("## Call CompiledFxGraph text ##", start_us=1, duration_us=2)
    for start in (10, 30):
        builder.annotation("## Call CompiledFxGraph image ##", start_us=start, duration_us=15)
    builder.annotation("## Call CompiledFxGraph image ##", start_us=200, duration_us=15)
    assert rows(builder, "found_by", "start_ns", "end_ns") == [("compiled graph", 10, 25), ("compiled graph", 30, 45)]


def test_the_range_of_the_recipe_for_the_profiler_is_no_image() -> None:
    """PyTorch's profiler recipe also names a range `model_inference`.

    A range contains no denoising steps if it looks up embeddings of tokens or calls its compiled graph only once.
    """
    recipe = TraceBuilder()
    for start in (0, 100):
        recipe.annotation("model_inference", start_us=start, duration_us=50)
        recipe.annotation("## Call CompiledFxGraph resnet ##", start_us=start + 1, duration_us=40)
    generation = TraceBuilder().annotation("model_inference", start_us=0, duration_us=100)
    for start in (10, 30):
        generation.annotation("## Call CompiledFxGraph gpt ##", start_us=start, duration_us=15)
        embedding(generation, start, [1, 1])

    for result in (found(recipe), found(generation)):
        assert "denoising" not in result.table["kind"].to_list()
        assert not any("model_inference" in finding for finding in result.findings)


def test_denoising_steps_that_nothing_tells_apart_are_reported() -> None:
    """If a range of xDiT contains neither modules nor compiled graphs, a finding names the profiler option to use."""
    result = found(TraceBuilder().annotation("execute_diffusion_1_64x64", start_us=0, duration_us=100))
    assert result.table.is_empty()
    assert result.findings[0] == (
        "no inference steps: 'execute_diffusion_1_64x64' contains denoising steps, but nothing shows where each begins"
        ": record with with_stack=True, which records the calls of modules"
    )


def test_versions_of_engines_without_names_have_functions() -> None:
    """Old vLLM versions do not mark steps by name; instead, each call of `execute_model` counts as a step.

    The kind of a step with 3 tokens is unknown, because it may be prefill or decode.
    """
    builder = TraceBuilder()
    call = {"ph": "X", "cat": "python_function", "pid": 1000, "tid": 1, "dur": 20}
    for start in (0, 50):
        builder.event(name="/opt/vllm/v1/worker/gpu_model_runner.py(1000): execute_model", ts=start, **call)
        module(builder, "LlamaForCausalLM_0", start + 1, 10)
        embedding(builder, start + 2, [3])
    builder.operator("aten::argmax", start_us=90, duration_us=5)
    columns = ("engine", "found_by", "kind", "padded_token_count", "start_ns", "end_ns", "until_ns")
    common = ("vllm", "python function", None, 3)
    assert rows(builder, *columns) == [(*common, 0, 20, 50), (*common, 50, 70, 90)]


def test_repeated_calls_of_a_module_are_steps() -> None:
    """`generate` reads 4 prompts of 128 tokens, then decodes; the last step lasts until its forward pass ends."""
    builder = TraceBuilder().step(1, 0, 200)
    generate = {"ph": "X", "cat": "python_function", "pid": 1000, "tid": 1}
    builder.event(**generate, name="transformers/generation/utils.py(2500): generate", ts=5, dur=180)
    for start, length in ((10, 128), (70, 1), (130, 1)):
        module(builder, "LlamaForCausalLM_0", start, 40)
        module(builder, "LlamaModel_0", start + 1, 30)
        embedding(builder, start + 2, [4, length])
    columns = ("engine", "found_by", "kind", "request_count", "token_count", "start_ns", "end_ns", "until_ns")
    assert rows(builder, *columns) == [
        ("transformers", "module", "prefill", 4, 512, 10, 50, 70),
        ("transformers", "module", "decode", 4, 4, 70, 110, 130),
        ("transformers", "module", "decode", 4, 4, 130, 170, 170),
    ]


def test_token_embeddings_show_steps_without_stacks() -> None:
    """A forward pass begins with a lookup in the largest table; lookups of positions in a smaller table are ignored."""
    builder = TraceBuilder()
    for start, length in ((0, 16), (40, 1), (80, 1)):
        embedding(builder, start, [2, length])
        embedding(builder, start + 3, [1, length], table=(512, 1024))
        builder.operator("aten::mm", start_us=start + 6, duration_us=20)
    columns = ("engine", "found_by", "kind", "token_count", "start_ns", "end_ns")
    assert rows(builder, *columns) == [
        (None, "token embedding", "prefill", 32, 0, 40),
        (None, "token embedding", "decode", 2, 40, 80),
        (None, "token embedding", "decode", 2, 80, 106),
    ]


def test_a_pass_in_each_profiler_step_makes_those_the_steps() -> None:
    """If each profiler step contains one forward pass, the profiler steps are the inference steps."""
    builder = TraceBuilder()
    for number, start in ((1, 0), (2, 50), (3, 100)):
        builder.step(number, start, 45)
        embedding(builder, start + 5, [2, 1])
    assert rows(builder, "found_by", "kind", "start_ns", "until_ns") == [
        ("profiler step", "decode", 0, 45),
        ("profiler step", "decode", 50, 95),
        ("profiler step", "decode", 100, 145),
    ]


def test_attention_shows_the_kind_where_embeddings_do_not() -> None:
    """Causal attention over 128 queries means prefill; one query over 129 keys means decode."""
    builder = TraceBuilder()
    for start, queries, keys in ((0, 128, 128), (50, 1, 129)):
        module(builder, "Net_0", start, 40)
        attention(builder, start + 5, queries, keys, is_causal=queries > 1)
    assert rows(builder, "kind") == [("prefill",), ("decode",)]


def test_passes_of_an_encoder_are_no_steps() -> None:
    """Attention over whole sequences without a causal mask is neither prefill nor decode."""
    builder = TraceBuilder()
    for start in (0, 50):
        module(builder, "BertModel_0", start, 40)
        embedding(builder, start + 1, [4, 128])
        attention(builder, start + 5, 128, 128, is_causal=False)
    result = found(builder)
    assert result.table.is_empty()
    assert result.findings[0] == (
        "no inference steps: no range is named like a step, and nothing shows whether the repeated forward passes are "
        "prefill or decode (record_shapes=True records shapes, which show the number of tokens); "
        'name the steps with record_function("decode bs=8"), '
        "or pass a pattern that matches their names"
    )


def test_training_has_no_steps_of_inference() -> None:
    """Forward passes in a trace with backward passes belong to training."""
    builder = TraceBuilder()
    for start in (0, 50):
        embedding(builder, start, [4, 1])
        builder.operator("autograd::engine::evaluate_function: MmBackward0", start_us=start + 10, duration_us=5)
    result = found(builder)
    assert result.table.is_empty()
    assert result.findings == ("no inference steps: no range is named like a step, and the rank is training",)


def test_shapes_of_training_show_no_kind() -> None:
    """If a user's pattern matches training steps, causal attention in them does not make them prefill."""
    builder = TraceBuilder().step(1, 0, 50)
    attention(builder, 5, 128, 128, is_causal=True)
    builder.operator("autograd::engine::evaluate_function: MmBackward0", start_us=20, duration_us=5)
    assert found(builder, r"ProfilerStep#\d+").table["kind"].to_list() == [None]


def test_damaged_shapes_are_ignored() -> None:
    """If strings, negative sizes or nested sizes are recorded as shapes, tokens are unknown; no error is raised."""
    damaged = (
        [["a", 2], [4, 1]],
        [[8, -2], [4, 1]],
        [[8, 2], [[4], 1]],
        [[8, 2]],
        "x",
        [[8, 2], []],
        [[8, 2], [10**30, 1]],
    )
    builder = TraceBuilder().annotation("decode", start_us=0, duration_us=50)
    for start, dims in enumerate(damaged):
        builder.operator(EMBEDDING, start_us=start, duration_us=1, args={"Input Dims": dims})
    args = {"Input Dims": [[4, 16, 1], [4]], "Concrete Inputs": 7}
    builder.operator(ATTENTION, start_us=20, duration_us=2, args=args)
    assert rows(builder, "kind", "request_count", "token_count") == [("decode", None, None)]
