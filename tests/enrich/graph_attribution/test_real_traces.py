"""The operators found for replayed graphs equal those that TraceLens finds, or those recorded without graphs."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

import holotrace
from holotrace.enrich.graph_attribution.findings import attributed_work

EXAMPLES = Path(__file__).parents[3] / "examples" / "gpu" / "traces"
ENGINES = {
    "sglang_decode": ("sglang_Qwen3-8B_decode.json.gz", 544),
    "vllm_prefilldecode_piecewise": ("graph_execution.json.gz", 361),
}

WITHOUT_WORK = {"sglang_decode": {("aten::copy_", "[[32], [32], []]"): 2}, "vllm_prefilldecode_piecewise": {}}
"""Copies between tensors on the host, which launch no device work; TraceLens omits them."""


def tracelens_sums(path: Path) -> dict[tuple[str, str], tuple[int, float]]:
    """Return TraceLens' {(operator, shapes): (calls, µs of device time)}; leave out calls of HIP functions."""
    sums: dict[tuple[str, str], tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if not re.match("hip[A-Z]", row["name"]):
                key = row["name"], json.dumps(ast.literal_eval(row["Input Dims"]) if row["Input Dims"] else None)
                count, time = sums[key]
                sums[key] = count + int(row["operation_count"]), time + float(row["total_direct_kernel_time_sum"])
    return dict(sums)


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_all_replayed_work_has_the_operators_that_tracelens_gives(real_traces, goldens, name):
    """For every operator and shape, counts are equal, and times are equal up to TraceLens' rounding to 1/1024 µs."""
    file, count = ENGINES[name]
    trace = holotrace.open_trace(real_traces / "inference" / name / file)
    theirs = tracelens_sums(goldens / "tracelens" / name / "ops_unique_args.csv")
    ours = holotrace.operators(trace).per_input_shape.filter(pl.col("device_self_ns") > 0)
    sums = {
        (re.sub(r"^(sglang_profiler::.*)_\d+$", r"\1", operator), shape or "null"): (calls, time / 1_000)
        for operator, shape, calls, time in ours.select(
            "operator", "input_shape", "call_count", "device_self_ns"
        ).rows()
    }

    work = attributed_work(trace.ranks[0])
    assert work["how"].to_list() == ["capture"] * count
    assert sums.keys() == theirs.keys()
    more_calls = {key: calls - theirs[key][0] for key, (calls, _) in sums.items() if calls != theirs[key][0]}
    assert more_calls == WITHOUT_WORK[name]
    assert {key: time for key, (_, time) in sums.items()} == pytest.approx(
        {key: time for key, (_, time) in theirs.items()}, abs=0.05
    )


def test_the_capture_and_a_run_without_graphs_agree():
    """NVIDIA's launches do not name kernels, so replayed work is matched with the capture by order.

    With an eager run as the capture, the work is attributed to the same operators.
    """
    replayed = EXAMPLES / "generation-graphs" / "rank0.pt.trace.json.gz"
    by_capture = holotrace.open_trace(replayed)
    by_eager = holotrace.open_trace(replayed, capture=EXAMPLES / "generation" / "rank0.pt.trace.json.gz")
    columns = ["operator", "call_count", "device_self_ns"]
    of_capture, of_eager = (
        holotrace.operators(trace).per_operator.filter(pl.col("device_self_ns") > 0).select(columns).rows()
        for trace in (by_capture, by_eager)
    )

    assert of_capture == of_eager
    assert attributed_work(by_capture.ranks[0])["how"].value_counts().rows() == [("capture", 456)]
    assert attributed_work(by_eager.ranks[0])["how"].value_counts().rows() == [("eager", 456)]


def test_a_compiled_model_without_graphs_explains_its_graphs():
    """torch.compile runs the same 304 kernels with or without CUDA graphs; all are attributed, in both passes."""
    folder = EXAMPLES / "training-compiled_graphs" / "rank0.pt.trace.json.gz"
    trace = holotrace.open_trace(folder, capture=EXAMPLES / "training-compiled" / "rank0.pt.trace.json.gz")

    assert attributed_work(trace.ranks[0])["how"].null_count() == 0
    assert holotrace.operators(trace).per_operator.filter(operator="aten::mm")["device_self_ns"].item() == 2_543_739


def test_roofline_covers_the_graphs_of_a_generation(golden):
    """With shapes from the capture, costs are known for all of the busy time; without them, for 28.6 % of it."""
    trace = holotrace.open_trace(EXAMPLES / "generation-graphs" / "rank0.pt.trace.json.gz")
    without = holotrace.open_trace({0: EXAMPLES / "generation-graphs" / "rank0.pt.trace.json.gz"}, capture=())

    assert holotrace.roofline(trace).per_rank["covered_fraction"].item() == pytest.approx(1.0, abs=0.001)
    assert holotrace.roofline(without).per_rank["covered_fraction"].item() == pytest.approx(0.286, abs=0.001)
    golden.check(holotrace.modules(trace).per_module, "modules/generation_graphs.per_module")
    golden.check(
        holotrace.operators(trace).per_input_shape.drop("is_tensor_core_eligible"),
        "operators/generation_graphs.per_input_shape",
    )
