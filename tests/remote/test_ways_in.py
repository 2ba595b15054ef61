"""The ways to say who one is, and which server is meant; and what is said where a package is missing."""

from __future__ import annotations

import socket
import ssl
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import holotrace
from holotrace.errors import UnreachableError
from holotrace.testing.builder import TraceBuilder
from remote.faults import between
from remote.servers import HERE, free_port
from remote.stores import AZURE_HOST, BUCKET, AzureStore, Store

pytestmark = pytest.mark.stores

_EXTRAS = {
    "s3://nobodys/rank0.json": ("s3fs", "s3"),
    "gs://nobodys/rank0.json": ("gcsfs", "gcs"),
    "az://nobodys/rank0.json": ("adlfs", "azure"),
    f"https://{AZURE_HOST}/nobodys/rank0.json": ("adlfs", "azure"),
    "hdfs://host/rank0.json": ("hdfs_native", "hdfs"),
    "memory://rank0.json": ("fsspec", "remote"),
}


@pytest.fixture(scope="session")
def trace(tmp_path_factory) -> bytes:
    """A trace of two kernels."""
    folder = tmp_path_factory.mktemp("small")
    TraceBuilder().kernel("gemm", start_us=0, duration_us=40).kernel("relu", start_us=50, duration_us=5).write(folder)
    (path,) = folder.iterdir()
    return path.read_bytes()


def device_work_ns(url: str) -> int:
    """Read the trace above."""
    (rank_trace,) = holotrace.open_trace(url, cache=False).ranks.values()
    events = rank_trace.table("events")
    return int(events.filter(events["stream"].is_not_null())["duration_ns"].sum())


@pytest.mark.xdist_group("s3")
def test_the_endpoint_of_amazons_own_programs(s3: Store, trace, monkeypatch) -> None:
    """AWS_ENDPOINT_URL says what S3_ENDPOINT says."""
    s3.put("ways/rank0.json", trace)
    for name, value in s3.environment.items():
        monkeypatch.setenv("AWS_ENDPOINT_URL" if name == "S3_ENDPOINT" else name, value)
    assert device_work_ns(f"{s3.root}/ways/rank0.json") == 45_000


@pytest.mark.xdist_group("s3")
def test_a_profile_with_keys(s3: Store, trace, monkeypatch, tmp_path) -> None:
    """~/.aws/credentials, by way of AWS_PROFILE."""
    s3.put("ways/rank0.json", trace)
    keys = "".join(f"{name.lower()} = {value}\n" for name, value in s3.environment.items() if name.startswith("AWS_"))
    (tmp_path / "keys").write_text(f"[training]\n{keys}")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "keys"))
    monkeypatch.setenv("AWS_PROFILE", "training")
    monkeypatch.setenv("S3_ENDPOINT", s3.environment["S3_ENDPOINT"])
    assert device_work_ns(f"{s3.root}/ways/rank0.json") == 45_000


@pytest.mark.xdist_group("s3")
def test_a_cache_in_a_bucket_is_shared(s3: Store, trace, monkeypatch, tmp_path) -> None:
    """What one machine has read, another takes from there and does not read itself."""
    s3.put("shared/rank0.json", trace)
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    for machine in ("first", "second"):
        monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / machine))
        (rank_trace,) = holotrace.open_trace(f"{s3.root}/shared/rank0.json", cache=f"{s3.root}/kept").ranks.values()
        assert rank_trace.table("events").height == 2
        monkeypatch.setattr("holotrace.ingest.kineto.KinetoReader.read", None)  # the second has no need of it


@pytest.mark.xdist_group("azure")
@pytest.mark.parametrize("scheme", ["az", "abfs", "abfss"])
def test_the_schemes_of_azure(azure: AzureStore, trace, monkeypatch, scheme) -> None:
    """All open the account of the connection string."""
    azure.put("ways/rank0.json", trace)
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azure.environment["AZURE_STORAGE_CONNECTION_STRING"])
    assert device_work_ns(f"{scheme}://{BUCKET}/ways/rank0.json") == 45_000


@pytest.mark.xdist_group("azure")
def test_an_address_of_azure_that_is_signed(azure: AzureStore, trace, monkeypatch, tmp_path) -> None:
    """As Azure's portal gives them: a file and a folder, over TLS, the signature nowhere in what is shown."""
    azure.put("signed/rank0.json", trace)
    with between(azure.port, tls=certified(tmp_path, monkeypatch)) as proxy:
        redirect(monkeypatch, AZURE_HOST, proxy.port)
        for path in ("signed/rank0.json", "signed"):
            url = f"https://{AZURE_HOST}/{BUCKET}/{path}"
            opened = holotrace.open_trace(f"{url}?{azure.signature}", cache=False)
            assert opened.ranks[0].source == f"https://{AZURE_HOST}/{BUCKET}/signed/rank0.json"
            assert opened.ranks[0].table("events").height == 2
        wrong = azure.signature.replace("sig=", "sig=AAAA")
        with pytest.raises(UnreachableError, match="access was refused") as told:
            holotrace.open_trace(f"https://{AZURE_HOST}/{BUCKET}/signed/rank0.json?{wrong}", cache=False)
    assert "AAAA" not in str(told.value)


def certified(folder: Path, monkeypatch) -> ssl.SSLContext:
    """Return what a server needs to be believed to be Azure, by those who believe the certificate made here."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 -- see importorskip
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, AZURE_HOST)])
    today = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(AZURE_HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(*secret))
    trusting = ssl.create_default_context(cafile=folder / "certificate.pem")
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)  # made when aiohttp was loaded
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


def redirect(monkeypatch, host: str, port: int) -> None:
    """Let this process take a port of this machine for another host."""
    ask = socket.getaddrinfo

    def answer(asked, *arguments, **options):
        return ask(HERE, port, *arguments[1:], **options) if asked == host else ask(asked, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)


def test_a_name_node_that_is_not_there_is_told_in_one_line(monkeypatch) -> None:
    """Nobody listens; Hadoop's client would go on asking for minutes."""
    monkeypatch.setattr("holotrace.locations.filesystems._TRIES_OF_HADOOP", "2")
    url = f"hdfs://{HERE}:{free_port()}/job/rank0.json"
    with pytest.raises(UnreachableError, match=f"^{url} cannot be read: .+") as told:
        holotrace.open_trace(url)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(("url", "package", "extra"), [(url, *needed) for url, needed in _EXTRAS.items()])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, url, package, extra) -> None:
    """For each scheme, by somebody who does not have it."""
    monkeypatch.setitem(sys.modules, package, None)
    way_out = rf"^opening .* needs {package}: pip install 'holotrace\[{extra}\]'$"
    with pytest.raises(UnreachableError, match=way_out):
        holotrace.open_trace(url)
