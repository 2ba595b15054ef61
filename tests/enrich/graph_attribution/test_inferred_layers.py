"""If the operators of replayed graphs are unknown, layers are inferred from the kernels."""

from __future__ import annotations

import re
from pathlib import Path

import holotrace
from holotrace.enrich.graph_attribution.explained_kernel import explained_kernel
from holotrace.enrich.graph_attribution.findings import attributed_work
from holotrace.enrich.graph_attribution.grafts import grafts
from holotrace.enrich.graph_attribution.inferred_layers import inferred_layers
from holotrace.testing.builder import TraceBuilder

EXAMPLES = Path(__file__).parents[3] / "examples" / "gpu" / "traces"

LAYER = ("rms_norm", "gemm", "flash_fwd", "silu")
MODEL = ("embedding", *LAYER * 3, "head")


def graph(builder: TraceBuilder, kernels: tuple[str, ...], start: int, grid: int = 8) -> TraceBuilder:
    """Replay these kernels with one launch; each takes 10 µs."""
    builder.runtime("cudaGraphLaunch", start_us=start + 1, duration_us=5, correlation=start)
    for place, kernel in enumerate(kernels):
        shape = {"grid": [grid, 1, 1], "block": [128, 1, 1]}
        builder.kernel(kernel, start_us=start + 10 + 10 * place, duration_us=10, correlation=start, args=shape)
    return builder


def layers(builder: TraceBuilder) -> list[tuple[int, int, int]]:
    """Return (layer, number of layers, position) of each kernel in a layer."""
    return inferred_layers(builder.build().ranks[0]).select("layer", "layer_count", "position").rows()


def test_kernels_without_a_recording_have_inferred_layers_but_no_operators():
    """Three layers of 4 kernels take 120 of 140 µs; embedding and head are outside, and no work has an operator."""
    trace = graph(TraceBuilder(), MODEL, 1_000).build()
    rank_trace = trace.ranks[0]

    assert layers(graph(TraceBuilder(), MODEL, 1_000)) == [
        (layer, 3, place) for layer in (1, 2, 3) for place in (1, 2, 3, 4)
    ]
    modules = holotrace.modules(trace)
    assert modules.per_module.select("path", "device_total_ns").rows() == [
        (f"inferred layer {layer}", 40_000) for layer in (1, 2, 3)
    ]
    assert holotrace.operators(trace).per_operator.filter(device_self_ns=40_000).is_empty()
    assert attributed_work(rank_trace)["how"].to_list() == [None, *["layer"] * 12, None]
    finding = modules.findings[-1]
    assert (
        "140 µs of device time; 0.0 % of it is attributed to operators. For another 85.7 %, only the layer is known"
        in finding
    )
    assert "as in a model with 3 layers. To attribute the rest, record the capture" in finding
    second = int(inferred_layers(rank_trace)["event_index"][5])
    assert list(explained_kernel(rank_trace, second)) == [
        ("attributed_by", "unknown"),
        ("inferred_layer", "2 of 3, kernel 2"),
    ]


def test_graphs_for_prefill_and_decode_are_divided_each_by_itself():
    """Decode and prefill run different kernels on different grids. Both have layers 1 to 3; `modules` adds up both."""
    builder = graph(
        graph(TraceBuilder(), MODEL, 1_000), ("embedding", *("norm", "gemv", "paged_attention") * 3), 2_000, 1
    )

    assert [layer for layer, *_ in layers(builder)] == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    modules = holotrace.modules(builder.build()).per_module
    assert modules["device_total_ns"].to_list() == [70_000, 70_000, 70_000]


def test_piecewise_graphs_are_divided_together():
    """In two passes, attention runs outside graphs; a graph spans the end of one layer and the start of the next."""
    first, middle, last = (
        ("embedding", "norm", "qkv"),
        ("out", "norm2", "silu", "norm", "qkv"),
        ("out", "norm2", "silu"),
    )
    builder = TraceBuilder()
    for number, kernels in enumerate([first, middle, middle, middle, last] * 2):
        graph(builder, kernels, 1_000 * (number + 1))

    of_pass = [(layer, 4, place) for layer in (1, 2, 3, 4) for place in (1, 2, 3, 4, 5)]
    assert layers(builder) == of_pass * 2


def test_a_backward_pass_runs_the_layers_in_reverse():
    """If a backward operator launches a graph, the layer that runs first is the model's last layer."""
    builder = TraceBuilder().operator("CompiledFunctionBackward", start_us=1_000, duration_us=100)

    assert [layer for layer, *_ in layers(graph(builder, MODEL, 1_000))] == [3] * 4 + [2] * 4 + [1] * 4


def test_work_on_a_second_stream_has_no_layer():
    """Across streams the order may change from layer to layer, so only work on the main stream gets layers."""
    builder = graph(TraceBuilder(), MODEL, 1_000)
    for place in range(3):
        builder.kernel("copy", start_us=1_015 + 40 * place, duration_us=5, correlation=1_000, stream=9)

    assert len(layers(builder)) == 12


def test_generated_kernels_keep_their_operators_inside_the_layer():
    """A kernel of torch.compile has the name of its operator; its layer is inferred."""
    kernels = ("embedding", *("triton_red_fused_norm_0", "gemm", "flash_fwd") * 3)
    trace = graph(TraceBuilder(), kernels, 1_000).build()

    assert attributed_work(trace.ranks[0])["how"].to_list() == [None, *["kernel_name", "layer", "layer"] * 3]
    operators = holotrace.operators(trace).per_operator.filter(operator="triton_red_fused_norm_0")
    assert operators["device_self_ns"].item() == 30_000
    assert holotrace.modules(trace).per_module["device_total_ns"].to_list() == [30_000] * 3


def test_the_roofline_divides_kernels_without_operators_by_layer():
    """In each replay, a layer of the roofline has 20 µs without an operator and 10 µs with one."""
    kernels = ("embedding", *("triton_red_fused_norm_0", "gemm", "flash_fwd") * 3, "head")
    result = holotrace.roofline(graph(graph(TraceBuilder(), kernels, 1_000), kernels, 2_000).build())
    columns = ("module", "phase", "call_count", "busy_ns", "covered_fraction")
    layers_found = result.per_module.select(columns).sort("module", "busy_ns")

    assert layers_found.rows() == [
        row
        for layer in (1, 2, 3)
        for row in (
            (f"inferred layer {layer}", "forward", 2, 20_000, 0.0),
            (f"inferred layer {layer}", None, 2, 40_000, 0.0),
        )
    ]


def test_a_graph_without_repetition_has_no_layers():
    """Fourteen different kernels are not divided into layers."""
    assert layers(graph(TraceBuilder(), tuple(f"kernel_{number}" for number in range(14)), 1_000)) == []


def test_layers_of_an_eager_step_suggest_operators():
    """The eager prefill has other attention kernels, so only norm, gemm and silu of the replay get its operators."""
    builder = TraceBuilder().annotation("prefill", start_us=0, duration_us=900)
    eager = ("embedding", *("rms_norm", "gemm", "fmha_prefill", "write_cache", "silu") * 3, "gather", "sort", "head")
    for place, kernel in enumerate(eager):
        builder.operator(f"aten::{kernel}", start_us=2 + 20 * place, duration_us=15)
        builder.kernel(kernel, start_us=10 + 20 * place, duration_us=5, launch_us=5 + 20 * place, correlation=place + 1)
    rank_trace = graph(builder, MODEL, 1_000).build().ranks[0]
    events = inferred_layers(rank_trace).filter(layer=2)["event_index"].to_list()
    suggested = [dict(explained_kernel(rank_trace, event)).get("inferred_operator") for event in events]

    assert suggested == ["aten::rms_norm", "aten::gemm", None, "aten::silu"]
    assert set(attributed_work(rank_trace)["how"].drop_nulls()) == {"layer"}


def recorded_layers(rank_trace: holotrace.RankTrace, pattern: str) -> dict[int, int]:
    """Return the layer of each kernel, counted from 1, according to the modules in the capture."""
    nodes, owners = grafts(rank_trace)
    names, above = rank_trace.texts(nodes["name"]).to_list(), nodes["above"].to_list()
    layer_of: dict[int, int] = {}
    for event, node in owners.select("event_index", "graft").rows():
        at = node
        while at != -1:
            if named := re.search(pattern, names[at]):
                layer_of[event] = int(named[1]) + 1
            at = above[at]
    return layer_of


def check_against_capture(path: Path, pattern: str, count: int) -> None:
    """Compare the inferred layer of each kernel with the module recorded in the capture."""
    with_capture, without = holotrace.open_trace(path.parent), holotrace.open_trace({0: path}, capture=())
    inferred = dict(inferred_layers(without.ranks[0]).select("event_index", "layer").rows())

    assert inferred == recorded_layers(with_capture.ranks[0], pattern)
    assert len(inferred) == count
    assert inferred_layers(with_capture.ranks[0]).is_empty()


def test_layers_equal_those_of_the_capture():
    """All 432 kernels of 4 layers in 6 replays have the right layer; embedding, head and sampling have none."""
    check_against_capture(EXAMPLES / "generation-graphs" / "rank0.pt.trace.json.gz", r"Block_(\d+)", 432)


def test_layers_of_sglang_equal_those_of_the_capture(real_traces):
    """All 540 kernels of the 36 layers of Qwen3-8B have the right layer."""
    path = real_traces / "inference" / "sglang_decode" / "sglang_Qwen3-8B_decode.json.gz"
    check_against_capture(path, r"Qwen3DecoderLayer_(\d+)", 540)


def test_piecewise_graphs_of_vllm_have_24_layers(real_traces):
    """The capture contains operators but no modules; it shows 24 layers, as each layer has one router with a top-k."""
    path = real_traces / "inference" / "vllm_prefilldecode_piecewise" / "graph_execution.json.gz"
    rank_trace = holotrace.open_trace({0: path}, capture=()).ranks[0]
    found = inferred_layers(rank_trace)
    events = rank_trace.table("events", ["event_index", "name"]).join(found, on="event_index")
    is_routing = rank_trace.texts(events["name"]) == "_topk_forward"

    assert len(found) == 359
    assert events.filter(is_routing)["layer"].to_list() == list(range(1, 25))
