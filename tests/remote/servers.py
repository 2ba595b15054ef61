"""Real servers of the stores, each a process of its own on a free port of this machine."""

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
"""Where `make test-servers` puts them."""

HERE = "127.0.0.1"
_PATIENCE_S = 90
_LEASH = Path(__file__).with_name("leash.py")


def free_port() -> int:
    """Return a port that nobody listens to."""
    with socket.create_server((HERE, 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def is_answering(port: int) -> bool:
    """Whether somebody listens to the port."""
    with socket.socket() as client:
        return client.connect_ex((HERE, port)) == 0


@contextmanager
def running(command: list[str | Path], log: Path, is_ready: Callable[[], bool], **environment: str) -> Iterator[None]:
    """Run a server until the block ends; what it says goes to `log`."""
    with (
        log.open("wb") as said,
        subprocess.Popen(  # noqa: S603 -- the server
            [sys.executable, _LEASH, *command],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            cwd=log.parent,
        ) as process,
    ):
        _wait(process, log, is_ready)
        yield


def program(name: str) -> Path:
    """Return the path of a program, also one that was installed beside this Python; skips the test where it is missing."""
    found = shutil.which(name) or shutil.which(name, path=Path(sys.executable).parent)
    if found is None:
        pytest.skip(f"{name} is not on this machine")
    return Path(found)


def installed(name: str) -> Path:
    """Return the path of what `make test-servers` installs; skips the test where it did not."""
    path = INSTALLED / name
    if not path.exists():
        pytest.skip(f"{path} is not there; make test-servers")
    return path


def _wait(process: subprocess.Popen[bytes], log: Path, is_ready: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not is_ready():
        if process.poll() is not None or time.monotonic() > end:
            pytest.fail(f"the server did not start; its last words:\n{log.read_text(errors='replace')[-2_000:]}")
        time.sleep(0.05)
