"""`processes` creates a pool of processes on this machine."""

from __future__ import annotations

import os
import platform

import pytest

from execution.allocating import faults_of_an_array
from execution.killing import slow_process_id
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, submit_near
from holotrace.execution.freed_memory import ALLOCATOR_VARIABLE
from holotrace.execution.processes import (
    available_cores,
    available_memory_bytes,
    default_worker_count,
    processes,
    reader_threads,
)
from holotrace.execution.worker import THREADS_VARIABLE


def test_work_runs_in_another_process() -> None:
    """A call runs in a process whose id differs from the caller's."""
    with processes(1) as pool:
        assert pool.submit(os.getpid).result() != os.getpid()


def test_calls_with_the_same_key_run_in_the_same_worker() -> None:
    """Calls with different keys go to different idle workers; a later call goes to the worker that ran its key."""
    with processes(2) as pool:
        calls = {key: submit_near(pool, key, slow_process_id) for key in "ab"}
        first = {key: call.result() for key, call in calls.items()}
        assert len(set(first.values())) == 2
        for key in "baab":
            assert submit_near(pool, key, os.getpid).result() == first[key]


def test_an_idle_worker_takes_calls_of_a_busy_one() -> None:
    """Six slow calls with the same key run on both workers, so neither worker stays idle."""
    with processes(2) as pool:
        calls = [submit_near(pool, "key", slow_process_id) for _ in range(6)]
        assert len({call.result() for call in calls}) == 2


def test_executors_without_workers_ignore_the_key() -> None:
    """For an executor without workers, `submit_near` is the same as `submit`."""
    assert submit_near(IN_PROCESS, "key", abs, -1).result() == 1


def test_workers_share_the_cores() -> None:
    """With twice as many workers as cores, each worker gets one Polars thread and one reader thread."""
    workers = 2 * available_cores()
    with processes(workers) as pool:
        assert pool.submit(os.getenv, "POLARS_MAX_THREADS").result() == "1"
        assert pool.submit(reader_threads).result() == 1


def test_workers_keep_freed_memory_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """In workers, Polars' allocator keeps freed memory for a while.

    The user's setting is appended to that of holotrace, so the user's takes precedence.
    """
    monkeypatch.delenv(ALLOCATOR_VARIABLE, raising=False)
    with processes(1) as pool:
        assert "dirty_decay_ms:10000" in (pool.submit(os.getenv, ALLOCATOR_VARIABLE).result() or "")
    monkeypatch.setenv(ALLOCATOR_VARIABLE, "dirty_decay_ms:0")
    with processes(1) as pool:
        assert (pool.submit(os.getenv, ALLOCATOR_VARIABLE).result() or "").endswith("dirty_decay_ms:0")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="workers configure only glibc's allocator")
def test_workers_reuse_memory_that_numpy_frees(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second array of 3 MB reuses the freed memory of the first and causes almost no page faults."""
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    with processes(1) as pool:
        first, second = (pool.submit(faults_of_an_array, 3 << 20).result() for _ in range(2))
    assert second * 4 < first


def test_a_single_worker_gets_all_cores() -> None:
    """The worker of a pool with one process reads with one thread per core."""
    with processes(1) as pool:
        assert pool.submit(reader_threads).result() == available_cores()


@pytest.mark.parametrize("workers", [0, -1])
def test_a_pool_without_workers_is_refused(workers: int) -> None:
    """For 0 or -1 workers, the error quotes the number."""
    with pytest.raises(InvalidOptionError, match=f"workers={workers}"):
        processes(workers)


def test_memory_is_unknown_without_proc(monkeypatch) -> None:
    """Without /proc, which some sandboxes lack, only the number of cores limits the pool."""

    def fail() -> None:
        raise FileNotFoundError(2, "No such file or directory", "/proc/meminfo")

    monkeypatch.setattr("psutil.virtual_memory", fail)
    monkeypatch.setattr("holotrace.execution.processes._free_in_container", lambda: None)
    assert available_memory_bytes() is None
    assert default_worker_count() == available_cores()


def test_the_default_fits_the_machine() -> None:
    """The default is at least one worker, and at most one per core and per GiB of free memory."""
    memory = available_memory_bytes()
    assert 1 <= default_worker_count() <= available_cores()
    assert memory is None or default_worker_count() <= max(1, memory >> 30)


@pytest.mark.parametrize(("text", "threads"), [("", None), ("3", 3), ("0", None), ("many", None), ("-1", None)])
def test_the_threads_variable(monkeypatch: pytest.MonkeyPatch, text: str, threads: int | None) -> None:
    """A positive number in HOLOTRACE_THREADS limits the reader's threads; any other text leaves them unlimited."""
    monkeypatch.setenv(THREADS_VARIABLE, text)
    assert reader_threads() == threads
