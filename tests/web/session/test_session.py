"""Tests of sessions; a session keeps the list of runs, the opened traces and the cached results."""

from __future__ import annotations

import gzip
import threading
import time

import pytest

import holotrace
from holotrace.errors import InvalidOptionError, MissingDataError, TraceNotFoundError, UnknownRankError
from holotrace.execution.executor import InProcessExecutor
from holotrace.testing.builder import TraceBuilder
from holotrace.testing.synthetic import write_job
from holotrace.web.session import memory
from holotrace.web.session import session as session_module
from holotrace.web.session.memory import bytes_of
from holotrace.web.session.session import Scope, Session
from jobs import cpu_job, gpu_job
from web_client import WebClient, texts


def steps_job() -> TraceBuilder:
    """Return two steps with one kernel each, on device 0 and on device 1."""
    return (
        TraceBuilder()
        .step(1, 0, 50)
        .kernel("gemm", start_us=10, duration_us=20, launch_us=5)
        .step(2, 50, 50)
        .kernel("relu", device=1, start_us=60, duration_us=5, launch_us=55)
    )


def opened(*paths) -> Session:
    """Return a session for the given paths, without a cache on disk."""
    return Session(paths, cache=False)


def test_each_folder_with_a_trace_is_a_run(tmp_path) -> None:
    """A run is named by its path; hidden folders and folders without traces are not runs."""
    gpu_job().write(tmp_path)
    cpu_job().write(tmp_path / "b" / "deep")
    gpu_job().write(tmp_path / ".hidden")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "config.json").write_text('{"lr": 1}')
    runs = opened(tmp_path).runs
    assert [run.name for run in runs] == [tmp_path.name, "b/deep"]
    assert [run.id for run in opened(tmp_path).runs] == [run.id for run in runs]


def two_spans(folder) -> None:
    """Write two recordings of a rank, as a profiler with repeat=2 does: the first has kernel gemm, the second relu."""
    for stamp, kernel in ((1700000000000, "gemm"), (1700000060000, "relu")):
        (file,) = TraceBuilder().kernel(kernel, start_us=0, duration_us=5).write(folder)
        file.rename(folder / f"host_1.{stamp}.pt.trace.json")


@pytest.mark.parametrize(("span", "kernel"), [("", "relu"), ("~1", "gemm"), ("~2", "relu")])
def test_each_span_of_a_run_can_be_selected(tmp_path, span, kernel) -> None:
    """`~1` after a run's id selects the run's first recording (span); without a number, the newest is opened."""
    two_spans(tmp_path)
    session = opened(tmp_path)
    result = session.result(Scope(session.runs[0].id + span), "kernel_breakdown")
    assert result.per_kernel["name"].to_list() == [kernel]


def test_captures_of_graphs_are_part_of_the_run_beside_them(tmp_path) -> None:
    """A folder of graph captures is part of the run if it is next to a trace; otherwise, it is a run of its own."""
    for folder in ("serving", "serving/capture_traces", "alone/capture_traces"):
        gpu_job().write(tmp_path / folder)
    assert [run.name for run in Session([tmp_path], cache=False).runs] == ["alone/capture_traces", "serving"]


@pytest.mark.parametrize("span", ["~0", "~3", "~", "~1~1", "~../..", "~-1"])
def test_a_missing_span_opens_nothing(tmp_path, span) -> None:
    """Selecting a span that does not exist raises an error, as does selecting any span of a run with a single file."""
    two_spans(tmp_path)
    session = opened(tmp_path)
    with pytest.raises(InvalidOptionError, match="this run does not exist"):
        session.run(session.runs[0].id + span if span != "~" else f"{'0' * 12}~")
    one = opened(tmp_path / "host_1.1700000000000.pt.trace.json")
    with pytest.raises(InvalidOptionError, match="this run does not exist"):
        one.run(f"{one.runs[0].id}~1")


def test_several_files_are_one_run(tmp_path) -> None:
    """Two files served together are one run of two ranks."""
    files = gpu_job().write(tmp_path)
    (run,) = opened(*files).runs
    assert list(opened(*files).whole(run.id).ranks) == [0, 1]


def test_a_run_is_not_named_by_its_path(tmp_path) -> None:
    """A run is opened only by its id; a path in place of the id raises an error, even if the path exists."""
    gpu_job().write(tmp_path / "in")
    session = opened(tmp_path / "in")
    for name in (str(tmp_path / "in"), "../in", "", ".", "\x00", "0" * 12):
        with pytest.raises(InvalidOptionError, match="this run does not exist"):
            session.trace(Scope(name))


def test_links_do_not_lead_out_of_the_served_folder(tmp_path) -> None:
    """Links that lead out of the served folder are not runs or ranks; a linked file is listed as skipped."""
    (outside,) = TraceBuilder().rank(7).kernel("gemm", start_us=0, duration_us=1).write(tmp_path / "secret")
    gpu_job().write(tmp_path / "served")
    (tmp_path / "served" / "folder").symlink_to(tmp_path / "secret", target_is_directory=True)
    (tmp_path / "served" / outside.name).symlink_to(outside)
    session = opened(tmp_path / "served")
    (run,) = session.runs
    whole = session.whole(run.id)
    assert list(whole.ranks) == [0, 1]
    assert [file.reason for file in whole.skipped] == ["a link to a file outside the served folder"]


def test_a_run_of_links_out_of_the_served_folder_is_an_error(tmp_path) -> None:
    """If all files of a run are links to files outside the served folder, the error says so."""
    files = gpu_job().write(tmp_path / "elsewhere")
    (tmp_path / "served").mkdir()
    for file in files:
        (tmp_path / "served" / file.name).symlink_to(file)
    session = opened(tmp_path / "served")
    (run,) = session.runs
    with pytest.raises(TraceNotFoundError, match="all 2 trace files of this run are outside the served folder"):
        session.whole(run.id)


def test_a_folder_served_through_a_link_is_served(tmp_path) -> None:
    """A served folder that is itself a link, for example to another disk, shows its ranks."""
    gpu_job().write(tmp_path / "disk")
    (tmp_path / "logs").symlink_to(tmp_path / "disk", target_is_directory=True)
    session = opened(tmp_path / "logs")
    assert list(session.whole(session.runs[0].id).ranks) == [0, 1]


def test_a_result_equals_that_of_the_analysis(tmp_path) -> None:
    """A result covers all ranks or the selected ranks; selecting a missing rank raises an error."""
    gpu_job().write(tmp_path)
    session = opened(tmp_path)
    run = session.runs[0].id
    assert session.result(Scope(run), "temporal_breakdown").per_device["rank"].to_list() == [0, 1]
    assert session.result(Scope(run, (1,)), "temporal_breakdown").per_device["rank"].to_list() == [1]
    with pytest.raises(UnknownRankError):
        session.result(Scope(run, (9,)), "temporal_breakdown")


def test_steps_and_devices_narrow_the_selection(tmp_path) -> None:
    """Selecting step 2 or device 0 keeps only the kernels of that step or device.

    If the step and the device have no kernel in common, the analysis raises an error.
    """
    steps_job().write(tmp_path)
    session = opened(tmp_path)
    run = session.runs[0].id

    def computing(**only) -> list[tuple[int, int]]:
        table = session.result(Scope(run, **only), "temporal_breakdown").per_device
        return list(table.select("device", "computation_ns").iter_rows())

    assert computing() == [(0, 20_000), (1, 5_000)]
    assert computing(steps=(2,)) == [(1, 5_000)]
    assert computing(devices=(0,)) == [(0, 20_000)]
    with pytest.raises(MissingDataError):
        computing(steps=(2,), devices=(0,))


def test_missing_input_is_reported_each_time_and_searched_once(tmp_path) -> None:
    """Missing input raises an error for each request, but the trace is searched for the input only once."""
    cpu_job().write(tmp_path)
    session = opened(tmp_path)
    scope, calls = Scope(session.runs[0].id), []

    def missing(_trace: object) -> None:
        calls.append(1)
        message = "record with ProfilerActivity.CUDA"
        raise MissingDataError(message)

    for _ in range(2):
        with pytest.raises(MissingDataError, match=r"ProfilerActivity\.CUDA"):
            session.remembered(scope, "missing", missing)
    assert len(calls) == 1


def test_concurrent_callers_share_one_computation(tmp_path) -> None:
    """Eight threads share one computation, and computations with different keys run at the same time."""
    gpu_job().write(tmp_path)
    session = opened(tmp_path)
    scope, calls, answers = Scope(session.runs[0].id), [], []

    def slow(_trace: object) -> int:
        calls.append(1)
        time.sleep(0.1)
        return len(calls)

    threads = [
        threading.Thread(target=lambda: answers.append(session.remembered(scope, "slow", slow))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (answers, len(calls)) == ([1] * 8, 1)

    both = threading.Barrier(2, timeout=30)
    meet = [threading.Thread(target=session.remember, args=(scope, key, both.wait)) for key in "ab"]
    for thread in meet:
        thread.start()
    for thread in meet:
        thread.join()
    assert not both.broken


def test_memory_is_bounded(tmp_path, monkeypatch) -> None:
    """If results exceed the memory limit, the least recently used one is dropped and computed again later."""
    gpu_job().write(tmp_path)
    session = opened(tmp_path)
    scope, made = Scope(session.runs[0].id), []
    monkeypatch.setattr(session_module, "MOST_RESULT_BYTES", 250)

    def ask(key: str) -> None:
        session.remember(scope, key, lambda: made.append(key) or "x")

    assert bytes_of("x") == 64
    for key in ("a", "b", "c", "a", "d", "b", "a"):
        ask(key)
    assert made == ["a", "b", "c", "d", "b"]


def test_open_traces_are_bounded(tmp_path, monkeypatch) -> None:
    """At most MOST_OPEN_TRACES traces stay open; if the process uses 2 GiB of memory, all are closed."""
    for name in "abc":
        gpu_job().write(tmp_path / name)
    session = opened(tmp_path)
    monkeypatch.setattr(session_module, "MOST_OPEN_TRACES", 4)
    for run in session.runs:
        session.trace(Scope(run.id))
    assert len(session._traces) == 4
    monkeypatch.setattr(session_module, "resident_bytes", lambda: 2 << 30)
    assert len(session.result(Scope(run.id), "temporal_breakdown").per_device) == 2
    assert not session._traces


def test_memory_is_counted_in_pages_of_this_system(monkeypatch) -> None:
    """Resident memory is computed from the system's page size, such as 4 or 64 KiB."""
    held = {}
    for page_bytes in (4_096, 65_536):
        monkeypatch.setattr(memory.os, "sysconf", lambda name, size=page_bytes: {"SC_PAGE_SIZE": size}[name])
        held[page_bytes] = memory.resident_bytes()
    if held[4_096] is None:
        pytest.skip("this system does not report how much memory a process uses")
    assert held[65_536] / held[4_096] == pytest.approx(16, rel=0.1)


def test_concurrent_analyses_return_the_same_as_alone(tmp_path) -> None:
    """Twenty analyses that share cached columns return the same results whether run in parallel or one by one."""
    steps_job().write(tmp_path)
    scope = Scope(opened(tmp_path).runs[0].id, steps=(1,))
    names = ("temporal_breakdown", "kernel_breakdown", "idle_time", "launch_statistics", "queue_length") * 4
    session, results = opened(tmp_path), {}

    def ask(number: int, name: str) -> None:
        results[number] = session.result(scope, name)

    threads = [threading.Thread(target=ask, args=numbered) for numbered in enumerate(names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, name in enumerate(names):
        alone = vars(opened(tmp_path).result(scope, name))
        assert all(value.equals(alone[key]) for key, value in vars(results[number]).items() if key != "findings")


def test_changed_files_are_read_again(tmp_path, monkeypatch) -> None:
    """After a running job writes another rank, the next result includes it."""
    monkeypatch.setattr(session_module, "SCAN_AGAIN_S", 0)
    gpu_job().write(tmp_path)
    session = opened(tmp_path)
    run = session.runs[0].id
    assert len(session.result(Scope(run), "temporal_breakdown").per_device) == 2
    steps_job().rank(2).kernel("gemm", start_us=0, duration_us=1).write(tmp_path)
    assert len(session.result(Scope(run), "temporal_breakdown").per_device) > 2


def test_runs_that_appear_later_are_found(tmp_path, monkeypatch) -> None:
    """A run written after the server has started appears in the list."""
    monkeypatch.setattr(session_module, "SCAN_AGAIN_S", 0)
    session = opened(tmp_path)
    assert session.runs == ()
    gpu_job().write(tmp_path / "later")
    assert [run.name for run in session.runs] == ["later"]


def test_work_runs_on_a_worker_thread(tmp_path) -> None:
    """Requests with the same key share one computation in another thread; after a failure, the next request retries."""
    session, calls = opened(tmp_path), []

    def fail() -> int:
        calls.append(threading.get_ident())
        message = "failed"
        raise ValueError(message)

    for _ in range(2):
        with pytest.raises(ValueError, match="failed"):
            session.answer("fails", fail).result(10)
    assert len(calls) == 2
    assert threading.get_ident() not in calls
    assert session.answer("works", lambda: 1) is session.answer("works", lambda: 2)
    session.close()


def test_an_unreadable_file_leaves_the_other_ranks(tmp_path) -> None:
    """If the file of rank 1 is truncated, the trace still contains rank 0."""
    _, second = gpu_job().write(tmp_path)
    second.with_name("rank_1.json.gz").write_bytes(gzip.compress(b'{"traceEvents": [' + b"x" * 100)[:30])
    session = opened(tmp_path)
    assert 0 in session.trace(Scope(session.runs[0].id)).ranks


def test_a_store_is_a_run(tmp_path) -> None:
    """The pages show a store as one run, whether they serve the store itself or a folder that contains it."""
    (tmp_path / "logs").mkdir()
    holotrace.write_store(gpu_job().build(), tmp_path / "logs" / "job.store")
    session = opened(tmp_path / "logs")
    (run,) = session.runs
    assert run.name == "job.store"
    assert list(session.whole(run.id).ranks) == [0, 1]
    (direct,) = opened(tmp_path / "logs" / "job.store").runs
    assert direct.name == "job.store"


def test_a_store_that_leads_out_of_the_folder_is_not_served(tmp_path) -> None:
    """A rank of a store is not served if its folder or one of its tables is a link out of the served folder."""
    store = tmp_path / "logs" / "job.store"
    store.parent.mkdir()
    holotrace.write_store(gpu_job().build(), store)
    (store / "rank=0").rename(tmp_path / "elsewhere")
    (store / "rank=0").symlink_to(tmp_path / "elsewhere")
    (store / "rank=1" / "events.parquet").rename(tmp_path / "events.parquet")
    (store / "rank=1" / "events.parquet").symlink_to(tmp_path / "events.parquet")
    session = opened(tmp_path / "logs")
    with pytest.raises(TraceNotFoundError, match="all 2 trace files of this run are outside the served folder"):
        session.whole(session.runs[0].id)


def test_a_folder_whose_only_trace_cannot_be_read_is_a_run(tmp_path) -> None:
    """A folder whose only trace is empty or damaged is still a run; its overview says why the trace cannot be shown."""
    gpu_job().write(tmp_path / "good")
    for name, file in (("empty", "rank0.json"), ("cut", "a.pt.trace.json.gz"), ("other", "config.json")):
        (tmp_path / name).mkdir()
        content = {"empty": b"", "cut": gzip.compress(b"")[:10] + b"\xff" * 50, "other": b'{"lr": 1}'}[name]
        (tmp_path / name / file).write_bytes(content)
    runs = {run.name: run.id for run in opened(tmp_path).runs}
    assert sorted(runs) == ["cut", "empty", "good"]
    client = WebClient(tmp_path)
    for name, reason in (("empty", "an empty file"), ("cut", "cannot be read: ")):
        verdict = " ".join(texts(client.part(f"?view=overview&run={runs[name]}", "verdict")))
        assert "Cannot show this" in verdict
        assert reason in verdict
        for part in ("choices", "time", "steps", "advice", "gpus"):
            assert texts(client.part(f"?view=overview&run={runs[name]}", part)) == []


@pytest.mark.slow
def test_the_overview_begins_with_problems_of_the_files(tmp_path) -> None:
    """Problems of files precede the verdict; without problems, the overview begins with the verdict."""
    paths = gpu_job().write(tmp_path)
    assert texts(WebClient(tmp_path).part("?view=overview", "verdict"))[0] == "Verdict"
    paths[1].write_bytes(paths[1].read_bytes()[:-40])
    (tmp_path / "rank2.json").write_bytes(b"")
    first, cut, unreadable, verdict, *_ = texts(WebClient(tmp_path).part("?view=overview", "verdict"))
    assert (first, verdict) == ("Before you read on", "Verdict")
    assert cut.startswith("Rank 1's file is cut off after ")
    assert unreadable.startswith("1 file could not be read and is left out: rank2.json (")


class CountedPool(InProcessExecutor):
    """Stands in for a pool of processes: runs each call in this process and counts it."""

    calls = 0

    def submit(self, fn, /, *args, **kwargs):
        """Count the call."""
        CountedPool.calls += 1
        return super().submit(fn, *args, **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize(("uses_processes", "workers", "calls"), [(True, 2, 2), (True, 1, 0), (False, 2, 0)])
def test_processes_answer_long_questions_about_many_ranks(
    tmp_path, monkeypatch, uses_processes, workers, calls
) -> None:
    """Long analyses of a large job run in worker processes, if the session may use them; short analyses never do."""
    write_job(tmp_path, ranks=2, steps=2, layers=1)
    monkeypatch.setattr(CountedPool, "calls", 0)
    monkeypatch.setattr(session_module, "worthwhile_workers", lambda _: workers)
    monkeypatch.setattr(session_module, "processes", lambda _: CountedPool())
    session = Session([tmp_path], cache=False, uses_processes=uses_processes)
    scope = Scope(session.runs[0].id)
    assert session.result(scope, "temporal_breakdown") == holotrace.temporal_breakdown(holotrace.open_trace(tmp_path))
    assert CountedPool.calls == 0
    assert session.result(scope, "wait_causes") == holotrace.wait_causes(holotrace.open_trace(tmp_path))
    assert CountedPool.calls == calls
