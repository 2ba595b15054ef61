"""Pools retry the calls of lost workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Hashable
from concurrent.futures import BrokenExecutor, CancelledError, Future
from pathlib import Path
from typing import Any

import pytest

from execution.killing import kill, killed_once, slow, write_slowly
from holotrace.errors import WorkerLostError
from holotrace.execution.processes import processes
from holotrace.execution.retrying import Pool, RetryingExecutor

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")


@pytest.mark.slow
def test_a_lost_worker_changes_no_result(tmp_path) -> None:
    """After one of two processes is killed, its calls are retried and all 13 results are correct."""
    with processes(2) as pool:
        futures = [pool.submit(slow, number) for number in range(6)]
        futures.append(pool.submit(killed_once, tmp_path / "mark"))
        futures += [pool.submit(slow, number) for number in range(6, 12)]
        assert [future.result() for future in futures] == [*range(6), "done", *range(6, 12)]


def test_only_the_call_that_kills_its_workers_fails() -> None:
    """A call that kills every worker fails with `lost 3 times`; the other six calls succeed."""
    with processes(2) as pool:
        before, culprit = [pool.submit(slow, number) for number in range(3)], pool.submit(kill)
        after = [pool.submit(slow, number) for number in range(3, 6)]
        with pytest.raises(WorkerLostError, match="lost 3 times"):
            culprit.result()
        assert [future.result() for future in (*before, *after)] == [0, 1, 2, 3, 4, 5]


def test_a_pool_that_cannot_start_is_an_error() -> None:
    """If no process can start, the caller gets the OSError instead of waiting forever."""

    def refused() -> Pool:
        message = "no more processes"
        raise OSError(message)

    with RetryingExecutor(refused, at_once=2) as executor, pytest.raises(OSError, match="no more processes"):
        executor.submit(abs, -1).result(timeout=10)


class LosingPool:
    """A pool that, on request, fails all running calls as if their workers had died."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []
        self.is_started = False

    def start(self) -> None:
        """Remember the start."""
        self.is_started = True

    def submit_near(self, key: Hashable, fn: Callable[..., Any], /) -> Future[Any]:  # noqa: ARG002 -- the call is never made
        """Return a future that stays pending."""
        self.futures.append(Future())
        return self.futures[-1]

    def lose(self) -> None:
        """Make every pending future fail as if its worker had died."""
        for future in self.futures:
            future.set_exception(BrokenExecutor())
        self.futures.clear()

    def shutdown(self) -> None:
        """Do nothing."""

    def terminate(self) -> None:
        """Make every pending future fail."""
        self.lose()


def test_workers_start_with_the_block() -> None:
    """A `with` block starts the pool before any call."""
    pool = LosingPool()
    with RetryingExecutor(lambda: pool, at_once=2):
        _wait_until(lambda: pool.is_started)


def test_terminate_cancels_calls_that_wait_for_a_retry() -> None:
    """`terminate` cancels running calls and calls that wait for a retry, so no caller waits forever."""
    pools = [LosingPool(), LosingPool(), LosingPool()]
    executor = RetryingExecutor(iter(pools).__next__, at_once=2)
    futures = [executor.submit(abs, number) for number in range(3)]
    for pool in pools[:2]:
        _wait_until(lambda pool=pool: len(pool.futures) == 2)
        pool.lose()
    _wait_until(lambda: len(pools[2].futures) == 1)
    executor.terminate()
    assert all(future.done() for future in futures)
    assert all(isinstance(future.exception(), CancelledError) for future in futures[:2])


def test_errors_are_not_retried() -> None:
    """A call that raises a ValueError is not repeated, and the pool stays usable."""
    with processes(1) as pool:
        assert isinstance(pool.submit(int, "no number").exception(), ValueError)
        assert pool.submit(abs, -1).result() == 1


def test_an_error_in_the_with_block_interrupts_running_calls(tmp_path) -> None:
    """An exception in the block cancels pending calls and interrupts running calls, which then remove their files."""
    started = time.monotonic()
    with pytest.raises(KeyError), processes(1) as pool:  # noqa: PT012
        futures = [pool.submit(write_slowly, tmp_path) for _ in range(4)]
        _wait_until(lambda: any(tmp_path.iterdir()))
        raise KeyError
    assert time.monotonic() - started < 50
    assert list(tmp_path.iterdir()) == []
    assert all(future.done() for future in futures)


def test_after_shutdown_no_calls_are_accepted() -> None:
    """`shutdown` waits for earlier calls and refuses later ones with a RuntimeError."""
    pool = processes(1)
    future = pool.submit(slow, 1)
    pool.shutdown()
    assert future.result() == 1
    with pytest.raises(RuntimeError, match="shut down"):
        pool.submit(slow, 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_process_that_started_them(tmp_path, number) -> None:
    """After SIGINT, SIGTERM or SIGKILL of the parent, its workers end and remove their partial files."""
    code = (
        "import pathlib, sys\nfrom execution.killing import write_slowly\nfrom holotrace.execution.processes import processes\n"
        "if __name__ == '__main__':\n  with processes(2) as pool:\n"
        "    [pool.submit(write_slowly, pathlib.Path(sys.argv[1])) for _ in range(5)][0].result()\n"
    )
    (tmp_path / "script.py").write_text(code)
    (tmp_path / "out").mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    driver = subprocess.Popen(  # noqa: S603 -- the test's own script
        [sys.executable, tmp_path / "script.py", tmp_path / "out"], env=environment, stderr=subprocess.PIPE
    )
    _wait_until(lambda: len(list((tmp_path / "out").iterdir())) == 2)
    workers = [int(draft.name.split("-")[1]) for draft in (tmp_path / "out").iterdir()]
    driver.send_signal(number)
    _, errors = driver.communicate(timeout=30)
    _wait_until(lambda: not any(map(_is_running, workers)))
    assert list((tmp_path / "out").iterdir()) == []
    assert errors.count(b"Traceback") == (1 if number == signal.SIGINT else 0)


def _is_running(process_id: int) -> bool:
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
