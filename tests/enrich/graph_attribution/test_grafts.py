"""Operators and modules of replayed graphs are found in hand-built captures with a known answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import holotrace
from holotrace.enrich.graph_attribution.findings import attributed_work
from holotrace.enrich.host.operators import launching_operator
from holotrace.execution.processes import processes
from holotrace.testing.builder import TraceBuilder

FIRST_CORRELATION = 1_000


def capture_of(*kernels: tuple[str, str], begin: int = 0, builder: TraceBuilder | None = None) -> TraceBuilder:
    """Record a graph capture on ROCm: operator n launches kernel n inside the module Linear_<n> of Model_0."""
    builder = TraceBuilder() if builder is None else builder
    builder.runtime("hipStreamBeginCapture", start_us=begin, duration_us=1)
    end = begin + 10 + 10 * len(kernels)
    frame(builder, "nn.Module: Model_0", begin + 2, end - begin - 4)
    for number, (operator, kernel) in enumerate(kernels):
        start = begin + 5 + 10 * number
        frame(builder, f"nn.Module: Linear_{number}", start, 8)
        shapes = {"Input Dims": [[32, 64 + number]], "Input type": ["float"]}
        builder.operator(operator, start_us=start + 1, duration_us=6, args=shapes)
        builder.runtime("hipLaunchKernel", start_us=start + 2, duration_us=2, args={"kernel": kernel})
    return builder.runtime("hipStreamEndCapture", start_us=end, duration_us=1)


def frame(builder: TraceBuilder, name: str, start: int, duration: int) -> TraceBuilder:
    """Add a Python function on thread 1."""
    return builder.event(ph="X", cat="python_function", name=name, pid=1000, tid=1, ts=start, dur=duration)


def replay_of(*graphs: list[tuple[str, int]], annotation: str | None = None) -> TraceBuilder:
    """Replay graphs one after another; each is a list of (kernel, stream), and a kernel takes 10 µs."""
    builder = TraceBuilder()
    for number, kernels in enumerate(graphs):
        start = 1_000 * number
        if annotation:
            builder.annotation(annotation, start_us=start, duration_us=500)
        builder.runtime("hipGraphLaunch", start_us=start + 5, duration_us=20, correlation=FIRST_CORRELATION + number)
        for place, (kernel, stream) in enumerate(kernels):
            options = {"stream": stream, "correlation": FIRST_CORRELATION + number}
            builder.kernel(kernel, start_us=start + 30 + 10 * place, duration_us=10, **options)
    return builder


def opened(folder: Path, replayed: TraceBuilder, **captures: TraceBuilder) -> holotrace.Trace:
    """Write the replay to the folder, and each capture to a file in `capture_traces`; open the folder."""
    replayed.write(folder)
    (folder / "capture_traces").mkdir(exist_ok=True)
    for name, builder in captures.items():
        (folder / "capture_traces" / f"{name}.json").write_bytes(builder.json())
    return holotrace.open_trace(folder, cache=False)


def operators_of(trace: holotrace.Trace) -> list[str | None]:
    """Return the operator of each kernel of rank 0, in order of start."""
    rank_trace = trace.ranks[0]
    return rank_trace.texts(launching_operator(rank_trace)["operator_name"]).to_list()


def test_each_kernel_has_the_operator_that_launched_it_when_captured(tmp_path):
    """The operators mm and relu ran in the capture but not in the replay, so they take no time on the host."""
    captured = capture_of(("aten::mm", "gemm"), ("aten::relu", "relu"))
    trace = opened(tmp_path, replay_of([("gemm", 7), ("relu", 7)], [("gemm", 7), ("relu", 7)]), bs_1_rank0=captured)
    result = holotrace.operators(trace)

    assert operators_of(trace) == ["aten::mm", "aten::relu"] * 2
    columns = ("operator", "input_shape", "call_count", "host_total_ns", "device_self_ns", "device_total_ns")
    assert result.per_input_shape.select(columns).rows() == [
        ("aten::mm", "[[32, 64]]", 2, 0, 20_000, 20_000),
        ("aten::relu", "[[32, 65]]", 2, 0, 20_000, 20_000),
    ]
    assert result.findings[-1] == (
        "rank 0: graphs replayed 4 kernels, copies and memsets, 40 µs of device time; 100.0 % of it is attributed to "
        "operators: 100.0 % by the trace of the capture"
    )


def test_modules_shapes_and_frames_come_from_the_capture(tmp_path):
    """The result shows the module and the shapes of each kernel."""
    captured = capture_of(("aten::mm", "gemm"), ("aten::relu", "relu"))
    trace = opened(tmp_path, replay_of([("gemm", 7), ("relu", 7)]), bs_1_rank0=captured)

    modules = holotrace.modules(trace).per_module
    assert modules.select("path", "call_count", "device_total_ns").rows() == [
        ("Model_0", 1, 20_000),
        ("Model_0 > Linear_0", 1, 10_000),
        ("Model_0 > Linear_1", 1, 10_000),
    ]
    forward = holotrace.operator_kernels(trace).per_forward
    assert forward.select("operator", "module").sort("operator").rows() == [
        ("aten::mm", "Linear_0"),
        ("aten::relu", "Linear_1"),
    ]
    launched = holotrace.kernels(trace).per_launch_shape
    assert dict(launched.select("name", "operator").rows()) == {"gemm": "aten::mm", "relu": "aten::relu"}
    costs = holotrace.roofline(trace).per_operator
    assert dict(costs.select("operator", "flops").rows())["aten::relu"] == 32 * 65
    stacks = holotrace.operators(trace).per_call_stack
    assert stacks.filter(operator="aten::mm")["call_stack"].item() == "nn.Module: Linear_0;nn.Module: Model_0"


def test_modules_around_both_the_capture_and_the_replay_count_once(tmp_path):
    """Model_0 runs both when the graph is captured and when it is replayed, but the path contains Model_0 only once."""
    replayed = replay_of([("gemm", 7)])
    frame(replayed, "nn.Module: Model_0", 1, 400)
    trace = opened(tmp_path, replayed, bs_1_rank0=capture_of(("aten::mm", "gemm")))

    assert holotrace.modules(trace).per_module.select("path", "host_total_ns", "device_total_ns").rows() == [
        ("Model_0", 400_000, 10_000),
        ("Model_0 > Linear_0", 0, 10_000),
    ]


def test_two_streams_and_a_missing_launch(tmp_path):
    """The capture has gemm, copy_k, relu, gemm; the replay runs copy_k on another stream and lacks relu."""
    kinds = (("aten::mm", "gemm"), ("aten::copy_", "copy_k"), ("aten::relu", "relu"), ("aten::bmm", "gemm"))
    trace = opened(tmp_path, replay_of([("gemm", 7), ("gemm", 7), ("copy_k", 8)]), bs_1_rank0=capture_of(*kinds))

    assert operators_of(trace) == ["aten::mm", "aten::bmm", "aten::copy_"]


def test_graphs_of_equal_kernels_follow_the_order_of_their_capture(tmp_path):
    """Two graphs have equal kernels, so their replays are assumed to alternate in the order of capture."""
    captured = capture_of(("aten::mm", "gemm"))
    capture_of(("aten::addmm", "gemm"), begin=100, builder=captured)
    graph = [("gemm", 7)]
    trace = opened(tmp_path, replay_of(graph, graph, graph, graph), graph_capture_rank_0=captured)

    assert operators_of(trace) == ["aten::mm", "aten::addmm", "aten::mm", "aten::addmm"]


def test_a_padded_batch_uses_the_next_larger_capture(tmp_path):
    """A batch of 3 runs the graph captured for a batch of 4, although the graphs for 2 and 8 have the same kernels."""
    sizes = {f"bs_{size}_rank0": capture_of((f"op::of_{size}", "gemm")) for size in (2, 4, 8)}
    trace = opened(tmp_path, replay_of([("gemm", 7)], annotation="step[DECODE bs=3]"), **sizes)

    assert operators_of(trace) == ["op::of_4"]


def test_captures_of_unknown_batch_sizes_leave_the_shapes_in_doubt(tmp_path):
    """Two captures differ only in shapes; if no batch size is known, a finding says that the shapes are uncertain."""
    first, second = capture_of(("aten::mm", "gemm")), TraceBuilder()
    second.operator("aten::mm", start_us=5, duration_us=6, args={"Input Dims": [[8, 64]]})
    second.runtime("hipStreamBeginCapture", start_us=0, duration_us=1)
    second.runtime("hipLaunchKernel", start_us=6, duration_us=2, args={"kernel": "gemm"})
    second.runtime("hipStreamEndCapture", start_us=20, duration_us=1)
    captures = {"bs_32_rank0": first, "bs_8_rank0": second}
    doubt = "for 1 of 1 graph replays, the shapes may belong to another batch size"

    unknown = opened(tmp_path / "unknown", replay_of([("gemm", 7)]), **captures)
    known = opened(tmp_path / "known", replay_of([("gemm", 7)], annotation="decode bs=8"), **captures)
    assert any(doubt in finding for finding in holotrace.operators(unknown).findings)
    assert not any(doubt in finding for finding in holotrace.operators(known).findings)
    assert holotrace.operators(known).per_input_shape["input_shape"].to_list() == ["[[8, 64]]"]


def test_details_of_the_engine_state_the_batch_size(tmp_path):
    """The file execution_details.json, which vLLM writes, gives the batch size of each capture file."""
    files = {name: capture_of((f"op::{name}", "gemm")) for name in ("graph_capture_rank_0_a", "graph_capture_rank_0_b")}
    trace_folder = tmp_path / "capture_traces"
    trace_folder.mkdir()
    details = [
        {"file": "graph_capture_rank_0_a.json", "batch_size": 64},
        {"file": "graph_capture_rank_0_b.json", "batch_size": 8},
        3,
    ]
    (trace_folder / "execution_details.json").write_text(json.dumps(details))
    replayed = replay_of([("gemm", 7)], annotation="execute_8_context_0(sq0)_generation_8(sq8)")

    assert operators_of(opened(tmp_path, replayed, **files)) == ["op::graph_capture_rank_0_b"]


def test_a_capture_of_other_work_explains_nothing(tmp_path):
    """The capture has only one of three kernels, so it belongs to another graph; the finding says what to record."""
    captured = capture_of(("aten::mm", "gemm"), ("aten::add", "add"))
    trace = opened(tmp_path, replay_of([("gemm", 7), ("conv", 7), ("pool", 7)]), bs_1_rank0=captured)

    assert operators_of(trace) == [None] * 3
    (*_, finding) = holotrace.operators(trace).findings
    assert "0.0 % of it is attributed to operators. To attribute the rest, record the capture" in finding
    assert "--capture PATH" in finding


def test_launches_without_kernel_names_are_counted(tmp_path):
    """NVIDIA's launches do not name kernels, so replayed work is matched in order with launches of the same kind."""
    captured = TraceBuilder().runtime("cudaStreamBeginCapture", start_us=0, duration_us=1)
    for place, (operator, call) in enumerate(
        [("aten::mm", "cudaLaunchKernel"), ("aten::copy_", "cudaMemcpyAsync"), ("aten::add", "cuLaunchKernelEx")]
    ):
        captured.operator(operator, start_us=10 + 10 * place, duration_us=8)
        captured.runtime(call, start_us=12 + 10 * place, duration_us=2)
    captured.runtime("cudaStreamEndCapture", start_us=50, duration_us=1)
    replayed = TraceBuilder().runtime("cudaGraphLaunch", start_us=0, duration_us=5, correlation=9)
    replayed.kernel("gemm", start_us=10, duration_us=5, correlation=9)
    replayed.copy("Memcpy DtoD (Device -> Device)", start_us=20, duration_us=5, correlation=9)
    replayed.kernel("add", start_us=30, duration_us=5, correlation=9)

    assert operators_of(opened(tmp_path, replayed, bs_1_rank0=captured)) == ["aten::mm", "aten::copy_", "aten::add"]


def test_an_eager_step_of_the_same_recording_explains_the_graph():
    """Another step runs the same kernels without a graph, so it shows their operators."""
    builder = replay_of([("gemm", 7), ("relu", 7)])
    for place, (operator, kernel) in enumerate([("aten::mm", "gemm"), ("aten::relu", "relu")]):
        start = 5_000 + 100 * place
        builder.operator(operator, start_us=start, duration_us=50)
        builder.kernel(kernel, start_us=start + 60, duration_us=10, launch_us=start + 10)

    trace = builder.build()
    assert operators_of(trace) == ["aten::mm", "aten::relu"] * 2
    assert attributed_work(trace.ranks[0])["how"].to_list() == ["eager", "eager"]


def test_an_eager_recording_can_be_given(tmp_path):
    """`capture` also accepts a trace of the same step recorded without graphs."""
    eager = TraceBuilder()
    for place, (operator, kernel) in enumerate([("aten::mm", "gemm"), ("aten::relu", "relu")]):
        eager.operator(operator, start_us=100 * place, duration_us=50)
        eager.kernel(kernel, start_us=100 * place + 60, duration_us=10, launch_us=100 * place + 10)
    (replay,) = replay_of([("gemm", 7), ("relu", 7)]).write(tmp_path / "replay")
    (reference,) = eager.write(tmp_path / "eager")

    trace = holotrace.open_trace(replay, capture=reference, cache=False)
    assert operators_of(trace) == ["aten::mm", "aten::relu"]


def test_annotations_of_graph_nodes_name_the_module(tmp_path):
    """Node 41 is annotated in the trace, node 42 in a file, and node 43 nowhere."""
    builder = TraceBuilder().runtime("cudaGraphLaunch", start_us=0, duration_us=5, correlation=9)
    for node in (41, 42, 43):
        said = {"module_fqn": "layers.0.wq"} if node == 41 else {}
        args = {"graph node id": node, "graph id": 1, **said}
        builder.kernel("gemm", start_us=node, duration_us=1, correlation=9, args=args)
    (path,) = builder.write(tmp_path)
    annotations = tmp_path / "annotations.json"
    annotations.write_text(json.dumps({"42": [{"fqn": "layers.0.wk"}]}))

    trace = holotrace.open_trace(path, capture=annotations, cache=False)
    assert holotrace.modules(trace).per_module.select("path", "device_total_ns").rows() == [
        ("layers.0.wq", 1_000),
        ("layers.0.wk", 1_000),
    ]
    assert attributed_work(trace.ranks[0])["how"].to_list() == ["node_id", "node_id", None]


def test_kernels_of_torch_compile_have_the_name_of_their_operator():
    """Inductor names an operator after each kernel that it generates, so the kernel's name shows the operator."""
    trace = replay_of([("triton_poi_fused_add_0", 7), ("gemm", 7)]).build()

    assert operators_of(trace) == ["triton_poi_fused_add_0", None]
    assert attributed_work(trace.ranks[0])["how"].to_list() == ["kernel_name", None]


@pytest.mark.slow
def test_workers_and_the_cache_have_the_capture(tmp_path, monkeypatch):
    """A rank is pickled with its captures, and the cache stores results with and without captures separately."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    (path,) = replay_of([("gemm", 7)]).write(tmp_path / "replay")
    capture = tmp_path / "capture.json"
    capture.write_bytes(capture_of(("aten::mm", "gemm")).json())

    for _ in range(2):
        with processes(1) as executor:
            known = holotrace.operators(holotrace.open_trace(path, capture=capture), executor=executor)
        assert known.per_operator["operator"].to_list() == ["aten::mm"]
        assert holotrace.operators(holotrace.open_trace(path)).per_operator.is_empty()


def test_a_rank_without_a_capture_uses_that_of_the_lowest_rank(tmp_path):
    """Engines record a capture only on rank 0; all ranks use it, because they run the same model."""
    builder = replay_of([("gemm", 7)])
    builder.rank(1).runtime("hipGraphLaunch", start_us=0, duration_us=5, correlation=9)
    builder.kernel("gemm", start_us=10, duration_us=5, correlation=9)
    trace = opened(tmp_path, builder, graph_capture_rank_0=capture_of(("aten::mm", "gemm")))

    assert holotrace.operators(trace).per_operator.select("rank", "operator").rows() == [
        (0, "aten::mm"),
        (1, "aten::mm"),
    ]


def test_selected_steps_keep_their_graphs(tmp_path):
    """If one of two steps is selected, the graph replay in this step still has its operators."""
    replayed = replay_of([("gemm", 7)], [("gemm", 7)])
    replayed.step(0, 0, 900).step(1, 1_000, 900)
    trace = opened(tmp_path, replayed, bs_1_rank0=capture_of(("aten::mm", "gemm")))
    from functools import partial  # noqa: PLC0415

    from holotrace.enrich.steps.selections import in_steps  # noqa: PLC0415

    chosen = trace.where(partial(in_steps, steps=(1,)))
    assert holotrace.operators(chosen).per_operator.select("operator", "call_count").rows() == [("aten::mm", 1)]


@pytest.mark.parametrize("args", [{"Input Dims": [[1]]}, {}])
def test_a_recording_without_graphs_is_unchanged(args):
    """A recording without graph launches has its usual operators, no captures, and no finding about graphs."""
    trace = (
        TraceBuilder()
        .operator("aten::mm", start_us=0, duration_us=9, args=args)
        .kernel("gemm", start_us=9, duration_us=1, launch_us=2)
        .build()
    )

    assert trace.ranks[0].captures == ()
    assert holotrace.operators(trace).per_operator["operator"].to_list() == ["aten::mm"]
    assert not any("graphs replayed" in finding for finding in holotrace.operators(trace).findings)


def test_tables_in_sql_name_the_operators(tmp_path):
    """In SQL, the view `kernels` shows the operator of each replayed kernel."""
    pytest.importorskip("duckdb")
    trace = opened(tmp_path, replay_of([("gemm", 7)]), bs_1_rank0=capture_of(("aten::mm", "gemm")))

    assert holotrace.sql(trace, "SELECT operator FROM kernels").rows() == [("aten::mm",)]
