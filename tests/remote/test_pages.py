"""`holotrace serve` and the TensorBoard tab show runs in a bucket; both are started as users start them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dash")

import holotrace
from holotrace.catalogue import analysis
from holotrace.figures import figure_of
from jobs import gpu_job
from remote.servers import HERE, free_port
from remote.stores import Store
from web_client import WebClient, components

pytestmark = [pytest.mark.stores, pytest.mark.xdist_group("s3")]


@dataclass
class Answer:
    """The response of a server."""

    status_code: int
    data: bytes


@dataclass
class Http:
    """Sends requests to addresses below `base`."""

    base: str

    def get(self, path: str, **_: Any) -> Answer:
        """Send a GET request."""
        return self._request(urllib.request.Request(self.base + path))  # noqa: S310 -- the URL of a test server

    def post(self, path: str, json: Any) -> Answer:
        """Send a POST request with JSON."""
        headers = {"Content-Type": "application/json"}
        return self._request(urllib.request.Request(self.base + path, as_json(json), headers))  # noqa: S310

    def _request(self, request: urllib.request.Request) -> Answer:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return Answer(answer.status, answer.read())


def as_json(value: Any) -> bytes:
    """Return a value as JSON bytes."""
    return json.dumps(value).encode()


class ServedPages(WebClient):
    """The pages of a running server, requested over HTTP."""

    def __init__(self, base: str) -> None:
        self.http = Http(base.rstrip("/"))
        self._known = json.loads(self.get("/_dash-dependencies").data)


@pytest.fixture
def logs(s3: Store, tmp_path, monkeypatch) -> str:
    """Put two runs into a bucket; return the URL of their folder."""
    gpu_job().write(tmp_path / "job")
    for run in ("baseline", "larger_batch"):
        for path in (tmp_path / "job").iterdir():
            s3.put(f"logs/{run}/{path.name}", path.read_bytes())
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return f"{s3.root}/logs"


@contextmanager
def started(*command: str, sign: str) -> Iterator[str]:
    """Run a server; return the first line of its output that contains `sign`."""
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(  # noqa: S603 -- the program under test
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ
    ) as process:
        try:
            assert process.stdout is not None
            output = []
            for line in process.stdout:
                output.append(line)
                if sign in line:
                    break
            else:
                pytest.fail("".join(output))
            yield line
        finally:
            process.terminate()


def expect_runs(pages: ServedPages, job: Path) -> None:
    """Check that the pages list both runs, and that the first run's figure equals that of the local job."""
    chosen = json.dumps(pages.page("?view=overview")["selectors"])
    assert all(f'"{run}"' in chosen for run in ("baseline", "larger_batch"))
    (graph,) = components(pages.part("?view=temporal_breakdown", "temporal_breakdown"), "Graph")
    breakdown = analysis("temporal_breakdown")
    figure = figure_of(breakdown.name, breakdown.compute(holotrace.open_trace(job)))
    assert graph["figure"]["data"] == json.loads(figure.to_json())["data"]


def test_serve_shows_the_runs_in_a_bucket(logs, tmp_path) -> None:
    """`holotrace serve` lists two runs in a bucket and shows them like local runs."""
    with started("holotrace", "serve", logs, "--port", "0", "--no-token", sign=" at http") as line:
        assert line.startswith("2 runs")
        expect_runs(ServedPages(line.split()[-1]), tmp_path / "job")


def test_the_tensorboard_tab_shows_the_runs_in_a_bucket(logs, tmp_path) -> None:
    """With a bucket as log folder, the TensorBoard tab shows both runs like local runs."""
    pytest.importorskip("tensorboard")
    if "holotrace" not in entry_points(group="tensorboard_plugins").names:
        pytest.skip("TensorBoard does not find holotrace: install the package again")
    port = free_port()
    with started("tensorboard.main", "--logdir", logs, "--host", HERE, "--port", str(port), sign="TensorBoard "):
        plugins = json.loads(Http(f"http://{HERE}:{port}").get("/data/plugins_listing").data)
        assert plugins["holotrace"]["enabled"]
        expect_runs(ServedPages(f"http://{HERE}:{port}/data/plugin/holotrace/app"), tmp_path / "job")
