"""These tests compute the numbers on the docs page that lists the differences from HTA.

The page's tables have the columns quirk, example, HTA, here and because. `EXAMPLES` maps each example to two
answers to the same call: the one recorded from HTA, and holotrace's. For the examples in `ASKED_BY_HAND` and `QUIRKS`,
HTA was run manually, and the tests contain its answers; the traces of `QUIRKS` are made up.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta.trace_analysis import TraceAnalysis
from hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
from hta_goldens import FILES
from hta_quirks import QUIRKS
from pages import ROOT

PAGE = ROOT / "docs" / "explanation" / "differences_from_hta.md"
CELLS = 5


class Htas:
    """HTA's answers on one trace."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def table(self, call: str) -> pd.DataFrame:
        """Return the table that HTA returned for a call."""
        (path,) = (file for file in self._folder.glob(f"{call}.csv*"))
        return pd.read_csv(path, index_col=0)

    def json(self, call: str) -> Any:
        """Return HTA's result for a call that does not return a table."""
        return json.loads((self._folder / f"{call}.json").read_text(encoding="utf-8"))

    def failure(self, call: str) -> str:
        """Return, in backticks, the class of the error that HTA raised for a call, or `None` if HTA returned None."""
        (path,) = self._folder.glob("_calls.json*")
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        outcome = json.loads(content)[call]
        return "`None`" if outcome["status"] == "none" else f"`{outcome['error'].partition(':')[0]}`"


Theirs = Callable[[Htas], str]
Ours = Callable[[TraceAnalysis], str]


def us(value: float) -> str:
    """Format microseconds as on the page: two decimals for fractional values below 100 µs, otherwise no decimals."""
    return f"{value:,.0f} µs" if abs(value) >= 100 or float(value).is_integer() else f"{value:,.2f} µs"


def gb_per_s(value: float) -> str:
    """Format a bandwidth as on the page."""
    return f"{value:.1e} GB/s" if value < 1e-3 else f"{value:.4g} GB/s"


def rows(frame: pd.DataFrame) -> str:
    """Return the number of rows of a table, as text."""
    return f"{len(frame):,} row" + "s" * (len(frame) != 1)


def temporal(column: str) -> tuple[Theirs, Ours]:
    """Compare a column of the temporal breakdown of the first rank."""
    return (
        lambda htas: us(htas.table("get_temporal_breakdown")[column].iloc[0]),
        lambda facade: us(facade.get_temporal_breakdown(visualize=False)[column].iloc[0]),
    )


def all_kernels(facade: TraceAnalysis) -> pd.DataFrame:
    """Return the kernel breakdown with a row for every kernel, so no kernels are grouped as `others`."""
    return facade.get_gpu_kernel_breakdown(visualize=False, duration_ratio=1.0, num_kernels=1_000_000)[1]


def kernel_time() -> tuple[Theirs, Ours]:
    """Compare the total time of all kernels."""
    return (
        lambda htas: us(htas.table("get_gpu_kernel_breakdown.all.1")["sum (us)"].sum()),
        lambda facade: us(all_kernels(facade)["sum (us)"].sum()),
    )


def computing(frame: pd.DataFrame, *, others: bool) -> pd.Series[Any]:
    """Return a row of rank 0's computation kernels.

    With `others`, this is the row named "others"; without, it is the kernel with the largest sum.
    """
    chosen = frame[(frame["rank"] == 0) & (frame["kernel_type"] == "COMPUTATION")]
    chosen = chosen[(chosen["name"] == "others") == others]
    return chosen.sort_values("sum (us)", ascending=False, kind="stable").iloc[0]


def grouped(*, others: bool) -> tuple[Theirs, Ours]:
    """Compare a mean duration in the kernel breakdown; the tools' own defaults decide which kernels are in `others`."""
    return (
        lambda htas: us(computing(htas.table("get_gpu_kernel_breakdown.1"), others=others)["mean (us)"]),
        lambda facade: us(
            computing(facade.get_gpu_kernel_breakdown(visualize=False)[1], others=others)["mean (us)"]
        ),
    )  # fmt: skip


def mean_backward(frame: pd.DataFrame) -> str:
    """Return the mean duration of backward passes."""
    return us(frame.set_index("name").loc["## backward ##", "mean (us)"])


def idle(rank: int, summary: Callable[[pd.DataFrame], str]) -> tuple[Theirs, Ours]:
    """Compare idle times of a rank."""
    return (
        lambda htas: summary(htas.table(f"get_idle_time_breakdown.rank{rank}.0")),
        lambda facade: summary(facade.get_idle_time_breakdown([rank], visualize=False)[0]),
    )


def host_wait(frame: pd.DataFrame) -> str:
    """Return the idle time of the category `host_wait` on all streams."""
    return us(frame.loc[frame["idle_category"] == "host_wait", "idle_time"].sum())


def shortest_gap(rank: int) -> tuple[Theirs, Ours]:
    """Compare the shortest idle interval of a rank."""
    return (
        lambda htas: us(htas.table(f"get_idle_time_breakdown.rank{rank}.1")["min"].min()),
        lambda facade: us(
            facade.get_idle_time_breakdown([rank], visualize=False, show_idle_interval_stats=True)[1]["min"].min()
        ),
    )


def launch_rows(rank: int = 0) -> tuple[Theirs, Ours]:
    """Compare the number of rows in the launch statistics of a rank."""
    return (
        lambda htas: rows(htas.table(f"get_cuda_kernel_launch_stats.rank{rank}")),
        lambda facade: rows(facade.get_cuda_kernel_launch_stats([rank], visualize=False)[rank]),
    )


def aten_calls(frame: pd.DataFrame) -> str:
    """Return the number of ATen operator calls that launch kernels."""
    return f"{frame.loc[frame['aten_op_name'].str.startswith('aten::'), 'occurrence_count'].sum():,} calls"


def queue(column: str) -> tuple[Theirs, Ours]:
    """Compare a statistic of the queue length of stream 7 between HTA and holotrace."""
    return (
        lambda htas: (
            f"{htas.table('get_queue_length_summary').set_index('stream').loc[7, f'queue_length/{column}']:,.0f}"
        ),
        lambda facade: f"{facade.get_queue_length_summary().loc[(1, 7), ('queue_length', column)]:,.0f}",
    )


def copies(rank: int, column: str) -> tuple[Theirs, Ours]:
    """Compare a statistic of the bandwidth of copies within a device."""

    def shown(value: float) -> str:
        return f"{value:,.0f} points" if column == "count" else gb_per_s(value)

    def theirs(htas: Htas) -> str:
        table = htas.table("get_memory_bw_summary").set_index("name")
        return shown(table.loc["Memcpy DtoD", f"memory_bw_gbps/{column}"])

    return (
        theirs,
        lambda facade: shown(facade.get_memory_bw_summary().loc[(rank, "Memcpy DtoD"), ("memory_bw_gbps", column)]),
    )


def backward(frame: pd.DataFrame) -> str:
    """Return the number of kernels inside the annotation of the backward pass."""
    return f"{(frame['s_user_annotation'] == '## backward ##').sum()} kernels"


def stragglers(count: int) -> Ours:
    """Return a function that returns, as text, the ranks that `get_potential_stragglers` finds."""
    return lambda facade: str(facade.get_potential_stragglers(num_candidates=count))


def blocked(facade: TraceAnalysis) -> pd.DataFrame:
    """Return, for each stream, the time in which launches were blocked by a full queue."""
    return facade.get_time_spent_blocked_on_full_queue(facade.get_queue_length_time_series(), 1)


def failed(call: str) -> Theirs:
    """Return a function that makes this call to HTA and returns the error."""
    return lambda htas: htas.failure(call)


EXAMPLES: dict[str, tuple[str, tuple[Theirs, Ours]]] = {
    "ns_resolution: time of all kernels": ("ns_resolution_trace", kernel_time()),
    "ns_resolution: idle time": ("ns_resolution_trace", temporal("idle_time(us)")),
    "ns_resolution: sequences of `aten::copy_`": (
        "ns_resolution_trace",
        (
            failed("get_frequent_cuda_kernel_sequences.aten_copy_.rank0"),
            lambda facade: rows(facade.get_frequent_cuda_kernel_sequences("aten::copy_", ".")) + " and a reason",
        ),
    ),
    "triton: `t.get_trace_duration()`": (
        "triton_example",
        (
            lambda htas: us(htas.json("trace_info")["duration"]["0"]),
            lambda facade: us(facade.t.get_trace_duration()),
        ),
    ),
    "single_v100: `get_idle_time_breakdown()`": (
        "df_index_resolver",
        (
            failed("get_idle_time_breakdown.defaults"),
            lambda facade: rows(facade.get_idle_time_breakdown(visualize=False)[0]),
        ),
    ),
    "alexnet: non-compute time": ("critical_path_alexnet", temporal("non_compute_time(us)")),
    "alexnet: time from first to last work": ("critical_path_alexnet", temporal("kernel_time(us)")),
    "triton: compute time": ("triton_example", temporal("compute_time(us)")),
    "mtia_inference: compute time": ("mtia_inference_trace", temporal("compute_time(us)")),
    "diff/test: time of all kernels": ("trace_diff_test", kernel_time()),
    "dlrm_8rank, rank 0: mean of the longest computation kernel": ("param_dlrm", grouped(others=False)),
    "dlrm_8rank, rank 0: mean of `others`": ("param_dlrm", grouped(others=True)),
    "diff/test: mean of `## backward ##`, `num_kernels=5`": (
        "trace_diff_test",
        (
            lambda htas: mean_backward(htas.table("get_gpu_user_annotation_breakdown.cpu.n5_allow")),
            lambda facade: mean_backward(
                facade.get_gpu_user_annotation_breakdown(False, visualize=False, num_kernels=5)  # noqa: FBT003
            ),
        ),
    ),
    "single_v100: `host_wait`": ("df_index_resolver", idle(1, host_wait)),
    "amd_mi250: `host_wait`": ("amd_trace", idle(0, host_wait)),
    "diff/test: shortest idle interval": ("trace_diff_test", shortest_gap(1)),
    "event_sync: categories listed": ("critical_path_cuda_event_sync", idle(0, rows)),
    "amd_mi250: `get_cuda_kernel_launch_stats()`": ("amd_trace", launch_rows()),
    "triton: `get_cuda_kernel_launch_stats()`": ("triton_example", launch_rows()),
    "mtia_inference: `get_cuda_kernel_launch_stats()`": ("mtia_inference_trace", launch_rows()),
    "diff/test: `get_cuda_kernel_launch_stats()`": ("trace_diff_test", launch_rows(1)),
    "two_rank_128, rank 1: calls of `aten::` operators": (
        "trace_filter",
        (
            lambda htas: aten_calls(htas.table("get_aten_op_kernels_and_delay.rank1")),
            lambda facade: aten_calls(facade.get_aten_op_kernels_and_delay()[1]),
        ),
    ),
    "amd_mi250: `get_aten_op_kernels_and_delay()`": (
        "amd_trace",
        (
            failed("get_aten_op_kernels_and_delay"),
            lambda facade: rows(facade.get_aten_op_kernels_and_delay()[0]),
        ),
    ),
    "alexnet: sequences of `aten::conv2d`": (
        "critical_path_alexnet",
        (
            lambda htas: rows(htas.table("get_frequent_cuda_kernel_sequences.aten_conv2d.rank0")),
            lambda facade: rows(facade.get_frequent_cuda_kernel_sequences("aten::conv2d", ".")),
        ),
    ),
    "diff/test: queue length changes on stream 7": ("trace_diff_test", queue("count")),
    "diff/test: longest queue of stream 7": ("trace_diff_test", queue("max")),
    "diff/test: streams on which a launch had to wait": (
        "trace_diff_test",
        (
            lambda htas: rows(htas.table("get_time_spent_blocked_on_full_queue.max1")),
            lambda facade: rows(blocked(facade)),
        ),
    ),
    "diff/test: data points in the bandwidth of `Memcpy DtoD`": ("trace_diff_test", copies(1, "count")),
    "diff/test: median bandwidth of `Memcpy DtoD`": ("trace_diff_test", copies(1, "50%")),
    "diff/test: maximum bandwidth of `Memcpy DtoD`": ("trace_diff_test", copies(1, "max")),
    "ns_resolution: minimum bandwidth of `Memcpy DtoD`": ("ns_resolution_trace", copies(0, "min")),
    "dlrm_8rank: `get_gpu_user_annotation_breakdown()`": (
        "param_dlrm",
        (
            failed("get_gpu_user_annotation_breakdown.gpu"),
            lambda facade: rows(facade.get_gpu_user_annotation_breakdown(visualize=False)),
        ),
    ),
    "single_v100: `get_gpu_kernels_with_user_annotations(1)`": (
        "df_index_resolver",
        (
            failed("get_gpu_kernels_with_user_annotations.rank1"),
            lambda facade: rows(facade.get_gpu_kernels_with_user_annotations(1)),
        ),
    ),
    "ns_resolution: kernels of `## backward ##`": (
        "ns_resolution_trace",
        (
            lambda htas: backward(htas.table("get_gpu_kernels_with_user_annotations.rank0")),
            lambda facade: backward(facade.get_gpu_kernels_with_user_annotations(0)),
        ),
    ),
    "dlrm_8rank: `get_potential_stragglers()`": (
        "param_dlrm",
        (lambda htas: str(htas.json("get_potential_stragglers.n2")), stragglers(2)),
    ),
    "ns_resolution: `get_potential_stragglers()`": (
        "ns_resolution_trace",
        (failed("get_potential_stragglers.n2"), stragglers(2)),
    ),
    "cpu_only: `get_temporal_breakdown()`": (
        "cpu_only",
        (
            failed("get_temporal_breakdown"),
            lambda facade: rows(facade.get_temporal_breakdown(visualize=False)) + " and a reason",
        ),
    ),
    "cpu_only: `get_memory_bw_summary()`": (
        "cpu_only",
        (failed("get_memory_bw_summary"), lambda facade: rows(facade.get_memory_bw_summary()) + " and a reason"),
    ),
}
"""{example on the page: (HTA's results, (HTA's answer, holotrace's answer))}."""


def largest_gap_of_clocks(real_traces: Path, _: Path) -> str:
    """Return the largest difference between `end` and `ts + dur` of an event."""
    frame = TraceAnalysis(trace_dir=str(real_traces / "dlrm_8rank")).t.get_trace(0)
    return us((frame["end"] - frame["ts"] - frame["dur"]).abs().max())


ASKED_BY_HAND: dict[str, tuple[str, Callable[[Path, Path], str]]] = {
    "dlrm_8rank, rank 0: largest `end - ts - dur`": ("1,694,128,201,421,205 µs", largest_gap_of_clocks),
    "ddp_gloo_4rank, rank 3 is slow: `get_potential_stragglers(num_candidates=1)`": (
        "`ValueError`",
        lambda real_traces, _: str(
            TraceAnalysis(trace_dir=str(real_traces / "ddp_gloo_4rank")).get_potential_stragglers(num_candidates=1)
        ),
    ),
    "dlrm_8rank: `rank` of `extract_ops(rank=[2, 5])`": (
        "[0, 1]",
        lambda real_traces, _: str(
            sorted(set(LabeledTrace(trace_dir=str(real_traces / "dlrm_8rank")).extract_ops(rank=[2, 5])["rank"]))
        ),
    ),
    "amd_mi250 with itself, `device_type=GPU`": (
        "0 rows",
        lambda real_traces, _: rows(
            TraceDiff.compare_traces(*[str(real_traces / "amd_mi250")] * 2, device_type=DeviceType.GPU)
        ),
    ),
    "alexnet with itself, a trace without steps": (
        "`ValueError`",
        lambda real_traces, _: rows(TraceDiff.compare_traces(*[str(real_traces / "critical_path" / "alexnet")] * 2)),
    ),
}
"""{example on the page: (HTA's answer, a function that returns holotrace's)}; its arguments are the traces and an empty folder."""


@pytest.fixture(scope="module", autouse=True)
def cache_of_traces(tmp_path_factory) -> None:
    """Use a temporary cache folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


@cache
def opened(real_traces: Path, name: str) -> TraceAnalysis:
    """Open a trace; later calls return the same object."""
    return TraceAnalysis({rank: str(next(real_traces.glob(pattern))) for rank, pattern in FILES[name].items()})


def shown() -> dict[str, tuple[str, str]]:
    """Return {example: (HTA's answer, holotrace's answer)}, as shown on the page."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[1]: (row[2], row[3]) for row in cells if len(row) == CELLS and row[1] != "example"}


def test_the_page_shows_these_examples() -> None:
    """The page has exactly the examples that these tests check."""
    assert sorted(shown()) == sorted([*EXAMPLES, *ASKED_BY_HAND, *QUIRKS])


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_page_shows_both_answers(real_traces, goldens, tmp_path, monkeypatch, example) -> None:
    """A row of the page shows HTA's recorded answer and holotrace's current answer."""
    monkeypatch.chdir(tmp_path)
    name, (theirs, ours) = EXAMPLES[example]
    assert shown()[example] == (theirs(Htas(goldens / "hta" / name)), ours(opened(real_traces, name)))


@pytest.mark.parametrize("example", ASKED_BY_HAND)
def test_the_page_shows_our_answer_next_to_a_manual_run_of_hta(real_traces, tmp_path, example) -> None:
    """The page's row for an example shows HTA's answer from a manual run, and holotrace's current answer."""
    theirs, ours = ASKED_BY_HAND[example]
    assert shown()[example] == (theirs, ours(real_traces, tmp_path))


@pytest.mark.parametrize("example", QUIRKS)
def test_the_page_shows_our_answer_on_a_made_up_trace(tmp_path, example) -> None:
    """The page's row for a quirk shows HTA's answer from `QUIRKS`, and holotrace's current answer."""
    quirk = QUIRKS[example]
    assert shown()[example] == (quirk.theirs, quirk.ours(tmp_path))
