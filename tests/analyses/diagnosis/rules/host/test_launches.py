"""Tests of the rules about graph breaks, slow recordings, and devices that wait for launches."""

from __future__ import annotations

from datetime import datetime, timezone

import polars as pl
import pytest

import holotrace
from device_jobs import cases_of, recorded
from holotrace.testing.builder import TraceBuilder


def launching_job(*, functions: int) -> holotrace.Trace:
    """Return steps of 1 ms with ten kernels of 40 µs, one every 100 µs, and `functions` Python functions."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        trace.step(number, begin, 1000)
        for place in range(10):
            launch = begin + 100 * place
            trace.operator("aten::relu", start_us=launch, duration_us=55)
            trace.kernel("relu", start_us=launch + 56, duration_us=40, launch_us=launch + 50)
        for place in range(functions):
            trace.python(
                f"train.py({place}): f", start_us=begin + 100 * (place % 10) + 57 + place // 10, duration_us=0.5
            )
    return trace.build()


def test_operators_that_run_while_the_device_idles_cost_this_time() -> None:
    """The device is idle for 60 % of the step; for most of this time, the host runs operators."""
    (case,) = cases_of(launching_job(functions=0), "launch_bound").values()

    assert case.value == pytest.approx(0.55, abs=0.06)


def test_a_recording_that_slows_the_host_does_not_count() -> None:
    """Recording 450 functions adds about 600 µs to each step, which explains all 600 µs of idle time."""
    job = launching_job(functions=450)

    assert not cases_of(job, "launch_bound")
    assert not cases_of(job, "python_overhead")
    (case,) = cases_of(job, "slow_recording").values()
    assert case.is_estimate


def test_a_few_functions_change_little() -> None:
    """Recording 20 functions adds only 24 µs, so the step is still launch-bound."""
    assert cases_of(launching_job(functions=20), "launch_bound")
    assert not cases_of(launching_job(functions=20), "slow_recording")


@pytest.mark.parametrize(
    ("launches", "said"), [(False, "the CPU computes aten::randn"), (True, "the host to launch work")]
)
def test_an_operator_that_computes_on_the_cpu_is_named(*, launches: bool, said: str) -> None:
    """If the longest operator launches nothing, the finding says that this operator runs on the CPU."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 1000 * number
        trace.step(number, begin, 1000)
        trace.operator("aten::randn", start_us=begin, duration_us=600)
        trace.operator("aten::mm", start_us=begin + 610, duration_us=20)
        trace.kernel("gemm", start_us=begin + 640, duration_us=350, launch_us=begin + (590 if launches else 615))
    findings = holotrace.diagnosis(trace.build()).per_finding.filter(pl.col("rule") == "launch_bound")

    assert said in findings["finding"][0]


@pytest.mark.parametrize(
    ("name", "is_bound"), [("small", True), ("images", False), ("training-compiled_graphs", False)]
)
def test_jobs_that_the_host_does_not_hold_up_without_the_profiler(name: str, *, is_bound: bool) -> None:
    """Of three recorded jobs, only `small` is reported.

    Without the profiler, the GPU is busy for 6 % of the step in `small`, and for at least 95 % in the other jobs.
    """
    trace = recorded(name)

    assert bool(cases_of(trace, "launch_bound") or cases_of(trace, "python_overhead")) is is_bound


@pytest.mark.parametrize(("first_kernel_us", "lost_us"), [(245, 85), (290, 100)])
def test_a_graph_break_costs_what_the_next_region_starts_late(first_kernel_us: int, lost_us: int) -> None:
    """The cost of a graph break is the time that the device is idle between the regions before and after it.

    It is at most 100 µs, which is the time that the host spends between the two regions.
    """
    trace = TraceBuilder()
    for number in range(3):
        begin = 500 * number
        trace.step(number, begin, 500)
        trace.operator("Torch-Compiled Region: 0/0", start_us=begin, duration_us=100)
        trace.kernel("fused_0", start_us=begin + 10, duration_us=150, launch_us=begin + 5)
        trace.operator("aten::sort", start_us=begin + 110, duration_us=80)
        trace.operator("Torch-Compiled Region: 1/0", start_us=begin + 200, duration_us=100)
        start = begin + first_kernel_us
        trace.kernel("fused_1", start_us=start, duration_us=500 - first_kernel_us, launch_us=start - 4)
    (case,) = cases_of(trace.build(), "graph_breaks").values()

    assert case.explained_ns == pytest.approx(1000 * lost_us, abs=10)


@pytest.mark.parametrize("compilation", ["dynamo", "torch/_dynamo/convert_frame.py(2601): __call__"])
def test_the_python_inside_a_compilation_belongs_to_it(compilation: str) -> None:
    """A CPU step of 500 µs spends 300 µs compiling, nearly all of this time in a Python function of torch.compile."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 500 * number
        trace.step(number, begin, 500).python("train.py(3): step", start_us=begin + 1, duration_us=498)
        add = trace.operator if compilation == "dynamo" else trace.python
        add(compilation, start_us=begin + 50, duration_us=300)
        trace.python("torch/_dynamo/symbolic_convert.py(2211): run", start_us=begin + 52, duration_us=296)
        trace.operator("aten::mm", start_us=begin + 400, duration_us=90)
    (case,) = cases_of(trace.build(), "recompilation").values()

    assert (case.explained_ns, case.count, case.place.source_line) == (300_000, 3, "train.py(3): step")


def test_what_the_recording_costs_comes_after_the_job() -> None:
    """Data loading is listed before the overhead of recording Python, although the overhead costs more time."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 1150 * number
        trace.step(number, begin, 1150)
        for place in range(10):
            launch = begin + 100 * place
            trace.operator("aten::relu", start_us=launch, duration_us=55)
            trace.kernel("relu", start_us=launch + 56, duration_us=30, launch_us=launch + 50)
            for function in range(45):
                trace.python("train.py(1): f", start_us=launch + 57 + function / 2, duration_us=0.5)
        trace.annotation("enumerate(DataLoader)#__next__", start_us=begin + 1000, duration_us=148)
    result = holotrace.diagnosis(trace.build())

    assert result.per_finding["rule"].to_list() == ["data_loading", "slow_recording"]
    assert "(about 212 µs, or 18.4 %, is profiler overhead)" in result.answer.split("; ")[0]
    assert "data loading" in result.answer.split("; ")[1]


@pytest.mark.parametrize(
    ("year", "region", "said"),
    [
        (2026, "Torch-Compiled Region: 0/0", "torch.compile already runs"),
        (2026, "aten::relu", "or fuse kernels with torch.compile"),
        (2021, "aten::relu", "Or update to PyTorch 2.0 or newer"),
    ],
)
def test_the_advice_knows_whether_torch_compile_runs_or_exists(year: int, region: str, said: str) -> None:
    """The advice depends on whether compiled regions run and on the year of the recording."""
    trace = TraceBuilder(base_time_ns=int(datetime(year, 6, 1, tzinfo=timezone.utc).timestamp()) * 1_000_000_000)
    for number in range(3):
        begin = 1000 * number
        trace.step(number, begin, 1000)
        for place in range(10):
            launch = begin + 100 * place
            trace.operator(region, start_us=launch, duration_us=55)
            trace.kernel("relu", start_us=launch + 56, duration_us=40, launch_us=launch + 50)
    findings = holotrace.diagnosis(trace.build()).per_finding.filter(rule="launch_bound")

    assert said in findings["advice"][0]


def test_a_graph_break_that_uses_up_the_lead_of_the_host_costs_idle_time_later() -> None:
    """The break takes 100 µs, so it explains only 100 of the 125 µs for which the device is idle later."""
    trace = TraceBuilder()
    for number in range(3):
        begin = 500 * number
        trace.step(number, begin, 500)
        trace.operator("Torch-Compiled Region: 0/0", start_us=begin, duration_us=100)
        trace.kernel("fused_0", start_us=begin + 10, duration_us=205, launch_us=begin + 5)
        trace.operator("Torch-Compiled Region: 1/0", start_us=begin + 200, duration_us=250)
        for start, end in ((240, 260), (300, 320), (380, 500)):
            trace.kernel("fused_1", start_us=begin + start, duration_us=end - start, launch_us=begin + start - 4)
    (case,) = cases_of(trace.build(), "graph_breaks").values()

    assert case.explained_ns == pytest.approx(100_000, abs=10)
