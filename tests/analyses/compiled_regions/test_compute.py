"""Tests of compiled regions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

import holotrace
from holotrace.testing.builder import TraceBuilder

EXAMPLES = Path(__file__).parents[3] / "examples" / "gpu" / "traces"

WITHOUT_LOG = (
    "the profiler does not record which guards failed; set TORCH_LOGS=recompiles,guards to print them, or set "
    "TORCH_TRACE=FOLDER and pass the folder as compile_log= (--compile-log)"
)

WITHOUT_LINES = (
    "the profiler does not record the source lines of generated kernels; to see them, set TORCH_TRACE=FOLDER and "
    "INDUCTOR_PROVENANCE=1, and pass the folder as compile_log= (--compile-log)"
)


def compiled_job() -> TraceBuilder:
    """Return a job that calls region 0/0 once and region 0/1 twice (once as a graph replay), and compiles for 40 µs."""
    builder = TraceBuilder()
    for number, region in enumerate(("0/0", "0/1", "0/1")):
        start = 100 * number
        builder.operator("TorchDynamo Cache Lookup", start_us=start, duration_us=5)
        builder.operator(f"Torch-Compiled Region: {region}", start_us=start + 10, duration_us=30)
        builder.operator("CompiledFunction", start_us=start + 11, duration_us=20)
        if number < 2:
            source = {"kernel_file": "/cache/a.py", "kernel_backend": "triton"}
            builder.operator("triton_poi_fused_add_0", start_us=start + 12, duration_us=6, args=source)
            builder.kernel("triton_poi_fused_add_0", start_us=start + 50, duration_us=9, launch_us=start + 13)
        else:
            builder.runtime("cudaGraphLaunch", start_us=start + 12, duration_us=3, correlation=7)
            builder.kernel("triton_poi_fused_add_0", start_us=start + 50, duration_us=9, correlation=7)
    builder.operator("_compile.compile_inner (dynamo_timed)", start_us=400, duration_us=40)
    builder.operator("_compile.compile_inner", start_us=401, duration_us=38)
    builder.event(
        ph="X", cat="python_function", name="a.py(9): torch_dynamo_resume_in_f_at_9", pid=1000, tid=1, ts=500, dur=5
    )
    return builder.kernel("eager", start_us=600, duration_us=9, launch_us=550)


def test_regions_costs_and_kernels():
    """Checking guards takes 15 µs and compiling 40 µs; compiled kernels take 27 of the 36 µs of kernel time."""
    result = holotrace.compiled_regions(compiled_job().build())

    assert result.per_region.rows() == [
        (0, "0/1", True, 2, 60_000, 18_000, 1, None, None, None),
        (0, "0/0", False, 1, 30_000, 9_000, 0, None, None, None),
    ]
    assert result.per_frame.rows() == [(0, 0, None, 1, None, None, 3, None)]
    assert result.per_rank.rows() == [(0, 1, 40_000, 3, 15_000, 1, 27_000, 0.75)]
    assert result.per_kernel.rows() == [(0, "triton_poi_fused_add_0", "/cache/a.py", 3, 27_000, None)]
    assert result.findings == (
        "rank 0: torch.compile ran the compiler 1 time in the recording, for 40 µs",
        "rank 0: 1 region had been recompiled, because a guard failed",
        "rank 0: frame 0 was recompiled 1 time",
        f"rank 0: {WITHOUT_LOG}",
        "rank 0: 1 function continued after a graph break",
        f"rank 0: {WITHOUT_LINES}",
    )
    assert result.answer == "2 compiled regions ran; compiling took 40 µs."


def test_a_job_without_torch_compile_has_empty_tables():
    """For a job without torch.compile, every table is empty, and the answer says why."""
    result = holotrace.compiled_regions(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build())

    assert result.per_region.is_empty()
    assert result.per_rank.is_empty()
    assert result.per_kernel.is_empty()
    assert result.answer == "the trace shows no use of torch.compile"


def test_compiled_code_of_old_versions_is_noticed():
    """PyTorch 2.0 records the autograd functions of compiled code, but no compiled regions; the answer says so."""
    builder = TraceBuilder().operator("CompiledFunctionBackward", start_us=0, duration_us=5)
    result = holotrace.compiled_regions(
        builder.kernel("triton__0d1d2d", start_us=6, duration_us=2, launch_us=1).build()
    )

    assert result.per_region.is_empty()
    assert result.answer.startswith("rank 0: the job uses torch.compile, but")


def test_graph_breaks_that_leave_nothing_to_compile_are_reported():
    """If graph breaks leave nothing to compile, a finding counts the calls of functions that ran no compiled region."""
    result = holotrace.compiled_regions(
        holotrace.open_trace(EXAMPLES / "compiled-graph_breaks" / "rank0.pt.trace.json.gz")
    )

    assert result.per_region.is_empty()
    assert "2 calls of functions under torch.compile ran no compiled region" in result.findings[0]


@pytest.mark.parametrize("name", ["compiled", "compiled-recompiles"])
def test_the_tables_equal_their_golden_copies(golden, name):
    """The tables of recorded jobs equal their golden copies."""
    result = holotrace.compiled_regions(holotrace.open_trace(EXAMPLES / name / "rank0.pt.trace.json.gz"))

    golden.check(result.per_region, f"compiled_regions/{name}.per_region")
    golden.check(result.per_frame, f"compiled_regions/{name}.per_frame")
    golden.check(result.per_rank, f"compiled_regions/{name}.per_rank")
    golden.check(result.per_kernel, f"compiled_regions/{name}.per_kernel")


RECORDED = Path(__file__).parent / "recorded"
"""A trace and a compile log of PyTorch 2.15 on the CPU (TORCH_TRACE, INDUCTOR_PROVENANCE=1), cut to the records needed.

The job calls a model with inputs of 4, 4, 8, 8 and 16 rows, and then with gradients turned off. It also calls a
function that prints, with the arguments 2, 3, 3.5 and 4.
"""


def test_a_log_says_which_functions_were_compiled_again_and_why():
    """The reasons for compiling the model again (new shapes, no gradients) equal those of TORCH_LOGS=recompiles."""
    trace = holotrace.open_trace(RECORDED / "train.pt.trace.json.gz")
    result = holotrace.compiled_regions(trace, compile_log=RECORDED / "torch_trace")

    frames = result.per_frame.select(
        "compiled_frame", "compiled_function", "recompilation_count", "compilation_count", "call_count"
    )
    assert frames.rows() == [
        (0, "/job/train.py(8): forward", 3, 4, 7),
        (1, "/job/train.py(12): g", 2, 3, 4),
        (2, "/job/train.py(14): torch_dynamo_resume_in_g_at_14", 0, 1, 4),
        (3, "/job/train.py(14): torch_dynamo_resume_in_g_at_14", 0, 1, 4),
    ]
    assert result.per_frame["recompile_reason"][0].splitlines() == [
        "0/1 after 0/0: tensor 'x' size mismatch at index 0. expected 4, actual 8",
        "0/2 after 0/1: tensor 'x' size mismatch at index 0. expected 8, actual 16",
        "0/3 after 0/0: GLOBAL_STATE changed: grad_mode",
    ]
    of_region = dict(result.per_region.select("region", "recompile_reason").rows())
    assert of_region["1/1"] == "1/0: n == 2 # y=x*n # job/train.py:13 in g"
    assert of_region["0/0"] is None
    assert not any("TORCH_LOGS" in finding for finding in result.findings)


def test_the_time_of_compiling_belongs_to_regions_as_the_log_says():
    """The compilation time of each region agrees with the log to 0.1 %, and the times sum to the rank's total."""
    result = holotrace.compiled_regions(holotrace.open_trace(RECORDED / "train.pt.trace.json.gz"))
    log = (RECORDED / "torch_trace" / "dedicated_log_torch_trace_5u6g.log").read_text()
    metrics = [json.loads(line[line.index("{") :]) for line in log.splitlines() if '{"compilation_metrics"' in line]
    in_log = {
        said["compilation_metrics"]["compile_id"]: said["compilation_metrics"]["entire_frame_compile_time_s"]
        for said in metrics
    }
    times = dict(result.per_region.select("region", pl.col("compilation_ns") / 1e9).rows())

    assert times == pytest.approx(in_log, rel=0.001)
    assert result.per_region["compilation_ns"].sum() == result.per_rank["compilation_ns"].item()


def test_a_frame_at_the_limit_of_recompilations_is_reported():
    """Region 4/7 is the eighth version of frame 4, and torch.compile stops at eight versions; a finding says so."""
    trace = TraceBuilder().operator("Torch-Compiled Region: 4/7", start_us=0, duration_us=50).build()
    findings = holotrace.compiled_regions(trace).findings

    assert (
        "frame 4 was recompiled 7 times. By default, torch.compile stops recompiling a frame after 8 versions"
        in findings[1]
    )


def test_generated_kernels_have_the_lines_of_the_log(tmp_path):
    """A kernel's line is found by its file; otherwise by its name, if the name has the same line in all graphs."""
    code = ["# kernel path: /cache/a.py", "triton_poi_fused_add_0 = async_compile.triton("]
    stack = 'File "/job/train.py", line {}, in forward\n File "/venv/site-packages/torch/nn.py", line 9, in call'
    log = [
        'V1123 06:34:30.206000 7 torch/a.py:1] {"compilation_metrics": {"compile_id": "0/0"}}',
        'V1123 06:34:30.206000 7 torch/a.py:1] {"inductor_output_code": {}, "frame_id": 0, "frame_compile_id": 0}',
        *(f"\t{line}" for line in code),
        *_stacks(0, {"triton_poi_fused_add_0:1": [stack.format(5)], "triton_poi_fused_mul_1:2": [stack.format(6)]}),
        *_stacks(1, {"triton_poi_fused_add_0:1": [stack.format(7)], "triton_poi_fused_mul_1:1": [stack.format(6)]}),
        "V1123 06:34:30.206000 7 torch/a.py:1] {damaged",
    ]
    (tmp_path / "dedicated_log_torch_trace_x.log").write_text("\n".join(log))
    builder = TraceBuilder()
    for number, (name, file) in enumerate([("add_0", "/cache/a.py"), ("add_0", "/cache/b.py"), ("mul_1", "")]):
        options = {"args": {"kernel_file": file, "kernel_backend": "triton"}} if file else {}
        builder.operator(f"triton_poi_fused_{name}", start_us=10 * number, duration_us=5, **options)
    kernels = holotrace.compiled_regions(builder.build(), compile_log=tmp_path).per_kernel

    assert dict(kernels.select("source_file", "source_line").rows()) == {
        "/cache/a.py": "/job/train.py(5): forward",
        "/cache/b.py": None,
        None: "/job/train.py(6): forward",
    }


def _stacks(version: int, stacks: dict[str, list[str]]) -> list[str]:
    name = '{"artifact": {"name": "inductor_provenance_tracking_kernel_stack_traces", "encoding": "json"}'
    where = f'"frame_id": 0, "frame_compile_id": {version}}}'
    return [f"V1123 06:34:30.206000 7 torch/a.py:1] {name}, {where}", f"\t{json.dumps(stacks)}"]


@pytest.mark.parametrize(
    "name",
    [
        "dedicated_log_torch_trace_rank_{}_x.log",
        "dedicated_log_torch_trace_rank_{}_x.log.gz",
        "rank_{}/raw.log",  # the output of `tlparse --all-ranks-html`
    ],
)
def test_each_rank_has_its_own_log(tmp_path, name):
    """The name of a log file or of its folder contains the rank; for a rank without a log, the function is null."""
    builder = TraceBuilder()
    for rank in (0, 1, 2):
        builder.rank(rank).operator("Torch-Compiled Region: 0/0", start_us=0, duration_us=50)
    for rank in (0, 1):
        metrics = {"compile_id": "0/0", "co_filename": "a.py", "co_firstlineno": rank, "co_name": "f"}
        line = f"V1123 06:34:30.206000 7 torch/a.py:1] {json.dumps({'compilation_metrics': metrics})}"
        path = tmp_path / name.format(rank)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(line.encode()) if path.suffix == ".gz" else line.encode())
    result = holotrace.compiled_regions(builder.build(), compile_log=tmp_path)

    assert result.per_region["compiled_function"].to_list() == ["a.py(0): f", "a.py(1): f", None]


@pytest.mark.parametrize("name", ["missing", "empty", "cut.log.gz"])
def test_a_folder_without_a_log_is_an_error(tmp_path, name):
    """If there is no log, the error says how to record one; if the log is truncated, that it cannot be read."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.log.gz").write_bytes(gzip.compress(b"V1123 06:34:30.206000 7 torch/a.py:1] {}")[:-9])
    with pytest.raises(holotrace.InvalidOptionError, match=r"TORCH_TRACE|cannot be read"):
        holotrace.compiled_regions(compiled_job().build(), compile_log=tmp_path / name)
