"""Every analysis, every page and every method of HTA's interface works on the small set of real traces."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import holotrace
from holotrace.catalogue import ANALYSES
from holotrace.figures import figure_of
from holotrace.questions.question import Analysis
from hta.memory_analysis import MemoryAnalysis
from hta.trace_analysis import TraceAnalysis
from hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
from matrices import slow_except
from reference_data import BESIDE_THE_REPOSITORY, IN_THE_REPOSITORY, VARIABLES, SmallSet, folder_of, small_folder_of

TRACES = IN_THE_REPOSITORY / "traces"
ANSWERS = small_folder_of("goldens") / "hta" / "_misc"
SMALL = SmallSet(TRACES)
MOST_BYTES = 10_500_000

RECORDINGS = {
    "compiled_regions": "../../../examples/gpu/traces/compiled",
    "cupti_counters": "cupti",
    "inference": "../../../examples/gpu/traces/generation",
    "memory_timeline": "ddp_gloo_4rank",
    "modules": "ddp_gloo_4rank",
    "operator_memory": "ddp_gloo_4rank",
    "source_lines": "ddp_gloo_4rank",
}
"""{analysis: recording}, for analyses that do not use the default recording."""

MOST_NEED = "two_rank_128"


def recording_for(name: str) -> Path:
    """Return the folder of the recording to use for an analysis."""
    return TRACES / RECORDINGS.get(name, MOST_NEED)


@pytest.mark.parametrize("entry", ANALYSES, ids=lambda entry: entry.name)
def test_every_analysis_answers_on_a_real_recording(entry: Analysis) -> None:
    """On a real recording, the first table of every analysis has rows and its figure has data."""
    result = entry.compute(holotrace.open_trace(recording_for(entry.name), cache=False))

    assert entry.views[0].table(result).height > 0
    assert len(figure_of(entry.name, result).data) > 0


Call = Callable[[TraceAnalysis, str], object]
OF_DDP = "ddp_gloo_4rank"

CALLS: dict[str, tuple[str, Call]] = {
    "critical_path_analysis": (MOST_NEED, lambda t, _: t.critical_path_analysis(0, "ProfilerStep", 0)[0].nodes),
    "dashboard": (MOST_NEED, lambda t, _: t.dashboard().figures),
    "generate_trace_with_counters": (MOST_NEED, lambda t, out: t.generate_trace_with_counters(output_dir=out)),
    "get_cupti_counter_data_with_operators": ("cupti", lambda t, _: t.get_cupti_counter_data_with_operators()),
    "get_frequent_cuda_kernel_sequences": (
        "critical_path/simple_add",
        lambda t, out: t.get_frequent_cuda_kernel_sequences("aten::", out),
    ),
    "get_gpu_kernels_with_user_annotations": (MOST_NEED, lambda t, _: t.get_gpu_kernels_with_user_annotations(0)),
    "get_memory_curve": (OF_DDP, lambda t, _: t.get_memory_curve(visualize=False)),
    "get_memory_events": (OF_DDP, lambda t, _: t.get_memory_events()),
    "get_memory_statistics": (OF_DDP, lambda t, _: t.get_memory_statistics()),
    "get_module_summary": (OF_DDP, lambda t, _: t.get_module_summary(visualize=False)),
    "get_potential_stragglers": (OF_DDP, lambda t, _: t.get_potential_stragglers()),
    "get_queue_length_summary_from_time_series": (
        MOST_NEED,
        lambda t, _: t.get_queue_length_summary_from_time_series(t.get_queue_length_time_series()),
    ),
    "get_time_spent_blocked_on_full_queue": (
        MOST_NEED,
        lambda t, _: t.get_time_spent_blocked_on_full_queue(t.get_queue_length_time_series(), max_queue_length=1),
    ),
    "overlay_critical_path_analysis": (
        MOST_NEED,
        lambda t, out: t.overlay_critical_path_analysis(0, t.critical_path_analysis(0, "ProfilerStep", 0)[0], out),
    ),
}
"""Methods that need arguments or another recording; all others are called without arguments."""

METHODS = [name for name, _ in inspect.getmembers(TraceAnalysis, inspect.isfunction) if not name.startswith("_")]


@pytest.mark.parametrize("name", slow_except(METHODS, METHODS[::3]))
def test_every_method_of_hta_works_on_a_real_recording(name, tmp_path) -> None:
    """Every method of HTA's TraceAnalysis returns a non-empty result on a real recording."""
    folder, call = CALLS.get(name, (MOST_NEED, lambda t, _: without_figures(getattr(t, name))))

    assert holds_something(call(TraceAnalysis(trace_dir=str(TRACES / folder)), str(tmp_path)))


def without_figures(method: Callable[..., object]) -> object:
    """Call a method without arguments and without displaying figures."""
    return method(**({"visualize": False} if "visualize" in inspect.signature(method).parameters else {}))


def holds_something(answer: object) -> bool:
    """Return whether a result is not empty; of several results, only the first is checked."""
    parts = answer.values() if isinstance(answer, dict) else answer if isinstance(answer, tuple | list) else [answer]
    first = next(iter(parts), None)
    return len(first) > 0 if isinstance(first, pd.DataFrame | dict | str) else first is not None


@pytest.fixture
def before_and_after() -> tuple[LabeledTrace, LabeledTrace]:
    """Return two traces, recorded before and after a change of the code."""
    control, test = (LabeledTrace(side, trace_dir=str(TRACES / "trace_compare" / side)) for side in ("base", "test"))
    return control, test


@pytest.mark.parametrize("length", ["long", "short"])
@pytest.mark.parametrize("device", DeviceType, ids=lambda device: device.name)
def test_a_comparison_of_real_recordings_equals_htas(before_and_after, device, length) -> None:
    """`compare_traces` returns HTA's names, counts, durations and differences."""
    labelled = [
        LabeledTrace(label, t=analyzer.t) for label, analyzer in zip(("Control", "Test"), before_and_after, strict=True)
    ]
    ours = TraceDiff.compare_traces(*labelled, device_type=device, use_short_name=length == "short")
    theirs = pd.read_csv(ANSWERS / f"compare_traces.compare.{device.name}.{length}.csv", index_col=0)

    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False)


@pytest.mark.parametrize("device", DeviceType, ids=lambda device: device.name)
def test_the_changes_of_real_recordings_equal_htas(before_and_after, device) -> None:
    """`ops_diff` lists the same added, deleted, increased, decreased and unchanged operators as HTA."""
    theirs = json.loads((ANSWERS / f"ops_diff.compare.{device.name}.json").read_text(encoding="utf-8"))
    ours = TraceDiff.ops_diff(*before_and_after, device_type=device)

    assert {change: sorted(names) for change, names in ours.items()} == {
        change: sorted(names) for change, names in theirs.items()
    }


def test_a_summary_of_operators_answers_on_a_real_recording(before_and_after) -> None:
    """`get_ops_summary` returns rows for a real recording."""
    control, _ = before_and_after

    assert len(control.get_ops_summary(control.extract_ops())) > 0


def test_the_memory_timeline_answers_on_a_real_recording() -> None:
    """`MemoryAnalysis` reads a memory timeline exported by PyTorch; its peak is above 0."""
    timeline = MemoryAnalysis(str(TRACES / "memory_timeline" / "memory_timeline.raw.gz"))

    assert len(timeline.get_memory_timeline()) > 0
    assert timeline.get_peak()["Total"] > 0


def test_the_small_set_is_small() -> None:
    """The files of the small set together are no larger than MOST_BYTES."""
    sizes = [path.lstat().st_size for path in IN_THE_REPOSITORY.rglob("*") if path.is_symlink() or path.is_file()]

    assert sum(sizes) <= MOST_BYTES


def test_a_recording_that_only_the_large_set_has_skips_the_test() -> None:
    """Asking for a missing recording skips the test; the reason names the environment variables for the large set."""
    for ask in (lambda: SMALL / "no_such_job", lambda: next(SMALL.glob("no_such_job/*/rank0*"))):
        with pytest.raises(
            pytest.skip.Exception, match=r"^traces/no_such_job.* HOLOTRACE_REAL_TRACES and HOLOTRACE_GOLDENS"
        ):
            ask()


def test_a_file_that_a_recording_lacks_is_an_error() -> None:
    """A missing file in an existing recording is an error, because a recording must be complete."""
    assert not (SMALL / "dlrm_8rank" / "rank9.json.gz").exists()
    assert list(SMALL.glob("dlrm_8rank/rank9.*")) == []


@pytest.mark.parametrize("kind", VARIABLES)
def test_the_large_set_comes_first(kind, tmp_path, monkeypatch) -> None:
    """The environment variable's folder is tried first, then the set beside the repository, then the small set."""
    monkeypatch.setenv(VARIABLES[kind], str(tmp_path))
    assert folder_of(kind) == tmp_path
    monkeypatch.setenv(VARIABLES[kind], str(tmp_path / "missing"))
    assert folder_of(kind) == small_folder_of(kind)
    monkeypatch.delenv(VARIABLES[kind])
    beside = BESIDE_THE_REPOSITORY / kind
    assert folder_of(kind) == (beside if beside.is_dir() else small_folder_of(kind))
