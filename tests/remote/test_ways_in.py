"""Credentials and servers can be given in several ways.

If a package is missing, the error names the extra to install.
"""

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
from remote.faults import faulty_proxy
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
    """Return a trace with kernels of 40 and 5 µs."""
    folder = tmp_path_factory.mktemp("small")
    TraceBuilder().kernel("gemm", start_us=0, duration_us=40).kernel("relu", start_us=50, duration_us=5).write(folder)
    (path,) = folder.iterdir()
    return path.read_bytes()


def device_work_ns(url: str) -> int:
    """Return the total duration of the kernels in the trace."""
    (rank_trace,) = holotrace.open_trace(url, cache=False).ranks.values()
    events = rank_trace.table("events")
    return int(events.filter(events["stream"].is_not_null())["duration_ns"].sum())


@pytest.mark.xdist_group("s3")
def test_the_endpoint_variable_of_amazons_tools(s3: Store, trace, monkeypatch) -> None:
    """AWS_ENDPOINT_URL, which Amazon's tools use, works like S3_ENDPOINT."""
    s3.put("ways/rank0.json", trace)
    for name, value in s3.environment.items():
        monkeypatch.setenv("AWS_ENDPOINT_URL" if name == "S3_ENDPOINT" else name, value)
    assert device_work_ns(f"{s3.root}/ways/rank0.json") == 45_000


@pytest.mark.xdist_group("s3")
def test_a_profile_with_credentials(s3: Store, trace, monkeypatch, tmp_path) -> None:
    """AWS_PROFILE selects a profile in the credentials file."""
    s3.put("ways/rank0.json", trace)
    keys = "".join(f"{name.lower()} = {value}\n" for name, value in s3.environment.items() if name.startswith("AWS_"))
    (tmp_path / "keys").write_text(f"[training]\n{keys}")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "keys"))
    monkeypatch.setenv("AWS_PROFILE", "training")
    monkeypatch.setenv("S3_ENDPOINT", s3.environment["S3_ENDPOINT"])
    assert device_work_ns(f"{s3.root}/ways/rank0.json") == 45_000


@pytest.mark.xdist_group("s3")
def test_a_cache_in_a_bucket_is_shared(s3: Store, trace, monkeypatch, tmp_path) -> None:
    """A second machine copies the tables from the shared cache in the bucket and does not read the trace."""
    s3.put("shared/rank0.json", trace)
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    for machine in ("first", "second"):
        monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / machine))
        (rank_trace,) = holotrace.open_trace(f"{s3.root}/shared/rank0.json", cache=f"{s3.root}/kept").ranks.values()
        assert rank_trace.table("events").height == 2
        # The second machine must not read the trace.
        monkeypatch.setattr("holotrace.ingest.kineto.KinetoReader.read", None)


@pytest.mark.xdist_group("azure")
@pytest.mark.parametrize("scheme", ["az", "abfs", "abfss"])
def test_the_schemes_of_azure(azure: AzureStore, trace, monkeypatch, scheme) -> None:
    """The schemes az, abfs and abfss all open files in the account that the connection string names."""
    azure.put("ways/rank0.json", trace)
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azure.environment["AZURE_STORAGE_CONNECTION_STRING"])
    assert device_work_ns(f"{scheme}://{BUCKET}/ways/rank0.json") == 45_000


@pytest.mark.xdist_group("azure")
def test_a_signed_azure_address(azure: AzureStore, trace, monkeypatch, tmp_path) -> None:
    """A signed address from Azure's portal opens a file or a folder; its signature is never shown."""
    azure.put("signed/rank0.json", trace)
    with faulty_proxy(azure.port, tls=server_with_certificate(tmp_path, monkeypatch)) as proxy:
        redirect(monkeypatch, AZURE_HOST, proxy.port)
        for path in ("signed/rank0.json", "signed"):
            url = f"https://{AZURE_HOST}/{BUCKET}/{path}"
            opened = holotrace.open_trace(f"{url}?{azure.signature}", cache=False)
            assert opened.ranks[0].source == f"https://{AZURE_HOST}/{BUCKET}/signed/rank0.json"
            assert opened.ranks[0].table("events").height == 2
        wrong = azure.signature.replace("sig=", "sig=AAAA")
        with pytest.raises(UnreachableError, match="access was refused") as caught:
            holotrace.open_trace(f"https://{AZURE_HOST}/{BUCKET}/signed/rank0.json?{wrong}", cache=False)
    assert "AAAA" not in str(caught.value)


def server_with_certificate(folder: Path, monkeypatch) -> ssl.SSLContext:
    """Create a certificate for Azure's host, make this process trust it, and return the server's TLS settings."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 -- may be missing
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
    # aiohttp creates its TLS context on import.
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


def redirect(monkeypatch, host: str, port: int) -> None:
    """Redirect this process's connections to `host` to a port on this machine."""
    getaddrinfo = socket.getaddrinfo

    def resolve(name, *arguments, **options):
        return (
            getaddrinfo(HERE, port, *arguments[1:], **options)
            if name == host
            else getaddrinfo(name, *arguments, **options)
        )

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


def test_an_unreachable_name_node_is_a_one_line_error(monkeypatch) -> None:
    """If the NameNode is unreachable, the error is one line with the URL."""
    monkeypatch.setattr("holotrace.locations.filesystems._TRIES_OF_HADOOP", "2")
    url = f"hdfs://{HERE}:{free_port()}/job/rank0.json"
    with pytest.raises(UnreachableError, match=f"^{url} cannot be read: .+") as caught:
        holotrace.open_trace(url)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("url", "package", "extra"), [(url, *needed) for url, needed in _EXTRAS.items()])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, url, package, extra) -> None:
    """For every scheme, the error names the missing package and the extra to install."""
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"^opening .* needs {package}: pip install 'holotrace\[{extra}\]'$"
    with pytest.raises(UnreachableError, match=message):
        holotrace.open_trace(url)
