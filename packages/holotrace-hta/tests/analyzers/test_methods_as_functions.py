"""The classes of `hta.analyzers` return the same results as the methods of TraceAnalysis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import hta.common.trace
import hta.trace_analysis
from holotrace.testing.builder import TraceBuilder
from hta.analyzers.breakdown_analysis import BreakdownAnalysis
from hta.analyzers.communication_analysis import CommunicationAnalysis
from hta.analyzers.cuda_kernel_analysis import CudaKernelAnalysis
from hta.analyzers.cupti_counter_analysis import CuptiCounterAnalysis
from hta.analyzers.straggler import extract_iteration_info
from hta.analyzers.straggler_analysis import StragglerAnalysis
from hta.analyzers.trace_counters import TraceCounters
from hta.trace_analysis import TraceAnalysis


@pytest.fixture(scope="module")
def analyzer(tmp_path_factory) -> TraceAnalysis:
    """Open a job of two ranks and two steps, each with an operator, a kernel, a collective, a copy and annotations."""
    builder = TraceBuilder()
    for rank in (0, 1):
        builder.rank(rank)
        for step, start in ((1, 0), (2, 200)):
            builder.step(step, start, 190).operator("aten::mm", start_us=start + 1, duration_us=9)
            builder.annotation("forward", start_us=start + 1, duration_us=20)
            builder.gpu_annotation("forward", start_us=start + 20, duration_us=40)
            builder.kernel("gemm", start_us=start + 20, duration_us=30, launch_us=start + 2)
            builder.collective("allreduce", start_us=start + 40 + rank, duration_us=30 - rank, launch_us=start + 4)
            builder.copy("Memcpy DtoH", start_us=start + 80, duration_us=3, launch_us=start + 30)
    folder = tmp_path_factory.mktemp("job")
    builder.write(folder)
    return TraceAnalysis(trace_dir=str(folder))


def without_figure(**options: Any) -> dict[str, Any]:
    """Add options that disable figures."""
    return {"visualize": False, **options}


PAIRS: list[tuple[Callable[..., Any], str, dict[str, Any]]] = [
    (BreakdownAnalysis.get_temporal_breakdown, "get_temporal_breakdown", without_figure()),
    (
        BreakdownAnalysis.get_gpu_kernel_breakdown,
        "get_gpu_kernel_breakdown",
        without_figure(include_memory_kernels=True),
    ),
    (BreakdownAnalysis.get_gpu_kernels_with_user_annotations, "get_gpu_kernels_with_user_annotations", {"rank": 0}),
    (BreakdownAnalysis.get_gpu_user_annotation_breakdown, "get_gpu_user_annotation_breakdown", without_figure()),
    (CommunicationAnalysis.get_comm_comp_overlap, "get_comm_comp_overlap", without_figure()),
    (CudaKernelAnalysis.cuda_kernel_launch_stats, "get_cuda_kernel_launch_stats", without_figure()),
    (StragglerAnalysis.get_profiler_steps, "get_profiler_steps", {}),
    (StragglerAnalysis.get_potential_stragglers, "get_potential_stragglers", {}),
    (TraceCounters.get_queue_length_time_series, "get_queue_length_time_series", {}),
    (TraceCounters.get_queue_length_summary, "get_queue_length_summary", {}),
    (TraceCounters.get_memory_bw_time_series, "get_memory_bw_time_series", {}),
    (TraceCounters.get_memory_bw_summary, "get_memory_bw_summary", {}),
    (CuptiCounterAnalysis.get_counter_data_with_operators, "get_cupti_counter_data_with_operators", {}),
]


@pytest.mark.parametrize(("function", "method", "options"), PAIRS, ids=[method for _, method, _ in PAIRS])
def test_a_function_returns_the_answer_of_the_method(function, method, options, analyzer) -> None:
    """With the same options, a function of `hta.analyzers` and the method it wraps return the same result."""
    assert_equal(function(analyzer.t, **options), getattr(analyzer, method)(**options))


def test_functions_with_other_arguments_return_the_answer_of_the_method(analyzer, tmp_path) -> None:
    """A function whose arguments differ from its method's (one rank instead of a list) returns the same result."""
    answer = BreakdownAnalysis.get_idle_time_breakdown(analyzer.t, 30, rank=1, visualize=False)
    assert_equal(answer, analyzer.get_idle_time_breakdown([1], visualize=False))
    options = {"operator_name": "aten::mm", "output_dir": str(tmp_path), "min_pattern_len": 1, "visualize": False}
    answer = CudaKernelAnalysis.get_frequent_cuda_kernel_sequences(analyzer.t, **options)
    assert_equal(answer, analyzer.get_frequent_cuda_kernel_sequences(**options))
    series = analyzer.get_queue_length_time_series()
    assert_equal(
        TraceCounters.get_time_spent_blocked_on_full_queue(analyzer.t, series, 1),
        analyzer.get_time_spent_blocked_on_full_queue(series, 1),
    )
    assert_equal(TraceCounters.get_queue_length_summary_from_time_series(series), analyzer.get_queue_length_summary())
    assert_equal(CudaKernelAnalysis.get_aten_op_kernels_and_delay(analyzer.t), analyzer.get_aten_op_kernels_and_delay())


def test_the_steps_of_all_ranks(analyzer) -> None:
    """`extract_iteration_info` omits the last step of each rank, as `analyzer.t` does."""
    assert extract_iteration_info(analyzer.t).to_numpy().tolist() == [[0, 1, 0, 190, 190], [1, 1, 0, 190, 190]]


def test_names_that_hta_modules_import_can_be_imported_from_them() -> None:
    """Names can be imported from HTA modules that only re-export them; unknown names raise AttributeError."""
    assert hta.trace_analysis.Trace is hta.common.trace.Trace
    assert hta.trace_analysis.BreakdownAnalysis is BreakdownAnalysis
    assert hta.common.trace.get_trace_files.__module__ == "hta.common.trace_file"
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = hta.trace_analysis.nothing_like_it


def assert_equal(actual: Any, expected: Any) -> None:
    """Compare answers that contain frames."""
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(actual, expected)
    elif isinstance(expected, dict):
        assert_equal(list(actual.values()), list(expected.values()))
        assert list(actual) == list(expected)
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_equal(one, other)
    else:
        assert actual == expected
