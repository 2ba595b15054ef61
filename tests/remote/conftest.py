"""Fixtures that start each store once per test run, and write a job for the tests to put into the stores."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holotrace.testing.synthetic import write_job
from remote import stores
from remote.stores import Store

_CLIENTS = ("s3fs", "gcsfs", "adlfs", "hdfs_native")
_OF_USERS = ("AWS_", "S3_", "AZURE_", "GOOGLE_", "STORAGE_", "HADOOP_", "FSSPEC_")


@pytest.fixture(scope="session")
def s3(tmp_path_factory) -> Iterator[Store]:
    """Run moto, an S3 server."""
    with stores.s3(tmp_path_factory.mktemp("s3")) as store:
        yield store


@pytest.fixture(scope="session")
def gcs(tmp_path_factory) -> Iterator[Store]:
    """Run fake-gcs-server, a server of Google Cloud Storage."""
    with stores.gcs(tmp_path_factory.mktemp("gcs")) as store:
        yield store


@pytest.fixture(scope="session")
def azure(tmp_path_factory) -> Iterator[stores.AzureStore]:
    """Run Azurite, a server of Azure Blob Storage."""
    with stores.azure(tmp_path_factory.mktemp("azure")) as store:
        yield store


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory) -> Iterator[stores.HadoopStore]:
    """Run HDFS on this machine; clients use its native protocol."""
    with stores.hadoop(tmp_path_factory.mktemp("hdfs")) as store:
        yield store


@pytest.fixture(scope="session")
def webhdfs(hdfs: stores.HadoopStore) -> Store:
    """Return the running HDFS store with its HTTP address instead of the native one."""
    return hdfs.over_http()


@pytest.fixture(scope="session")
def job_folder(tmp_path_factory) -> Path:
    """Write a job of three ranks; one of the files is uncompressed."""
    folder = tmp_path_factory.mktemp("job")
    write_job(folder, ranks=3, steps=1, layers=2)
    first = min(folder.glob("*.gz"))
    first.with_suffix("").write_bytes(gzip.decompress(first.read_bytes()))
    first.unlink()
    return folder


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path) -> None:
    """Remove all credentials and settings of the user; use a temporary home and cache."""
    for name in _CLIENTS:
        pytest.importorskip(name, reason="the client libraries of the stores are not installed; run make test-stores")
    for name in list(os.environ):
        if name.startswith(_OF_USERS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
