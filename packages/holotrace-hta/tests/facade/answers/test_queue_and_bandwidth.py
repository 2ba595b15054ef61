"""Queue lengths, bandwidths and counters have HTA's columns, and HTA's numbers where HTA is correct."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from holotrace.errors import InvalidOptionError, UnknownRankError
from holotrace.testing.builder import TraceBuilder
from hta.trace_analysis import TimeSeriesTypes, TraceAnalysis
from jobs import cpu_job
from matrices import slow_except

TRACES_OF = {
    "param_dlrm": "dlrm_8rank",
    "trace_filter": "two_rank_128",
    "trace_filter__last": "two_rank_128",
    "trace_diff_control": "diff/control",
    "trace_diff_control__last": "diff/control",
    "df_index_resolver": "single_v100",
}
"""Folder of HTA's results -> folder of the traces, for traces in whole µs whose launch calls HTA recognizes."""

STATISTICS = ["count", "mean", "std", "min", "25%", "50%", "75%", "max"]
GB_PER_S = 1e-9
"""Bandwidths are rounded to whole bytes per second."""

each_golden = pytest.mark.parametrize(
    "name", slow_except(TRACES_OF, ("param_dlrm", "trace_filter__last", "df_index_resolver"))
)


@pytest.fixture
def small(tmp_path) -> TraceAnalysis:
    """Open a job in which rank 0 launches two kernels and copies data for 10 µs at 2 GB/s.

    The launches begin at 0 and 2 µs, the kernels at 10 and 20 µs.
    """
    builder = (
        TraceBuilder()
        .kernel("gemm", start_us=10, duration_us=5, launch_us=0)
        .kernel("relu", start_us=20, duration_us=5, launch_us=2)
        .copy("Memcpy HtoD", start_us=30, duration_us=10, stream=9, args={"memory bandwidth (GB/s)": 2})
        .rank(1)
        .kernel("gemm", start_us=10, duration_us=5, launch_us=5)
    )
    return opened(builder, tmp_path)


def opened(builder: TraceBuilder, folder: Path) -> TraceAnalysis:
    """Write a job and open it with `TraceAnalysis`."""
    builder.write(folder)
    return TraceAnalysis(trace_dir=str(folder))


def same_job(real_traces: Path, name: str) -> TraceAnalysis:
    """Open the traces of an HTA result with our `TraceAnalysis`."""
    return TraceAnalysis(
        trace_dir=str(real_traces / TRACES_OF[name]), include_last_profiler_step=name.endswith("__last")
    )


def answer(goldens: Path, name: str, call: str) -> pd.DataFrame:
    """Return HTA's result as a frame."""
    path = goldens / "hta" / name / f"{call}.csv"
    return pd.read_csv(path if path.exists() else path.with_suffix(".csv.gz"))


def after_each_time(frame: pd.DataFrame, keys: list[str], value: str) -> pd.Series:
    """Return the last value at each time, because HTA sorts simultaneous changes in arbitrary order."""
    return frame.groupby([*keys, "ts"])[value].last()


@each_golden
def test_queue_lengths_equal_htas(real_traces, goldens, name) -> None:
    """Times, tracks and the queue length after each change equal HTA's."""
    for rank, ours in same_job(real_traces, name).get_queue_length_time_series().items():
        theirs = answer(goldens, name, f"get_queue_length_time_series.rank{rank}")
        assert sorted(ours.index) == sorted(theirs["index"])
        for column in ("ts", "pid", "tid", "stream"):
            assert ours[column].to_list() == theirs[column].to_list()
        keys = ["stream"], "queue_length"
        pd.testing.assert_series_equal(after_each_time(ours, *keys), after_each_time(theirs, *keys))


@each_golden
def test_the_summary_of_queue_lengths_equals_htas_but_for_simultaneous_changes(real_traces, goldens, name) -> None:
    """Counts equal HTA's; means differ by up to 0.03 because HTA orders simultaneous changes arbitrarily."""
    ours = same_job(real_traces, name).get_queue_length_summary()
    theirs = answer(goldens, name, "get_queue_length_summary").set_index(["rank", "stream"])
    assert list(ours.index) == list(theirs.index)
    assert ours["queue_length"]["count"].to_list() == theirs["queue_length/count"].to_list()
    np.testing.assert_allclose(ours["queue_length"]["mean"], theirs["queue_length/mean"], atol=0.03)


@each_golden
@pytest.mark.parametrize(("limit", "suffix"), [(1, ".max1"), (10, ".max10"), (100, ".max100"), (1_024, "")])
def test_time_blocked_equals_htas_where_it_keeps_a_stream(real_traces, goldens, name, limit, suffix) -> None:
    """Blocked times equal HTA's for the last stream of each rank, the only one that HTA keeps."""
    facade = same_job(real_traces, name)
    ours = facade.get_time_spent_blocked_on_full_queue(facade.get_queue_length_time_series(), limit)
    theirs = answer(goldens, name, f"get_time_spent_blocked_on_full_queue{suffix}")
    both = theirs.merge(ours, on=["rank", "stream"], suffixes=("", "_ours"))
    assert len(both) == len(theirs) <= len(ours)
    assert set(theirs["rank"]) == set(ours["rank"])
    for column in ("duration_at_max_queue_length", "relative_duration_at_max_queue_length"):
        np.testing.assert_allclose(both[f"{column}_ours"].astype(float), both[column].astype(float))


@each_golden
def test_bandwidths_equal_htas(real_traces, goldens, name) -> None:
    """The bandwidths after each change and their summary equal HTA's."""
    facade = same_job(real_traces, name)
    for rank, ours in facade.get_memory_bw_time_series().items():
        theirs = answer(goldens, name, f"get_memory_bw_time_series.rank{rank}").astype({"ts": ours["ts"].dtype})
        keys = ["pid", "name"], "memory_bw_gbps"
        expected = after_each_time(theirs, *keys)
        pd.testing.assert_series_equal(after_each_time(ours, *keys), expected, atol=GB_PER_S, rtol=0)
    summary = facade.get_memory_bw_summary()
    theirs = answer(goldens, name, "get_memory_bw_summary").set_index(["rank", "name"])
    assert list(summary.index) == list(theirs.index)
    np.testing.assert_allclose(summary.to_numpy(), theirs.to_numpy(), atol=GB_PER_S, rtol=0)


def test_rounding_residues_are_not_bandwidths(real_traces, goldens) -> None:
    """Our bandwidths contain no rounding residues; in HTA, 3,814 of 7,674 values are residues of about 1e-13 GB/s.

    HTA's maximum of 671.5 GB/s adds two copies that do not overlap: one starts when the other ends. No copy exceeds 392.8 GB/s.
    """
    theirs = answer(goldens, "trace_diff_test", "get_memory_bw_summary").set_index("name").loc["Memcpy DtoD"]
    facade = TraceAnalysis(trace_dir=str(real_traces / "diff/test"))
    ours = facade.get_memory_bw_summary().loc[(1, "Memcpy DtoD")]["memory_bw_gbps"]
    assert theirs["memory_bw_gbps/25%"] < 1e-12 < ours["25%"]
    assert theirs["memory_bw_gbps/count"] > 1.9 * ours["count"]
    assert (round(theirs["memory_bw_gbps/max"], 1), round(ours["max"], 1)) == (671.5, 392.8)


@pytest.mark.parametrize("name", slow_except(["param_dlrm", "trace_filter", "trace_diff_control"], ["trace_filter"]))
def test_counters_equal_htas(real_traces, goldens, tmp_path, name) -> None:
    """Name, stream, process, time and value of every counter event equal HTA's."""
    paths = same_job(real_traces, name).generate_trace_with_counters(output_dir=str(tmp_path))
    rank = min(paths)
    theirs = answer(goldens, name, f"generate_trace_with_counters.rank{rank}")
    content = Path(paths[rank]).read_bytes()
    copy = json.loads(gzip.decompress(content) if paths[rank].endswith(".gz") else content)
    events = [event for event in copy["traceEvents"] if event["ph"] == "C"]
    rows = [
        (event["name"], event.get("id", -1), event["pid"], event["ts"], *event["args"].values()) for event in events
    ]
    ours = pd.DataFrame(rows, columns=["name", "id", "pid", "ts", "value"])
    keys = ["name", "id", "pid"], "value"
    actual, expected = (after_each_time(frame.fillna({"id": -1}), *keys) for frame in (ours, theirs))
    assert [tuple(map(str, row)) for row in actual.index] == [
        (name, str(int(stream)), str(int(process)), str(int(time))) for name, stream, process, time in expected.index
    ]
    np.testing.assert_allclose(actual, expected, atol=GB_PER_S)


def test_the_frame_of_a_queue(small) -> None:
    """A queue's frame has HTA's index and columns, with times in µs since the job's first event."""
    series = small.get_queue_length_time_series()
    assert sorted(series) == [0, 1]
    frame = series[0]
    assert (frame.index.name, list(frame.columns)) == ("index", ["ts", "pid", "tid", "stream", "queue_length"])
    assert frame[["ts", "stream", "queue_length"]].to_numpy().tolist() == [[0, 7, 1], [2, 7, 2], [10, 7, 1], [20, 7, 0]]


def test_the_frame_of_bandwidths(small) -> None:
    """A bandwidth frame has HTA's columns; a rank without copies has no frame."""
    series = small.get_memory_bw_time_series()
    assert list(series) == [0]
    assert series[0].to_dict("list") == {
        "ts": [30, 40],
        "pid": [0, 0],
        "name": ["Memcpy HtoD"] * 2,
        "memory_bw_gbps": [2.0, 0.0],
    }


def test_summaries_have_htas_shape(small) -> None:
    """Summaries have the index and the two levels of columns of HTA's; the given time series stay unchanged."""
    series = small.get_queue_length_time_series()
    columns = [list(frame.columns) for frame in series.values()]
    summary = small.get_queue_length_summary()
    assert (list(summary.index.names), list(summary.index)) == (["rank", "stream"], [(0, 7), (1, 7)])
    assert list(summary.columns) == [("queue_length", statistic) for statistic in STATISTICS]
    pd.testing.assert_frame_equal(small.get_queue_length_summary_from_time_series(series), summary)
    assert [list(frame.columns) for frame in series.values()] == columns
    bandwidths = small.get_memory_bw_summary()
    assert (list(bandwidths.index.names), list(bandwidths.index)) == (["rank", "name"], [(0, "Memcpy HtoD")])
    assert list(bandwidths.columns) == [("memory_bw_gbps", statistic) for statistic in STATISTICS]


def test_time_blocked_on_every_stream(small) -> None:
    """For 8 of 30 µs, the queue of rank 0 contains two launches; for 20 µs, it contains at least one."""
    series = small.get_queue_length_time_series()
    two, one = (small.get_time_spent_blocked_on_full_queue(series, limit) for limit in (2, 1))
    assert two.to_numpy().tolist() == [[0, 7, 8, pytest.approx(8 / 30)]]
    assert one[["rank", "stream", "duration_at_max_queue_length"]].to_numpy().tolist() == [[0, 7, 20], [1, 7, 5]]
    assert small.get_time_spent_blocked_on_full_queue(series).empty
    assert list(small.get_time_spent_blocked_on_full_queue({}).columns) == list(two.columns)
    with pytest.raises(InvalidOptionError, match="max_queue_length=0"):
        small.get_time_spent_blocked_on_full_queue(series, 0)


def test_time_blocked_of_queues_whose_rows_alternate(small) -> None:
    """A queue keeps its length until its own next row, even if rows of other queues lie between."""
    series = small.get_queue_length_time_series(ranks=[0])[0]
    frame = pd.concat([series, series.assign(stream=8), series.assign(pid="host")]).sort_values("ts", kind="stable")
    blocked = small.get_time_spent_blocked_on_full_queue({0: frame}, 2)
    assert blocked[["stream", "duration_at_max_queue_length"]].to_numpy().tolist() == [[7, 16], [8, 8]]


def test_a_job_without_gpu_work_has_empty_answers(tmp_path) -> None:
    """For a job without GPU work, frames are empty and have the usual columns; HTA returns None or fails."""
    facade = opened(cpu_job(), tmp_path)
    assert facade.get_queue_length_time_series() == facade.get_memory_bw_time_series() == {}
    for summary in (facade.get_queue_length_summary(), facade.get_memory_bw_summary()):
        assert (len(summary), summary.columns.nlevels, summary.index.nlevels) == (0, 2, 2)
    assert facade.get_time_spent_blocked_on_full_queue({}).empty


def test_ranks_can_be_chosen(small) -> None:
    """`ranks` selects ranks; by default, holotrace-hta uses all ranks, and HTA only rank 0."""
    assert list(small.get_queue_length_time_series(ranks=[1])) == [1]
    with pytest.raises(UnknownRankError):
        small.get_memory_bw_time_series(ranks=[9])


def test_copies_with_counters(small, tmp_path) -> None:
    """`TraceAnalysis` does not read trace copies with added counters; `overwrite=False` keeps existing copies."""
    written = small.generate_trace_with_counters(TimeSeriesTypes.QUEUE_LENGTH, ranks=[0])
    assert list(written) == [0]
    assert "_with_counters.json" in written[0]
    assert TraceAnalysis(trace_dir=str(tmp_path)).t.trace_files == small.t.trace_files
    with pytest.raises(InvalidOptionError, match="already exists"):
        small.generate_trace_with_counters(ranks=[0], overwrite=False)
    assert small.generate_trace_with_counters(ranks=[0]) == written
