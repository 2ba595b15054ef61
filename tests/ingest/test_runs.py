"""`find_runs` finds the runs, workers and spans in a log folder."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.errors import InvalidOptionError, TraceNotFoundError, UnreadableTraceError
from holotrace.ingest.discover import ReadRank, rank_of_trace
from holotrace.ingest.runs import Run, Runs, find_runs
from holotrace.testing.builder import TraceBuilder

WriteTrace = Callable[..., Path]
REAL = {
    "tensorboard/resnet50_num_workers_0": "resnet50_num_workers_0",
    "tensorboard/resnet50_num_workers_4": "resnet50_num_workers_4",
    "dlrm_8rank": "param_dlrm_8rank",
    "cpu_only": "hta_cpu_only",
    "ns_resolution": "hta_ns_resolution",
}


def spans_of(run: Run) -> dict[str, list[int]]:
    """Return {worker: spans}."""
    return {
        worker: [recording.span for recording in run.recordings if recording.worker == worker] for worker in run.workers
    }


def reasons(runs: Runs) -> dict[str, str]:
    """Return {file name: reason for skipping it}."""
    return {Path(file.path).name: file.reason for file in runs.skipped}


def test_every_folder_with_traces_is_a_run(write_trace: WriteTrace, tmp_path) -> None:
    """Runs are named by path and sorted naturally; files directly in the log folder form a run named after it."""
    for folder in ("", "a/b/", "run10/", "run2/"):
        write_trace(f"{folder}w.1.pt.trace.json")
    (tmp_path / "empty").mkdir()
    assert [run.name for run in find_runs(tmp_path).runs] == ["a/b", "run2", "run10", tmp_path.name]


def test_captures_of_graphs_are_part_of_the_run_beside_them(write_trace: WriteTrace, tmp_path) -> None:
    """A folder `capture_traces` next to a trace is skipped; elsewhere, it is a run."""
    for path in (
        "serving/rank0.json",
        "serving/capture_traces/bs_1_rank0.json",
        "alone/capture_traces/bs_1_rank0.json",
    ):
        write_trace(path)
    listed = find_runs(tmp_path)

    assert [run.name for run in listed.runs] == ["alone/capture_traces", "serving"]
    assert reasons(listed) == {
        "capture_traces": "captures of CUDA graphs; they are used when the traces beside this folder are opened"
    }


def test_spans_are_in_numeric_order(write_trace: WriteTrace, tmp_path) -> None:
    """Recording 10 follows recording 9, unlike in the TensorBoard plugin."""
    for stamp in (10, 9, 100):
        write_trace(f"w.{stamp}.pt.trace.json")
    (run,) = find_runs(tmp_path).runs
    assert [(recording.span, recording.stamp) for recording in run.recordings] == [(1, 9), (2, 10), (3, 100)]
    assert run.spans == (1, 2, 3)


def test_a_missing_recording_does_not_shift_the_others(write_trace: WriteTrace, tmp_path) -> None:
    """Worker b's second recording begins soon after worker a's third, so it gets span 3; worker b has no span 2."""
    for worker, times in (("a", (100, 200, 300)), ("b", (101, 302))):
        for time in times:
            write_trace(f"{worker}.{1_694_128_000_000 + 1_000 * time}.pt.trace.json")
    (run,) = find_runs(tmp_path).runs
    assert spans_of(run) == {"a": [1, 2, 3], "b": [1, 3]}


def test_recordings_without_times_get_spans_by_order(write_trace: WriteTrace, tmp_path) -> None:
    """Workers a and b have files numbered 5, 9 and 7; these are not times, so the files of each get spans 1, 2, …"""
    for name in ("a.5", "a.9", "b.7"):
        write_trace(f"{name}.pt.trace.json")
    (run,) = find_runs(tmp_path).runs
    assert spans_of(run) == {"a": [1, 2], "b": [1]}


@given(st.lists(st.lists(st.integers(0, 10_000), min_size=1, max_size=6, unique=True), min_size=1, max_size=4))
def test_no_worker_is_in_a_span_twice_and_order_is_kept(tmp_path_factory, workers: list[list[int]]) -> None:
    """For any recording times, the spans of each worker increase with time, and the first span of the run is 1."""
    folder = tmp_path_factory.mktemp("runs")
    for number, times in enumerate(workers):
        for time in times:
            (folder / f"w{number}.{1_694_128_000_000 + time}.json").write_text('{"traceEvents": []}')
    (run,) = find_runs(folder).runs
    assert run.spans[0] == 1
    for spans in spans_of(run).values():
        assert spans == sorted(set(spans))


def test_any_trace_is_a_recording_and_other_files_have_a_reason(write_trace: WriteTrace, tmp_path) -> None:
    """A trace may have any file name; text files, broken links and JSON without a trace are skipped with a reason."""
    text = write_trace("first.json", rank=4).read_bytes()
    (tmp_path / "packed.json").write_bytes(gzip.compress(text))
    (tmp_path / "notes.md").write_text("nothing")
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / ".hidden.json").write_bytes(text)
    runs = find_runs(tmp_path)
    assert [(recording.worker, recording.rank) for recording in runs.runs[0].recordings] == [
        ("first", 4),
        ("packed", 4),
    ]
    assert reasons(runs).keys() == {"notes.md", "other.json", "gone.json"}
    assert reasons(runs)["gone.json"].endswith("a link to a file that does not exist")


def test_a_second_copy_is_skipped(write_trace: WriteTrace, tmp_path) -> None:
    """If a recording exists as a plain and a gzip file, the newer is used; the older is skipped with a reason."""
    old = write_trace("w.1.pt.trace.json")
    (tmp_path / "w.1.pt.trace.json.gz").write_bytes(gzip.compress(old.read_bytes()))
    os.utime(old, ns=(0, 0))
    runs = find_runs(tmp_path)
    assert [Path(recording.path).name for recording in runs.runs[0].recordings] == ["w.1.pt.trace.json.gz"]
    assert reasons(runs) == {"w.1.pt.trace.json": "same worker and span as w.1.pt.trace.json.gz, which is newer"}


def test_a_rank_comes_from_header_name_or_collectives(write_trace: WriteTrace, tmp_path) -> None:
    """The rank comes from the header or the file name or, once the span is opened, from the collectives."""
    write_trace("rank7.1.pt.trace.json", rank=3)
    write_trace("rank5.1.pt.trace.json")
    write_trace("late.1.pt.trace.json", collective_ranks=(6, 6))
    (run,) = find_runs(tmp_path).runs
    assert {recording.worker: recording.rank for recording in run.recordings} == {"rank7": 3, "rank5": 5, "late": None}
    assert list(run.open(cache=False).ranks) == [3, 5, 6]


def test_a_run_opens_its_last_span_or_a_chosen_one(write_trace: WriteTrace, tmp_path) -> None:
    """By default, a run opens its last span; for an unknown span or run, the error lists the existing ones."""
    for stamp in (1, 2):
        write_trace(f"rank0.{stamp}.pt.trace.json")
    run = find_runs(tmp_path).run(tmp_path.name)
    assert [Path(run.open(span).ranks[0].source).name[:7] for span in (None, 1)] == ["rank0.2", "rank0.1"]
    with pytest.raises(InvalidOptionError, match="has no span 3; its spans are: 1, 2"):
        run.open(3)
    with pytest.raises(InvalidOptionError, match="has no run 'other'"):
        find_runs(tmp_path).run("other")


def test_two_jobs_in_one_folder_are_reported(write_trace: WriteTrace, tmp_path) -> None:
    """If two jobs each have a file of rank 0, the newer file is opened; the older is skipped with a reason."""
    for host in ("a", "b"):
        os.utime(write_trace(f"{host}.pt.trace.json", rank=0), ns=(0, 5 if host == "a" else 9))
    trace = find_runs(tmp_path).runs[0].open(cache=False)
    assert Path(trace.ranks[0].source).name == "b.pt.trace.json"
    assert "another recording of rank 0" in trace.skipped[0].reason


def test_a_refresh_opens_only_new_files(write_trace: WriteTrace, tmp_path, monkeypatch) -> None:
    """A refresh reads only new files; it returns the added, changed and removed files."""
    first = write_trace("run/w.1.pt.trace.json")
    before = find_runs(tmp_path)
    opened: list[str] = []

    def look(path: str, read_rank: ReadRank) -> int | None:
        opened.append(path)
        return rank_of_trace(path, read_rank)

    monkeypatch.setattr("holotrace.ingest.runs.rank_of_trace", look)

    assert before.refresh() == before
    assert not before.refresh().changes_since(before)
    second = write_trace("run/w.2.pt.trace.json")
    after = before.refresh()

    assert opened == [str(second)]
    assert spans_of(after.runs[0]) == {"w": [1, 2]}
    assert after.changes_since(before).added == (str(second),)
    first.write_text(json.dumps({"traceEvents": [], "more": 1}))
    second.unlink()
    changes = after.refresh().changes_since(after)
    assert (changes.added, changes.changed, changes.removed) == ((), (str(first),), (str(second),))


def test_circular_links_are_followed_once(write_trace: WriteTrace, tmp_path) -> None:
    """A folder reached through several links is only one run."""
    write_trace("run/w.1.pt.trace.json")
    (tmp_path / "run" / "back").symlink_to(tmp_path)
    (tmp_path / "again").symlink_to(tmp_path / "run")
    assert len(find_runs(tmp_path).runs) == 1


def test_an_empty_folder_has_no_runs_yet(write_trace: WriteTrace, tmp_path) -> None:
    """An empty log folder has no runs; a refresh finds a new run, so a server may start before the job."""
    empty = find_runs(tmp_path)
    assert (empty.runs, empty.skipped) == ((), ())
    write_trace("w.json")
    assert len(empty.refresh().runs) == 1


def test_the_log_folder_must_be_a_folder(write_trace: WriteTrace, tmp_path) -> None:
    """If the log folder is missing, is a file or has been deleted, an error is raised."""
    with pytest.raises(TraceNotFoundError, match="does not exist"):
        find_runs(tmp_path / "nowhere")
    with pytest.raises(TraceNotFoundError, match="is a file; name the folder of its run"):
        find_runs(write_trace("w.json"))
    runs = find_runs(tmp_path)
    (tmp_path / "w.json").unlink()
    tmp_path.rmdir()
    with pytest.raises(UnreadableTraceError, match="cannot be listed"):
        runs.refresh()


@pytest.mark.parametrize("name", REAL)
def test_workers_and_spans_equal_those_of_the_plugin(name, real_traces, goldens) -> None:
    """In real log folders, workers and spans are the same as in the plugin, except for the plugin's worker `All`."""
    expected = json.loads((goldens / "tb" / REAL[name] / "_run.json").read_text())["spans"]
    spans_by_worker = spans_of(find_runs(real_traces).run(name))
    assert {worker: list(map(str, spans)) for worker, spans in spans_by_worker.items()} == {
        worker: spans for worker, spans in expected.items() if worker != "All"
    }


@pytest.mark.slow
def test_every_edge_case_of_the_plugin_is_listed(goldens) -> None:
    """All 59 small files with unusual JSON are listed as recordings, even those that the plugin cannot read."""
    runs = find_runs(goldens / "tb_edge")
    folders = {Path(item.path).parent.name for run in runs.runs for item in run.recordings if "input" in item.worker}
    assert folders == {folder.name for folder in (goldens / "tb_edge").iterdir() if folder.is_dir()}
    assert len(folders) == 59


def test_a_run_without_a_readable_file_says_why(tmp_path) -> None:
    """A run whose only file is empty is listed and gives an error; once the file has content, a refresh finds it."""
    [path] = TraceBuilder().kernel("gemm", start_us=0, duration_us=5).write(tmp_path / "run")
    content = path.read_bytes()
    path.write_bytes(b"")
    runs = find_runs(tmp_path)
    (run,) = runs.runs

    assert (run.name, run.recordings, run.workers, run.spans) == ("run", (), (), ())
    assert [file.path for file in run.unreadable] == [str(path)]
    with pytest.raises(UnreadableTraceError, match=rf"run run has no readable file: {path.name} \(.*an empty file\)"):
        run.open()
    path.write_bytes(content)
    (run,) = runs.refresh().runs
    assert (len(run.recordings), run.unreadable) == (1, ())
