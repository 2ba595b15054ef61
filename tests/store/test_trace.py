"""`Trace` applies functions to its ranks, and `RankTrace` selects events."""

from __future__ import annotations

import functools
import logging
import os
import pickle
import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

import holotrace
from holotrace.errors import InvalidOptionError, NotATraceError, UnknownRankError
from holotrace.execution.executor import IN_PROCESS
from holotrace.execution.processes import processes
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace, SkippedFile, Trace
from holotrace.store.trace_file import TraceFile
from holotrace.testing import TraceBuilder

KERNELS = ["gemm", "relu", "gemm", "nccl"]


@pytest.fixture
def rank_trace(write_trace: Callable[..., Path], open_file: Callable[..., TraceFile]) -> RankTrace:
    """Return rank 3 with four kernels, which start 0, 1, 2 and 3 µs after the epoch."""
    return RankTrace(3, open_file(write_trace("a.json", KERNELS)))


@pytest.fixture
def trace(rank_trace: RankTrace) -> Trace:
    """Return a job of ranks 1, 3 and 10 with the same events."""
    ranks = {rank: RankTrace(rank, rank_trace._file) for rank in (10, 3, 1)}
    return Trace(ranks, [SkippedFile("notes.txt", "a text")])


def names(rank_trace: RankTrace) -> list[str]:
    """Return the names of the selected events."""
    return rank_trace.texts(rank_trace.table("events", ["name"])["name"]).to_list()


def is_named(name: str, rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
    """Select the events with one name."""
    column = rank_trace.table("events", ["name"])["name"]
    return (rank_trace.texts(column) == name).to_numpy()


def is_late(rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
    """Select the events that start at 1 µs or later."""
    return rank_trace.table("events", ["start_ns"])["start_ns"].to_numpy() >= 1_000


def too_short(rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
    """Return an array of one bool, although one bool per event is expected."""
    del rank_trace
    return np.array([True])


def numbers(rank_trace: RankTrace) -> npt.NDArray[Any]:
    """Return row numbers instead of bools."""
    return np.arange(rank_trace.table("events").height)


def rank_and_count(rank_trace: RankTrace) -> tuple[int, int]:
    """Return the rank and the number of its events."""
    return rank_trace.rank, rank_trace.table("events").height


def fails_on_rank_3(rank_trace: RankTrace) -> int:
    """Raise UnknownRankError on rank 3."""
    if rank_trace.rank == 3:
        message = "rank 3 fails"
        raise UnknownRankError(message)
    return rank_trace.rank


def miscounts_rank_3(rank_trace: RankTrace) -> int:
    """Raise ZeroDivisionError, a programming error, on rank 3."""
    return rank_trace.table("events").height // (rank_trace.rank != 3)


def was_held(rank_trace: RankTrace) -> bool:
    """Read the rank; return whether this process already had it in memory."""
    is_held = rank_trace.events_held > 0
    return bool(rank_trace.table("events").height) and is_held


def killed(_rank_trace: RankTrace) -> None:
    """Kill this process with SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_texts_of_ids(rank_trace: RankTrace) -> None:
    """`texts` replaces ids with strings, keeps nulls, and keeps the column's name."""
    ids = rank_trace.table("events")["name"].extend_constant(None, 1)
    assert rank_trace.texts(ids).to_list() == [*KERNELS, None]
    assert rank_trace.texts(ids).name == "name"
    assert rank_trace.strings[int(ids[0])] == "gemm"
    assert rank_trace.strings.name == "text"
    assert rank_trace.strings.dtype == pl.String


def test_events_are_counted_by_kind(rank_trace: RankTrace) -> None:
    """`event_counts` counts the events of a rank or selection by kind; only kinds that occur are listed."""
    assert rank_trace.event_counts() == {EventKind.KERNEL: 4}
    assert rank_trace.where(functools.partial(is_named, "gemm")).event_counts() == {EventKind.KERNEL: 2}
    assert rank_trace.where(functools.partial(is_named, "none")).event_counts() == {}


def test_a_selection_filters_events_alone(rank_trace: RankTrace) -> None:
    """`where` returns a rank with fewer rows in `events` but complete other tables; the original rank is unchanged."""
    selected = rank_trace.where(functools.partial(is_named, "gemm"))
    assert selected.table("events", ["event_index", "start_ns"]).rows() == [(0, 0), (2, 2_000)]
    assert selected.table("kernels").height == rank_trace.table("kernels").height == 4
    assert names(rank_trace) == KERNELS


def test_selections_add_up(rank_trace: RankTrace) -> None:
    """Several selections, in any order, keep the events that all of them select.

    Each selection is evaluated on all events, not only on those that the others keep.
    """
    gemm, late = functools.partial(is_named, "gemm"), is_late
    for first, second in ((gemm, late), (late, gemm)):
        selected = rank_trace.where(first).where(second)
        assert selected.table("events", ["start_ns"]).rows() == [(2_000,)]
        assert selected.unselected.event_counts() == {EventKind.KERNEL: 4}


@pytest.mark.parametrize("selection", [too_short, numbers])
def test_a_selection_must_judge_every_event(
    rank_trace: RankTrace, selection: Callable[[RankTrace], npt.NDArray[Any]]
) -> None:
    """If a selection does not return one bool per event, the error names its function."""
    with pytest.raises(InvalidOptionError, match=rf"{selection.__name__}.*must return 4 bools"):
        rank_trace.where(selection).table("events")


def test_derived_results_are_remembered(rank_trace: RankTrace) -> None:
    """`derive` calls a function once for the whole rank, and once for each selection of the rank's events."""
    calls: list[int] = []

    def count(rank_trace: RankTrace) -> int:
        calls.append(rank_trace.table("events").height)
        return calls[-1]

    selected = rank_trace.where(is_late)
    assert [events.derive(count) for events in (rank_trace, selected, rank_trace, selected)] == [4, 3, 4, 3]
    assert calls == [4, 3]
    assert selected.unselected.derive(count) == 4
    assert calls == [4, 3]


def test_forgetting_derives_again(rank_trace: RankTrace) -> None:
    """After `forget`, results are derived again and equal the first ones."""
    selected = rank_trace.where(is_late)
    before = selected.derive(names)
    selected.forget()
    assert selected.derive(names) is not before
    assert selected.derive(names) == before == KERNELS[1:]


def test_a_rank_pickles_with_its_selections(rank_trace: RankTrace) -> None:
    """A pickled rank has less than 1,000 bytes and keeps its selection."""
    selected = rank_trace.where(is_late).where(functools.partial(is_named, "gemm"))
    assert names(selected) == ["gemm"]
    pickled = pickle.dumps(selected)
    assert len(pickled) < 1_000
    copy = pickle.loads(pickled)  # noqa: S301 -- the test pickled it
    assert (copy.rank, copy.source, names(copy)) == (3, rank_trace.source, ["gemm"])


def test_a_rank_with_data_pickles_small(trace: Trace) -> None:
    """Reading tables does not change the size of a rank's pickle, which is below 1,000 bytes."""
    rank_trace = trace.ranks[3]
    before = len(pickle.dumps(rank_trace))
    assert rank_trace.table("events").height
    assert len(pickle.dumps(rank_trace)) == before < 1_000


def test_ranks_are_sorted(trace: Trace) -> None:
    """Ranks given as 10, 3, 1 are sorted to 1, 3, 10."""
    assert list(trace.ranks) == [1, 3, 10]
    assert list(trace.map(rank_and_count)) == [1, 3, 10]


def test_selecting_ranks(trace: Trace) -> None:
    """`select` keeps the given ranks and the list of skipped files; `select(None)` keeps all ranks."""
    assert trace.select(None) is trace
    chosen = trace.select([10, 1])
    assert list(chosen.ranks) == [1, 10]
    assert chosen.skipped == (SkippedFile("notes.txt", "a text"),)


def test_an_unknown_rank_lists_the_known_ones(trace: Trace) -> None:
    """The error for rank 2 lists 1, 3 and 10."""
    with pytest.raises(UnknownRankError, match="no rank 2 in this trace; its ranks are: 1, 3, 10"):
        trace.select([1, 2])


def test_an_empty_selection_of_ranks_is_refused(trace: Trace) -> None:
    """`select([])` raises an error instead of returning a job without ranks."""
    with pytest.raises(InvalidOptionError, match="selects no rank"):
        trace.select([])


def test_unreadable_files_are_skipped(
    trace: Trace, open_file: Callable[..., TraceFile], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`readable` skips rank 5 with a warning; if no rank is readable, it raises the error."""
    (tmp_path / "bad.json").write_text('[{"no": "event"}]', encoding="utf-8")
    bad = RankTrace(5, open_file(tmp_path / "bad.json"))
    with caplog.at_level(logging.WARNING, "holotrace"):
        rest = Trace({**trace.ranks, 5: bad}, trace.skipped).readable()
    assert list(rest.ranks) == [1, 3, 10]
    assert [file.path for file in rest.skipped] == ["notes.txt", bad.source]
    assert "is not a profiler trace" in rest.skipped[1].reason
    assert caplog.messages == [f"skipped: {rest.skipped[1].reason}"]
    assert trace.readable() is trace
    with pytest.raises(NotATraceError):
        Trace({5: bad}).readable()


def test_a_selection_holds_for_every_rank(trace: Trace) -> None:
    """`Trace.where` keeps three of four events on each of three ranks."""
    assert trace.where(is_late).map(rank_and_count) == {1: (1, 3), 3: (3, 3), 10: (10, 3)}


@pytest.fixture(params=["in process", "threads", "processes"])
def executor(request: pytest.FixtureRequest) -> Any:
    """Return each kind of executor in turn."""
    if request.param == "in process":
        yield IN_PROCESS
        return
    with ThreadPoolExecutor(2) if request.param == "threads" else processes(2) as pool:
        yield pool


def test_every_executor_gives_the_same(trace: Trace, executor: Executor) -> None:
    """`map` on selections returns the same result in process, with threads and with processes."""
    selected = trace.where(functools.partial(is_named, "gemm"))
    assert selected.map(rank_and_count, executor) == {1: (1, 2), 3: (3, 2), 10: (10, 2)}


def test_every_executor_raises_the_same(trace: Trace, executor: Executor) -> None:
    """On every executor, `map` raises the error of rank 3 with its type and message."""
    with pytest.raises(UnknownRankError, match=r"^rank 3 fails$"):
        trace.map(fails_on_rank_3, executor)


def test_ranks_after_an_error_are_not_started(trace: Trace) -> None:
    """Without an executor, an error on rank 3 stops the work before rank 10."""
    begun: list[int] = []

    def function(rank_trace: RankTrace) -> int:
        begun.append(rank_trace.rank)
        return fails_on_rank_3(rank_trace)

    with pytest.raises(UnknownRankError):
        trace.map(function)
    assert begun == [1, 3]


def test_a_failing_rank_can_be_skipped(
    trace: Trace,
    executor: Executor,
    open_file: Callable[..., TraceFile],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With `on_error="skip"`, failing ranks are logged and left out of the result; the trace is unchanged."""
    (tmp_path / "bad.json").write_text('[{"no": "event"}]', encoding="utf-8")
    bad = RankTrace(5, open_file(tmp_path / "bad.json"))
    lenient = Trace({**trace.ranks, 5: bad}, trace.skipped, on_error="skip")
    with caplog.at_level(logging.WARNING, "holotrace"):
        visit = lenient.visit(miscounts_rank_3, executor)
    assert (visit.results, list(visit.trace.ranks)) == ({1: 4, 10: 4}, [1, 10])
    assert (list(lenient.ranks), lenient.skipped) == ([1, 3, 5, 10], trace.skipped)
    reasons = [file.reason for file in visit.trace.skipped[1:]]
    assert reasons[0].startswith("rank 3: ZeroDivisionError: integer division or modulo by zero")
    assert reasons[1].startswith(f"{bad.source} is not a profiler trace: ")
    assert caplog.messages == list(visit.findings) == [f"skipped: {reason}" for reason in reasons]
    assert visit.trace.map(miscounts_rank_3, executor) == visit.results
    assert len(caplog.messages) == 2
    assert lenient.map(miscounts_rank_3, executor) == visit.results
    assert len(caplog.messages) == 4


def test_errors_in_the_call_end_the_work(trace: Trace, executor: Executor) -> None:
    """With `on_error="skip"`, an error in the call itself, such as an unknown rank, is still raised."""
    with pytest.raises(UnknownRankError, match=r"^rank 3 fails$"):
        Trace(trace.ranks, on_error="skip").map(fails_on_rank_3, executor)


@pytest.mark.skipif(os.name == "nt", reason="workers are killed by signals")
def test_a_broken_pool_ends_the_work(trace: Trace) -> None:
    """With `on_error="skip"`, a broken process pool still raises an error, because every rank fails."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(BrokenExecutor):
        Trace(trace.ranks, on_error="skip").map(killed, pool)


def test_if_every_rank_fails_the_first_error_is_raised(trace: Trace, executor: Executor) -> None:
    """With `on_error="skip"`, the error is raised if the only selected rank fails, because no rank would remain."""
    lenient = Trace(trace.ranks, on_error="skip").select([3]).where(is_late)
    with pytest.raises(ZeroDivisionError):
        lenient.map(miscounts_rank_3, executor)


def test_least_recently_used_ranks_are_forgotten(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit on events in memory leaves room for only two ranks, so rank 1 is dropped and later read again."""
    monkeypatch.setattr("holotrace.store.trace._MOST_EVENTS_HELD", 25_000)
    before = trace.map(rank_and_count)
    assert [rank for rank, rank_trace in trace.ranks.items() if rank_trace.events_held] == [3, 10]
    assert trace.select([1]).map(rank_and_count) == {1: before[1]}
    assert trace.map(rank_and_count) == before


@pytest.mark.slow
def test_a_worker_keeps_the_ranks_of_earlier_visits(trace: Trace) -> None:
    """During the second `map`, the worker still has the ranks of the first one in memory.

    If the trace is opened again, the worker reads its ranks again.
    """
    opened_again = Trace({rank: RankTrace(rank, rank_trace.file) for rank, rank_trace in trace.ranks.items()})
    with processes(1) as pool:
        assert trace.map(was_held, pool) == {1: False, 3: False, 10: False}
        assert trace.select([3, 10]).map(was_held, pool) == {3: True, 10: True}
        assert opened_again.map(was_held, pool) == {1: False, 3: False, 10: False}


def test_a_job_pickles(trace: Trace) -> None:
    """After pickling and unpickling, a job has the same ranks, events and skipped files."""
    copy = pickle.loads(pickle.dumps(trace))  # noqa: S301 -- the test pickled it
    assert copy.map(rank_and_count) == trace.map(rank_and_count)
    assert copy.skipped == trace.skipped


def test_representations_name_ranks_and_files(trace: Trace) -> None:
    """`repr` of a trace lists its ranks; `repr` of a rank begins with its number and file."""
    assert repr(trace) == "Trace(ranks=[1, 3, 10])"
    assert repr(trace.ranks[3]).startswith("RankTrace(rank=3, source=")


def test_a_notebook_shows_ranks_steps_devices_and_health(tmp_path) -> None:
    """A notebook shows one row per rank, with escaped names, and the error of an unreadable file."""
    builder = TraceBuilder().step(1, 0, 10).step(2, 10, 10).kernel("gemm", start_us=0, duration_us=5)
    builder.header(deviceProperties=[{"id": 0, "name": "<b>H100</b>"}, {"id": 1, "name": "<b>H100</b>"}])
    (path,) = builder.write(tmp_path)
    (tmp_path / "rank1.json").write_text('[{"no": "event"}]', encoding="utf-8")
    trace = holotrace.open_trace({0: path, 1: tmp_path / "rank1.json"}, cache=False)
    html = trace._repr_html_()

    assert html.count("<tr>") == 3
    assert f"<td>0</td><td>{path}</td><td>2</td><td>2 of &lt;b&gt;H100&lt;/b&gt;</td><td>3</td><td>clean</td>" in html
    assert "<td>unreadable: " in html
    assert "<b>" not in html


def test_a_notebook_shows_a_few_of_many_ranks() -> None:
    """A notebook shows 8 of 20 ranks and says how many are not shown."""
    builder = TraceBuilder()
    for rank in range(20):
        builder.rank(rank).kernel("gemm", start_us=0, duration_us=5)
    html = builder.build()._repr_html_()

    assert html.count("<tr>") == 9
    assert "… and 12 more ranks." in html
