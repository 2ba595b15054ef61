"""Connections that break: reading goes on where it stopped, or fails in one line and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

import holotrace
from holotrace.errors import UnreadableTraceError
from holotrace.testing.synthetic import write_job
from remote.faults import Between, between
from remote.stores import Store

pytestmark = pytest.mark.stores

_SERVER_OF = {"s3": "s3", "gcs": "gcs", "azure": "azure", "webhdfs": "hdfs"}
"""hdfs is left out: its client asks the NameNode for the address of the bytes, which nobody can stand before."""

_SOME = 2_000_000
"""Bytes that come before the fault: more than the first look at a file takes, less than the pieces after it have."""


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.xdist_group(of)) for name, of in _SERVER_OF.items()])
def store(request) -> Store:
    """A store whose users have a choice of ways to it."""
    found: Store = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def large_trace(tmp_path_factory) -> Path:
    """A trace of some megabytes, not compressed."""
    folder = tmp_path_factory.mktemp("large")
    write_job(folder, ranks=1, steps=12, layers=12)
    (packed,) = folder.glob("*.gz")
    path = packed.with_suffix("")
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


@pytest.fixture
def url(store, large_trace) -> str:
    """The trace in the store."""
    store.put("large/rank0.json", large_trace.read_bytes())
    return f"{store.root}/large/rank0.json"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch) -> None:
    """Nobody waits before they try again; how often they try stays as it is."""
    monkeypatch.setattr("holotrace.locations.remote_bytes.FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr("botocore.retryhandler.delay_exponential", lambda *_, **__: 0.01)
    monkeypatch.setattr("s3fs.core.asyncio", Impatient())
    monkeypatch.setattr("gcsfs.retry.asyncio", Impatient())
    policy = "azure.storage.blob._shared.policies_async.ExponentialRetry"
    monkeypatch.setattr(f"{policy}.get_backoff_time", lambda *_: 0.01)


class Impatient:
    """asyncio, but for its sleep."""

    def __getattr__(self, name: str) -> object:
        return getattr(asyncio, name)

    async def sleep(self, _seconds: float) -> None:
        """Let others have a turn."""
        await asyncio.sleep(0.01)


def go_through(proxy: Between, store: Store, monkeypatch) -> None:
    """Set what a user sets to whom the store is behind the proxy."""
    conf = pytest.importorskip("fsspec.config").conf
    monkeypatch.setitem(conf, "webhdfs", {"data_proxy": {f":{store.port}/": f":{proxy.port}/"}})
    monkeypatch.setenv("FSSPEC_OF_THIS_TEST", str(proxy.port))  # another environment, so another client
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value.replace(f":{store.port}", f":{proxy.port}"))


def expect_nothing_kept(folder: Path) -> None:
    """Expect that no tables of an unfinished reading lie in the cache."""
    assert [path for path in folder.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("fault", ["cut", "silence"])
def test_what_breaks_once_changes_nothing(store, url, large_trace, monkeypatch, fault) -> None:
    """A connection is reset in the middle of the file, or says nothing any more until the time-out."""
    monkeypatch.setenv("HOLOTRACE_TIMEOUT_S", "1")
    with between(store.port, fault=fault, after=_SOME) as proxy:
        go_through(proxy, store, monkeypatch)
        found = holotrace.open_trace(url, cache=False).ranks[0].table("events")
    assert proxy.faults == 1
    assert_frame_equal(found, holotrace.open_trace(large_trace, cache=False).ranks[0].table("events"))


def test_what_breaks_always_fails_in_one_line(store, url, monkeypatch, tmp_path) -> None:
    """The beginning of the file comes each time, the rest does not; nothing is kept of it."""
    with between(store.port, after=_SOME, times=None) as proxy:
        go_through(proxy, store, monkeypatch)
        with pytest.raises(UnreadableTraceError) as told:
            holotrace.open_trace(url).ranks[0].table("events")
    assert proxy.faults > 1
    assert str(told.value).startswith(f"{url} cannot be read: ")
    assert "\n" not in str(told.value)
    expect_nothing_kept(tmp_path / "cache")


def test_a_server_that_is_not_there_is_told_in_one_line(store, url, monkeypatch) -> None:
    """Nobody listens."""
    with between(store.port) as proxy:
        go_through(proxy, store, monkeypatch)
    with pytest.raises(UnreadableTraceError, match=r"^\S+ cannot be read: .+") as told:
        holotrace.open_trace(url)
    assert "\n" not in str(told.value)
