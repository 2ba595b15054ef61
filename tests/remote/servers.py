"""Runs servers of remote stores, such as S3, as processes on free ports of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

INSTALLED = Path(__file__).parents[2] / "build" / "test-servers"
"""The folder into which `make test-servers` installs servers."""

HERE = "127.0.0.1"
_PATIENCE_S = 90
_LEASH = Path(__file__).with_name("leash.py")


def free_port() -> int:
    """Return a port that no server uses."""
    with socket.create_server((HERE, 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def is_answering(port: int) -> bool:
    """Whether a server listens on the port."""
    with socket.socket() as client:
        return client.connect_ex((HERE, port)) == 0


@contextmanager
def running(command: list[str | Path], log: Path, is_ready: Callable[[], bool], **environment: str) -> Iterator[None]:
    """Run a server until the block ends; write its output to `log`."""
    with (
        log.open("wb") as output,
        subprocess.Popen(  # noqa: S603 -- the tests choose the server
            [sys.executable, _LEASH, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            cwd=log.parent,
        ) as process,
    ):
        _wait(process, log, is_ready)
        yield


def program(name: str) -> Path:
    """Return the path of a program that is on PATH or beside Python; skip the test if it is missing."""
    path = shutil.which(name) or shutil.which(name, path=Path(sys.executable).parent)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return Path(path)


def installed(name: str) -> Path:
    """Return the path of a server installed by `make test-servers`; skip the test if it is missing."""
    path = INSTALLED / name
    if not path.exists():
        pytest.skip(f"{path} is missing; run make test-servers")
    return path


def _wait(process: subprocess.Popen[bytes], log: Path, is_ready: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not is_ready():
        if process.poll() is not None or time.monotonic() > end:
            pytest.fail(f"the server did not start; the end of its output:\n{log.read_text(errors='replace')[-2_000:]}")
        time.sleep(0.05)
