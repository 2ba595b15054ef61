"""The stores that the tests use: buckets or folders on running servers, and the environment variables for access."""

from __future__ import annotations

import getpass
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from remote.servers import HERE, free_port, installed, is_answering, program, running


@dataclass(frozen=True)
class Store:
    """A running store.

    root         URL of an existing bucket, container or folder
    missing      URL of a bucket, container or folder that does not exist
    environment  the environment variables that give a process access to the store
    port         the port of the server that sends the files
    put, get     write and read a file below the root, without fsspec
    stranger     a context in which the store refuses one user; yields the environment variables of this user
    """

    root: str
    missing: str
    environment: dict[str, str]
    port: int
    put: Callable[[str, bytes], object]
    get: Callable[[str], bytes]
    stranger: Callable[[], AbstractContextManager[dict[str, str]]]


BUCKET = "traces"


@contextmanager
def s3(folder: Path) -> Iterator[Store]:
    """Start moto, an S3 server, with a user and a bucket."""
    pytest.importorskip("moto", reason="no moto: pip install --group remote")
    boto3 = pytest.importorskip("boto3", reason="no boto3: pip install --group remote")
    port = free_port()
    endpoint = f"http://{HERE}:{port}"
    with running(
        [program("moto_server"), "-H", HERE, "-p", str(port)], folder / "moto.log", lambda: is_answering(port)
    ):
        session = boto3.Session(*_s3_user(boto3.Session("first", "first", region_name="us-east-1"), endpoint))
        client = session.client("s3", endpoint_url=endpoint, region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        environment = {
            "S3_ENDPOINT": endpoint,
            "AWS_ACCESS_KEY_ID": session.get_credentials().access_key,
            "AWS_SECRET_ACCESS_KEY": session.get_credentials().secret_key,
        }
        yield Store(
            root=f"s3://{BUCKET}",
            missing="s3://no-such-bucket",
            environment=environment,
            port=port,
            put=lambda name, content: client.put_object(Bucket=BUCKET, Key=name, Body=content),
            get=lambda name: client.get_object(Bucket=BUCKET, Key=name)["Body"].read(),
            stranger=lambda: _s3_stranger(environment),
        )


def _s3_user(session, endpoint: str) -> tuple[str, str]:
    """Create a user with all rights in S3."""
    iam = session.client("iam", endpoint_url=endpoint)
    iam.create_user(UserName="tester")
    statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName="tester", PolicyName="all", PolicyDocument=policy)
    key = iam.create_access_key(UserName="tester")["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


@contextmanager
def _s3_stranger(environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """Make moto check signatures only in the `with` block, because the check also rejects valid list requests."""
    switch = f"{environment['S3_ENDPOINT']}/moto-api/reset-auth"
    _request(switch, "POST", b"0")
    try:
        yield {**environment, "AWS_SECRET_ACCESS_KEY": "a-secret-that-is-not-right"}
    finally:
        _request(switch, "POST", b"inf")


@contextmanager
def gcs(folder: Path) -> Iterator[Store]:
    """Start fake-gcs-server, which checks no credentials; only the login of an unknown service account fails."""
    port = free_port()
    endpoint = f"http://{HERE}:{port}"
    command = [installed("fake-gcs-server"), "-scheme", "http", "-host", HERE, "-port", str(port)]
    command += [
        "-backend",
        "memory",
        "-external-url",
        endpoint,
        "-public-host",
        f"{HERE}:{port}",
        "-log-level",
        "error",
    ]
    with running(command, folder / "fake_gcs_server.log", lambda: is_answering(port)):
        _request(f"{endpoint}/storage/v1/b?project=holotrace", "POST", json.dumps({"name": BUCKET}).encode())
        upload = f"{endpoint}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name="
        environment = {"STORAGE_EMULATOR_HOST": endpoint, "NO_GCE_CHECK": "true"}
        key = str(_google_key(folder, f"{endpoint}/token"))
        yield Store(
            root=f"gs://{BUCKET}",
            missing="gs://no-such-bucket",
            environment=environment,
            port=port,
            put=lambda name, content: _request(upload + quote(name, safe=""), "POST", content),
            get=lambda name: _request(f"{endpoint}/storage/v1/b/{BUCKET}/o/{quote(name, safe='')}?alt=media"),
            stranger=lambda: nullcontext({**environment, "GOOGLE_APPLICATION_CREDENTIALS": key}),
        )


def _google_key(folder: Path, login: str) -> Path:
    """Write the key file of an unknown service account that uses this login URL."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 -- installed with the extras
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415

    key = rsa.generate_private_key(65_537, 2_048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "stranger.json"
    account = {
        "client_email": "stranger@holotrace.invalid",
        "project_id": "holotrace",
        "private_key_id": "1",
        "token_uri": login,
    }
    path.write_text(json.dumps({"type": "service_account", **account, "private_key": key.decode()}))
    return path


AZURE_ACCOUNT = "devstoreaccount1"
AZURE_HOST = f"{AZURE_ACCOUNT}.blob.core.windows.net"
_AZURE_KEY = "aHRhJ3MgdGVzdHMgbWFrZSB1cCBhbiBhY2NvdW50IG9mIHRoZWlyIG93biBmb3IgQXp1cml0ZS4="


@dataclass(frozen=True)
class AzureStore(Store):
    """A store in Azure, with a signature that allows reading everything until tomorrow."""

    signature: str


@contextmanager
def azure(folder: Path) -> Iterator[AzureStore]:
    """Start Azurite, which checks keys and signatures."""
    blob = pytest.importorskip("azure.storage.blob", reason="the extra azure is not installed")
    port = free_port()
    script = installed("azurite/node_modules/azurite/dist/src/blob/main.js")
    command = [program("node"), script, "--blobHost", HERE, "--blobPort", str(port), "--silent", "--location", folder]
    command += ["--disableTelemetry", "--skipApiVersionCheck"]
    accounts = f"{AZURE_ACCOUNT}:{_AZURE_KEY}"
    with running(command, folder / "azurite.log", lambda: is_answering(port), AZURITE_ACCOUNTS=accounts):
        correct, wrong = (_connection(port, key) for key in (_AZURE_KEY, _AZURE_KEY.swapcase()))
        with blob.BlobServiceClient.from_connection_string(correct) as client:
            container = client.create_container(BUCKET)
            yield AzureStore(
                root=f"az://{BUCKET}",
                missing="az://no-such-container",
                environment={"AZURE_STORAGE_CONNECTION_STRING": correct},
                port=port,
                put=lambda name, content: container.upload_blob(name, content, overwrite=True),
                get=lambda name: container.download_blob(name).readall(),
                stranger=lambda: nullcontext({"AZURE_STORAGE_CONNECTION_STRING": wrong}),
                signature=blob.generate_container_sas(
                    AZURE_ACCOUNT,
                    BUCKET,
                    account_key=_AZURE_KEY,
                    permission="rl",
                    expiry=datetime.now(timezone.utc) + timedelta(days=1),
                ),
            )


def _connection(port: int, key: str) -> str:
    endpoint = f"http://{HERE}:{port}/{AZURE_ACCOUNT}"
    return f"DefaultEndpointsProtocol=http;AccountName={AZURE_ACCOUNT};AccountKey={key};BlobEndpoint={endpoint};"


@dataclass(frozen=True)
class HadoopStore(Store):
    """A store in HDFS, with the URL of its web server."""

    web_server: str

    def over_http(self) -> HadoopStore:
        """Return this store with its WebHDFS address."""
        return replace(self, root=f"{self.web_server}/{BUCKET}", missing=f"{self.web_server}/no-such-folder")


@contextmanager
def hadoop(folder: Path) -> Iterator[HadoopStore]:
    """Start a NameNode and a DataNode of HDFS; they accept any user name without a password."""
    jars, details, configuration = installed("hadoop"), folder / "details.json", folder / "configuration.xml"
    command = [program("java"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    command += ["org.apache.hadoop.test.MiniDFSClusterManager", "-datanodes", "1", "-format"]
    command += ["-writeConfig", configuration, "-writeDetails", details, "-D", f"hdfs.minidfs.basedir={folder}/data"]
    with running(command, folder / "hadoop.log", lambda: details.exists() and details.stat().st_size > 0):
        name_node = json.loads(details.read_text())["namenode_port"]
        web = re.search(r"dfs\.namenode\.http-address</name><value>([^<]+:\d+)<", configuration.read_text())
        assert web is not None
        yield _hadoop_folder(f"http://{web[1]}/webhdfs/v1", name_node)


def _hadoop_folder(web: str, name_node: int) -> HadoopStore:
    """Create a folder that only its owner can read."""
    superuser = getpass.getuser()
    _request(f"{web}/{BUCKET}?op=MKDIRS&permission=700&user.name={superuser}", "PUT")
    _request(f"{web}/{BUCKET}?op=SETOWNER&owner=tester&user.name={superuser}", "PUT")

    def data_node(name: str, options: str, method: str) -> str:
        answer = _request(f"{web}/{BUCKET}/{quote(name)}?noredirect=true&user.name=tester&{options}", method)
        return str(json.loads(answer)["Location"])

    port = urlsplit(data_node("any", "op=CREATE", "PUT")).port
    assert port is not None
    return HadoopStore(
        root=f"hdfs://localhost:{name_node}/{BUCKET}",
        web_server=f"webhdfs://{urlsplit(web).netloc}",
        missing=f"hdfs://localhost:{name_node}/no-such-folder",
        environment={"HADOOP_USER_NAME": "tester"},
        port=port,
        put=lambda name, content: _request(data_node(name, "op=CREATE&overwrite=true", "PUT"), "PUT", content),
        get=lambda name: _request(data_node(name, "op=OPEN", "GET")),
        stranger=lambda: nullcontext({"HADOOP_USER_NAME": "stranger"}),
    )


def _request(url: str, method: str = "GET", content: bytes | None = None) -> bytes:
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url, content, headers, method=method)  # noqa: S310 -- the URL of a test server
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        body: bytes = answer.read()
        return body
