"""After a broken connection, reading resumes or fails with a one-line error, and leaves no files behind."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

import holotrace
from holotrace.errors import UnreadableTraceError
from holotrace.testing.synthetic import write_job
from remote.faults import FaultyProxy, faulty_proxy
from remote.stores import Store

pytestmark = pytest.mark.stores

_SERVER_OF = {"s3": "s3", "gcs": "gcs", "azure": "azure", "webhdfs": "hdfs"}
"""The server of each store that can be reached through a proxy.

The store `hdfs` is missing, because the NameNode sends its clients directly to the DataNode.
"""

_SOME = 2_000_000
"""The server sends this many bytes before the fault: more than `peek` reads, but less than the whole file."""


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.xdist_group(server)) for name, server in _SERVER_OF.items()]
)
def store(request) -> Store:
    """Return each store that can be reached through a proxy."""
    running: Store = request.getfixturevalue(request.param)
    return running


@pytest.fixture(scope="session")
def large_trace(tmp_path_factory) -> Path:
    """Write an uncompressed trace of several megabytes."""
    folder = tmp_path_factory.mktemp("large")
    write_job(folder, ranks=1, steps=12, layers=12)
    (packed,) = folder.glob("*.gz")
    path = packed.with_suffix("")
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


@pytest.fixture
def url(store, large_trace) -> str:
    """Put the trace into the store; return its URL."""
    store.put("large/rank0.json", large_trace.read_bytes())
    return f"{store.root}/large/rank0.json"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch) -> None:
    """Shorten the pauses between attempts, but not the number of attempts."""
    monkeypatch.setattr("holotrace.locations.remote_bytes.FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr("botocore.retryhandler.delay_exponential", lambda *_, **__: 0.01)
    monkeypatch.setattr("s3fs.core.asyncio", Impatient())
    monkeypatch.setattr("gcsfs.retry.asyncio", Impatient())
    policy = "azure.storage.blob._shared.policies_async.ExponentialRetry"
    monkeypatch.setattr(f"{policy}.get_backoff_time", lambda *_: 0.01)


class Impatient:
    """Stands in for the module `asyncio`; every `sleep` takes only 10 ms."""

    def __getattr__(self, name: str) -> object:
        return getattr(asyncio, name)

    async def sleep(self, _seconds: float) -> None:
        """Sleep for 10 ms."""
        await asyncio.sleep(0.01)


def go_through(proxy: FaultyProxy, store: Store, monkeypatch) -> None:
    """Set the environment of a user who reaches the store through the proxy."""
    conf = pytest.importorskip("fsspec.config").conf
    monkeypatch.setitem(conf, "webhdfs", {"data_proxy": {f":{store.port}/": f":{proxy.port}/"}})
    monkeypatch.setenv("FSSPEC_OF_THIS_TEST", str(proxy.port))  # a changed environment makes fsspec create a new client
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value.replace(f":{store.port}", f":{proxy.port}"))


def expect_no_files(folder: Path) -> None:
    """Check that the cache contains no files of an unfinished read."""
    assert [path for path in folder.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("fault", ["cut", "silence"])
def test_reading_survives_a_broken_connection(store, url, large_trace, monkeypatch, fault) -> None:
    """Reading completes even if the connection is reset in mid-file, or if no more data arrives before the timeout."""
    monkeypatch.setenv("HOLOTRACE_TIMEOUT_S", "1")
    with faulty_proxy(store.port, fault=fault, after=_SOME) as proxy:
        go_through(proxy, store, monkeypatch)
        events = holotrace.open_trace(url, cache=False).ranks[0].table("events")
    assert proxy.faults == 1
    assert_frame_equal(events, holotrace.open_trace(large_trace, cache=False).ranks[0].table("events"))


def test_a_connection_that_always_breaks_is_a_one_line_error(store, url, monkeypatch, tmp_path) -> None:
    """If every connection breaks in mid-file, the error is one line with the URL, and the cache stays empty."""
    with faulty_proxy(store.port, after=_SOME, times=None) as proxy:
        go_through(proxy, store, monkeypatch)
        with pytest.raises(UnreadableTraceError) as caught:
            holotrace.open_trace(url).ranks[0].table("events")
    assert proxy.faults > 1
    assert str(caught.value).startswith(f"{url} cannot be read: ")
    assert "\n" not in str(caught.value)
    expect_no_files(tmp_path / "cache")


def test_an_unreachable_server_is_a_one_line_error(store, url, monkeypatch) -> None:
    """If no server listens on the port, the error is one line with the URL."""
    with faulty_proxy(store.port) as proxy:
        go_through(proxy, store, monkeypatch)
    with pytest.raises(UnreadableTraceError, match=r"^\S+ cannot be read: .+") as caught:
        holotrace.open_trace(url)
    assert "\n" not in str(caught.value)
