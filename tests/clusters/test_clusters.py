"""Clusters return the same results as this process, byte for byte, even if a worker is killed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest

from holotrace.errors import WorkerLostError
from holotrace.execution.dask import DaskExecutor
from holotrace.execution.executor import IN_PROCESS
from holotrace.testing.synthetic import write_job
from holotrace.whole_job.summary import FIRST

pytestmark = [
    pytest.mark.clusters,
    pytest.mark.timeout(300),  # Ray starts slowly on a busy machine
    pytest.mark.skipif(os.name == "nt", reason="workers are killed by signals"),
]

Run = Callable[..., bytes]
BESIDE_PYTHON = Path(sys.executable).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with a small job; the cache and the results go there too."""
    path = tmp_path_factory.mktemp("clusters")
    write_job(path / "job", ranks=3, steps=2, layers=2)
    return path


@pytest.fixture(scope="module")
def short_folder() -> Iterator[str]:
    """Return a folder with a short path, because the paths of Ray's sockets may have at most 108 bytes."""
    with TemporaryDirectory(prefix="holotrace-", dir="/tmp") as name:
        yield name


@pytest.fixture(scope="module")
def run(folder, short_folder) -> Run:
    """Return a function that runs a Python module in a process and returns its stdout."""
    environment = {
        **os.environ,
        "HOLOTRACE_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "POLARS_MAX_THREADS": "1",
        "RAY_TMPDIR": short_folder,
    }

    def run_(*arguments: object, before: tuple[str, ...] = ()) -> bytes:
        command = [*before, sys.executable, "-m", *map(str, arguments)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=240, check=False)  # noqa: S603
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    return run_


@pytest.fixture(scope="module")
def expected(folder, run) -> dict[str, bytes]:
    """Return the results that the analyses give without an executor."""
    return answers(folder, run, "none")


@pytest.fixture(scope="module")
def dask_scheduler(folder) -> Iterator[str]:
    """Start a Dask scheduler and two workers, which restart when killed; return the scheduler's address."""
    require("distributed")
    address_file = folder / "scheduler.json"
    common = ("--scheduler-file", str(address_file), "--host", "127.0.0.1", "--no-dashboard")
    worker = ("dask", "worker", *common, "--nthreads", "1", "--memory-limit", "1GB", "--death-timeout", "120")
    started = [
        start(folder, "dask", "scheduler", *common, "--port", "0"),
        start(folder, *worker),
        start(folder, *worker),
    ]
    try:
        yield address_in(address_file)
    finally:
        stop(started)


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "worker killed"])
def test_dask(folder, run, expected, dask_scheduler, is_killed) -> None:
    """Results from two Dask workers over TCP equal those without an executor, even if a worker is killed."""
    assert answers(folder, run, dask_scheduler, is_killed=is_killed) == expected


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "worker killed"])
def test_ray(folder, run, expected, is_killed) -> None:
    """Results from Ray with two CPUs equal those without an executor, even if a worker is killed."""
    require("ray")
    assert answers(folder, run, "ray", is_killed=is_killed) == expected


def test_mpi(folder, run, expected) -> None:
    """Results from two MPI ranks equal those without an executor. No rank is killed, because that would end the job."""
    assert answers(folder, run, "mpi", before=mpiexec("2"), runner=("mpi4py.futures", "-m")) == expected


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "worker killed"])
def test_processes(folder, run, expected, is_killed) -> None:
    """Results from two local processes equal those without an executor, even if a process is killed."""
    assert answers(folder, run, "processes", is_killed=is_killed) == expected


def test_commands_work_on_clusters(folder, run, dask_scheduler) -> None:
    """`summary --json` prints the same with `--dask` or `--mpi` as without."""
    command = ("holotrace", "summary", folder / "job", "--json")
    printed = run(*command)
    assert set(json.loads(printed)["analyses"]) == {"diagnosis", *FIRST}
    assert run(*command, "--dask", dask_scheduler) == printed
    assert run("mpi4py.futures", "-m", *command, "--mpi", before=mpiexec("2")) == printed


def test_an_unreachable_scheduler_is_a_one_line_error(folder) -> None:
    """The one-line error quotes `--dask` and its address, and says that no scheduler answers there."""
    require("distributed")
    command = [sys.executable, "-m", "holotrace", "summary", folder / "job", "--dask", "tcp://127.0.0.1:9"]
    done = subprocess.run(command, capture_output=True, check=False, text=True)  # noqa: S603
    assert done.returncode == 1
    assert done.stderr.startswith("holotrace: --dask tcp://127.0.0.1:9: no scheduler answers there")
    assert done.stderr.count("\n") == 1


def test_mpi_without_another_process_is_a_one_line_error(folder) -> None:
    """Without a second MPI process, `--mpi` fails with advice to start with mpiexec."""
    require("mpi4py")
    command = [sys.executable, "-m", "holotrace", "summary", folder / "job", "--mpi"]
    done = subprocess.run(command, capture_output=True, check=False, text=True)  # noqa: S603
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("holotrace: --mpi: the job has no other process; start with mpiexec")


def test_a_lost_worker_is_a_worker_lost_error() -> None:
    """If Dask loses a worker, a WorkerLostError quotes Dask's message; errors of the submitted function are unchanged."""
    distributed = pytest.importorskip("distributed")
    executor = DaskExecutor(SimpleNamespace(get_executor=lambda: IN_PROCESS))
    error = executor.submit(
        raise_, distributed.KilledWorker("one", SimpleNamespace(address="tcp://127.0.0.1:1"), 3)
    ).exception()
    assert isinstance(error, WorkerLostError)
    assert str(error).startswith("Dask lost the worker and gave up: KilledWorker: ")
    assert isinstance(executor.submit(int, "no number").exception(), ValueError)


def raise_(error: Exception) -> None:
    """Raise the given error in a worker."""
    raise error


def answers(
    folder: Path, run: Run, engine: str, *, is_killed: bool = False, **options: tuple[str, ...]
) -> dict[str, bytes]:
    """Run all analyses on `engine`, and return their tables as {file name: content}."""
    out = (
        folder / f"answers of {'ray' if engine == 'ray' else engine.partition(':')[0]}{' killed' if is_killed else ''}"
    )
    out.mkdir()
    mark = out / "killed"
    runner = options.pop("runner", ())
    run(*runner, "clusters.answers", engine, folder / "job", out, *([mark] if is_killed else []), **options)
    if is_killed:
        mark.unlink()  # raises FileNotFoundError if no worker was killed
    return {path.name: path.read_bytes() for path in out.iterdir()}


def require(package: str) -> None:
    """Skip the test if a package is not installed."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def mpiexec(count: str) -> tuple[str, ...]:
    """Return the command that starts `count` MPI processes; skip the test without MPI."""
    require("mpi4py")
    program = shutil.which("mpiexec", path=os.pathsep.join([str(BESIDE_PYTHON), os.environ.get("PATH", "")]))
    if program is None:
        pytest.skip("mpiexec is not installed")
    return (program, "-n", count)


def start(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    """Start a program installed next to the Python interpreter, and write its output to a file."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "POLARS_MAX_THREADS": "1",
    }
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 -- the test chooses the program
            [BESIDE_PYTHON / command[0], *command[1:]],
            cwd=folder,
            env={**environment, "HOLOTRACE_CACHE_DIR": str(folder / "cache")},
            stdout=log,
            stderr=log,
        )


def stop(started: list[subprocess.Popen[bytes]]) -> None:
    """Stop programs in reverse order of their start, and wait until they have ended."""
    for process in reversed(started):
        process.terminate()
        process.wait(60)


def address_in(path: Path) -> str:
    """Wait until the scheduler has written its file; return the address in it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return str(json.loads(path.read_text())["address"])
        time.sleep(0.05)
    pytest.fail(f"no scheduler within a minute: {path} is missing or incomplete")
