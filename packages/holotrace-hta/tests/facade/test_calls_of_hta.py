"""holotrace-hta answers every call that was recorded with HTA on the real traces, even where HTA failed.

`_calls.json` beside HTA's results names the calls of each trace: `method.variant.rank0`, with status `ok`, `none` (HTA
returned None) or `error`. `CALLS` makes the same calls with holotrace-hta; `NOT_OFFERED` lists calls without a counterpart.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from holotrace.errors import HolotraceError
from hta.analyzers.straggler import find_stragglers_with_late_start_comm_kernels
from hta.common.timeline import prepare_timeline_events
from hta.common.trace_call_graph import CallGraph
from hta.trace_analysis import TraceAnalysis
from hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
from hta.utils.validate_trace import validate_trace_format
from hta_goldens import FILES

FOLDERS = (
    *FILES,
    "amd_trace__last",
    "df_index_resolver__last",
    "ns_resolution_trace__last",
    "trace_diff_control__last",
    "trace_diff_test__last",
    "trace_filter__last",
    "amd_trace__nsfull",
    "mtia_inference_trace__nsfull",
    "ns_resolution_trace__nsfull",
    "triton_example__nsfull",
)
"""Folders of HTA's results: results in `__last` include the last step; those in `__nsfull` have times that HTA
did not round."""

REPEATING = (
    "df_index_resolver",
    "ns_resolution_trace",
    "param_dlrm",
    "trace_diff_control",
    "trace_diff_pair",
    "trace_diff_test",
)
"""Long traces that only the slow tests open, because the quick tests make the same calls on shorter traces."""

slow_where_repeating = [
    pytest.param(name, marks=pytest.mark.slow) if name in REPEATING or "__" in name else name for name in FOLDERS
]

NOT_OFFERED = {
    r"_env": "this entry records the versions that HTA ran with; it is not a call",
    r"critical_path_analysis\..*": "tests/facade/graphs/test_critical_path_goldens.py makes this call",
    r"call_graph_legacy": "HTA has two classes of call graphs; CALLS tests only the newer class",
}
"""Calls without a counterpart, and why."""

NOT_OFFERED_OR_ELSEWHERE = {
    r"(compare_traces|ops_diff)\.compare\..*": "tests/input/test_real_input.py makes this call on traces of the repository",
    r"(compare_traces|ops_diff)\.h100_mi300_qwen\..*": "the test data does not include these traces",
    r"memory_timeline": "not a TraceDiff call; see tests/test_memory_analysis.py",
    r"names": "not a TraceDiff call; see tests/facade/test_facade_names.py",
    r"filters\..*": "not a TraceDiff call; see tests/common/test_trace_filter.py",
    r"correlate_execution_trace": "not a TraceDiff call; see tests/ingest/test_execution_trace.py",
    r"(parser_config|parse_all_args\..*)": "not a TraceDiff call; see the tests of ParserConfig and arg_columns",
    r"backend\..*": "there is only one parser",
}
"""Calls that this test omits, and why: other tests make them, or no test can."""

WITH_UNKNOWN_RANK_OR_STEP = ("compare_traces.bad_rank", "compare_traces.bad_iter")
"""Calls with a rank or step that the trace lacks; the error lists the ranks or steps that exist."""

Job = tuple[TraceAnalysis, list[int], Path]
"""The analyzer, the ranks to pass to a call, and a folder to write to."""


def series(job: Job) -> dict[int, pd.DataFrame]:
    """Return the queue lengths; other calls take this result as an argument."""
    return job[0].get_queue_length_time_series(job[1])


def idle(job: Job, **options: Any) -> object:
    """Return the idle times, without showing a figure."""
    return job[0].get_idle_time_breakdown(visualize=False, **options)


def launch_stats(job: Job, **options: Any) -> object:
    """Return the launches, without showing a figure."""
    return job[0].get_cuda_kernel_launch_stats(visualize=False, **options)


def kernels(job: Job, **options: Any) -> object:
    """Return the kernel breakdown, without showing a figure."""
    return job[0].get_gpu_kernel_breakdown(visualize=False, **options)


def annotations(job: Job, *, gpu: bool, **options: Any) -> object:
    """Return the annotation breakdown, without showing a figure."""
    return job[0].get_gpu_user_annotation_breakdown(gpu, visualize=False, **options)


def decoded(job: Job) -> object:
    """Return the frames with decoded names and categories."""
    job[0].t.decode_symbol_ids()
    return job[0].t.get_all_traces()


def trace_info(job: Job) -> object:
    """Return start, metadata, steps and duration of each rank, from `analyzer.t`."""
    view = job[0].t
    return [
        (view.min_ts, view.meta_data[rank], view.get_iterations(rank), view.get_trace_duration(rank))
        for rank in view.get_ranks()
    ]


def sequences(operator: str) -> Callable[[Job], object]:
    """Return a function that requests the kernel sequences of an operator."""
    return lambda job: job[0].get_frequent_cuda_kernel_sequences(operator, str(job[2]), rank=job[1][0])


def blocked(**options: int) -> Callable[[Job], object]:
    """Return a function that requests the time spent blocked on a full queue; `options` may limit the queue."""
    return lambda job: job[0].get_time_spent_blocked_on_full_queue(series(job), **options)


ALLOWED = {"num_kernels": 5, "allowlist_patterns": ["step", "Optimizer"]}

CALLS: Mapping[str, Callable[[Job], object]] = {
    "load": lambda job: job[0].t.is_parsed,
    "get_trace_files": lambda job: job[0].t.trace_files,
    "trace_info": trace_info,
    "trace_df": decoded,
    "get_trace_start_unixtime_ns": lambda job: [job[0].t.get_trace_start_unixtime_ns(rank) for rank in job[1]],
    "get_profiler_steps": lambda job: job[0].get_profiler_steps(),
    "get_comm_comp_overlap": lambda job: job[0].get_comm_comp_overlap(visualize=False),
    "get_temporal_breakdown": lambda job: job[0].get_temporal_breakdown(visualize=False),
    "get_gpu_kernel_breakdown": kernels,
    "get_gpu_kernel_breakdown.all": lambda job: kernels(job, duration_ratio=1.0, num_kernels=1_000_000),
    "get_gpu_kernel_breakdown.n3_r05_nomem": lambda job: kernels(
        job, duration_ratio=0.5, num_kernels=3, include_memory_kernels=False
    ),
    "get_idle_time_breakdown": lambda job: idle(job, ranks=job[1], show_idle_interval_stats=True),
    "get_idle_time_breakdown.allranks": lambda job: idle(job, ranks=job[1], show_idle_interval_stats=True),
    "get_idle_time_breakdown.d1000": lambda job: idle(job, ranks=job[1], consecutive_kernel_delay=1000),
    "get_idle_time_breakdown.defaults": idle,
    "get_cuda_kernel_launch_stats": lambda job: launch_stats(job, ranks=job[1]),
    "get_cuda_kernel_launch_stats.nomem": lambda job: launch_stats(job, ranks=job[1], include_memory_events=False),
    "get_cuda_kernel_launch_stats.defaults": launch_stats,
    "get_queue_length_time_series": series,
    "get_queue_length_summary": lambda job: job[0].get_queue_length_summary(job[1]),
    "get_queue_length_summary_from_time_series": lambda job: job[0].get_queue_length_summary_from_time_series(
        series(job)
    ),
    "get_time_spent_blocked_on_full_queue": blocked(),
    **{f"get_time_spent_blocked_on_full_queue.max{limit}": blocked(max_queue_length=limit) for limit in (1, 10, 100)},
    "get_memory_bw_time_series": lambda job: job[0].get_memory_bw_time_series(job[1]),
    "get_memory_bw_summary": lambda job: job[0].get_memory_bw_summary(job[1]),
    "get_potential_stragglers.n1": lambda job: job[0].get_potential_stragglers(num_candidates=1),
    "get_potential_stragglers.n2": lambda job: job[0].get_potential_stragglers(num_candidates=2),
    "straggler_metric": lambda job: job[0].get_potential_stragglers(
        straggler_identification_impl=find_stragglers_with_late_start_comm_kernels
    ),
    "get_gpu_user_annotation_breakdown.gpu": lambda job: annotations(job, gpu=True),
    "get_gpu_user_annotation_breakdown.gpu.n5_allow": lambda job: annotations(job, gpu=True, **ALLOWED),
    "get_gpu_user_annotation_breakdown.cpu": lambda job: annotations(job, gpu=False),
    "get_gpu_user_annotation_breakdown.cpu.n5_allow": lambda job: annotations(job, gpu=False, **ALLOWED),
    "get_gpu_kernels_with_user_annotations": lambda job: job[0].get_gpu_kernels_with_user_annotations(
        job[1][0], shorten_names=False
    ),
    "get_gpu_kernels_with_user_annotations.short": lambda job: job[0].get_gpu_kernels_with_user_annotations(job[1][0]),
    "get_aten_op_kernels_and_delay": lambda job: job[0].get_aten_op_kernels_and_delay(job[1]),
    "get_aten_op_kernels_and_delay.sorted": lambda job: job[0].get_aten_op_kernels_and_delay(
        job[1], ["avg_runtime_delay", "occurrence_count"]
    ),
    **{
        f"get_frequent_cuda_kernel_sequences.aten_{name}": sequences(f"aten::{name}")
        for name in ("linear", "addmm", "mm", "copy_", "relu_", "conv2d", "clone", "embedding_bag")
    },
    "call_graph": lambda job: CallGraph(job[0].t, job[1]),
    "timeline_events": lambda job: [
        prepare_timeline_events(frame, symbol_table=job[0].t.symbol_table) for frame in job[0].t.traces.values()
    ],
    **{
        f"validate_trace_format.{level}": lambda job, level=level: validate_trace_format(
            job[0].t.trace_files[job[1][0]], level
        )
        for level in ("minimal", "standard", "complete")
    },
    "get_cupti_counter_data_with_operators": lambda job: job[0].get_cupti_counter_data_with_operators(job[1]),
    "generate_trace_with_counters": lambda job: job[0].generate_trace_with_counters(
        ranks=job[1], output_dir=str(job[2]), overwrite=True
    ),
}

Pair = tuple[LabeledTrace, LabeledTrace]


def compared(device: DeviceType, *, short: bool) -> Callable[[Pair], object]:
    """Return a function that compares the events of two traces on one type of device, by short or long names."""
    return lambda pair: TraceDiff.compare_traces(*pair, device_type=device, use_short_name=short)


COMPARISONS: Mapping[str, Callable[[Pair], object]] = {
    **{
        f"compare_traces.diff.{device.name}.{length}": compared(device, short=length == "short")
        for device in DeviceType
        for length in ("long", "short")
    },
    **{
        f"ops_diff.diff.{device.name}": lambda pair, device=device: TraceDiff.ops_diff(*pair, device_type=device)
        for device in DeviceType
    },
    "compare_traces.diff.iters": lambda pair: TraceDiff.compare_traces(
        *pair, control_iteration=[1010, 1011], test_iteration=1012
    ),
    "compare_traces.bad_rank": lambda pair: TraceDiff.compare_traces(*pair, control_rank=99),
    "compare_traces.bad_iter": lambda pair: TraceDiff.compare_traces(*pair, control_iteration=1),
    "compare_traces.same_label": lambda pair: TraceDiff.compare_traces(
        *(LabeledTrace("x", t=side.trace) for side in pair)
    ),
    "extract_ops_ranks": lambda pair: pair[0].extract_ops(rank=pair[0].ranks()),
}


@pytest.mark.parametrize("folder", slow_where_repeating)
def test_calls_on_a_trace_answer_as_in_hta(real_traces, goldens, tmp_path, folder) -> None:
    """Every call returns an answer; where HTA has no answer, our tables have rows or say why they are empty."""
    calls = calls_of(goldens / "hta" / folder)
    name, _, suffix = folder.partition("__")
    analyzer = opened(real_traces, name, keep_last=suffix == "last")
    failures = [
        message
        for call, status in calls.items()
        if not_listed(call, NOT_OFFERED)
        and (message := failure(CALLS[method(call)], (analyzer, ranks_of(call, analyzer), tmp_path), call, status))
    ]
    assert not failures, "\n".join(failures)


def test_calls_that_compare_traces_answer_as_in_hta(real_traces, goldens) -> None:
    """Every comparison returns an answer; an unknown rank or step raises an error."""
    calls = calls_of(goldens / "hta" / "_misc")
    analyzers = (opened(real_traces, f"trace_diff_{side}", keep_last=True) for side in ("control", "test"))
    pair = tuple(LabeledTrace(label, t=analyzer.t) for label, analyzer in zip(("ctl", "tst"), analyzers, strict=True))
    failures = [
        message
        for call, status in calls.items()
        if not_listed(call, NOT_OFFERED_OR_ELSEWHERE) and (message := failure(COMPARISONS[call], pair, call, status))
    ]
    assert not failures, "\n".join(failures)


def calls_of(folder: Path) -> dict[str, str]:
    """Return {call: status} for the recorded calls in a folder."""
    (path,) = folder.glob("_calls.json*")
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return {call: answer["status"] for call, answer in json.loads(text).items()}


@cache
def opened(real_traces: Path, name: str, *, keep_last: bool) -> TraceAnalysis:
    """Open a trace; all calls that are tested on this trace share it."""
    files = {rank: str(next(real_traces.glob(pattern))) for rank, pattern in FILES[name].items()}
    return TraceAnalysis(files, include_last_profiler_step=keep_last)


def not_listed(call: str, reasons: Mapping[str, str]) -> bool:
    """Return whether no pattern in `reasons` matches the call."""
    return not any(re.fullmatch(pattern, call) for pattern in reasons)


def method(call: str) -> str:
    """Return the name of a call without the rank at its end."""
    return re.sub(r"\.rank\d+$", "", call)


def ranks_of(call: str, analyzer: TraceAnalysis) -> list[int]:
    """Return the rank at the end of a call's name, or all ranks if the name has none."""
    match = re.search(r"\.rank(\d+)$", call)
    return [int(match[1])] if match else analyzer.t.get_ranks()


def failure(make: Callable[[Any], object], given: object, call: str, status: str) -> str:
    """Make a call; return the problem as text, or "" if the call succeeded."""
    try:
        answer = make(given)
    except HolotraceError as error:
        return "" if call in WITH_UNKNOWN_RANK_OR_STEP and str(error) else f"{call}: {error!r}"
    except Exception as error:  # noqa: BLE001 -- the test reports all failures, not only the first
        return f"{call}: {type(error).__name__} instead of a HolotraceError: {error}"
    if answer is None:
        return f"{call}: no answer"
    return f"{call}: no rows and no reason" if status != "ok" and any(map(is_silent, tables_in(answer))) else ""


def tables_in(answer: object) -> list[pd.DataFrame]:
    """Return the frames of an answer: a single frame, or the frames in a tuple or a dict."""
    parts = answer.values() if isinstance(answer, dict) else answer if isinstance(answer, tuple) else [answer]
    return [part for part in parts if isinstance(part, pd.DataFrame)]


def is_silent(frame: pd.DataFrame) -> bool:
    """Return whether a frame is empty and its `attrs` give no reason for that."""
    return frame.empty and not frame.attrs.get("reason")
