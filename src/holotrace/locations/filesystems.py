"""The fsspec file system for a URL, configured by the usual environment variables of each service.

fsspec and the package of the scheme are extras; they are imported when the first URL is opened.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import re
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

from holotrace.errors import InvalidOptionError, UnreachableError
from holotrace.locations.secrets import Secret, redacted

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_Environment: TypeAlias = tuple[tuple[str, str], ...]

_EXTRAS = {
    **dict.fromkeys(("s3", "s3a"), ("s3", "s3fs")),
    **dict.fromkeys(("gs", "gcs"), ("gcs", "gcsfs")),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), ("azure", "adlfs")),
    **dict.fromkeys(("hdfs", "viewfs"), ("hdfs", "hdfs_native")),
    "webhdfs": ("hdfs", "requests"),
    **dict.fromkeys(("http", "https"), ("remote", "aiohttp")),
}
"""For each scheme: the extra of this package that supports it, and the module that must be importable."""

_AZURE_URL = re.compile(r"https://(?P<account>[\w-]+)\.(?:blob|dfs)\.(?P<cloud>core\.[\w.]+)/?(?P<path>.*)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][\w.+-]*(?=:)")
_ROOT = re.compile(r"[A-Za-z][\w.+-]*:/{2,3}[^/]*")
_VARIABLES = ("AWS_", "S3_", "AZURE_", "GOOGLE_", "STORAGE_", "HADOOP_", "FSSPEC_", "HOLOTRACE_TIMEOUT_S")
TIMEOUT_VARIABLE = "HOLOTRACE_TIMEOUT_S"
"""Environment variable: seconds without an answer after which a connection is considered lost."""

_PATIENCE_S = 60.0
HADOOP = {"hdfs", "viewfs"}
"""Schemes whose client accepts only Hadoop options."""

_FIRST_PAUSE_OF_AZURE_S = 1
_one_at_a_time = threading.Lock()
_TALKATIVE = ("fsspec", "s3fs", "gcsfs", "adlfs", "azure", "aiobotocore", "botocore")
_TRIES_OF_HADOOP = "6"
"""How many times to try a NameNode that does not answer; 6 tries take 15 seconds, but Hadoop's default of 15 tries
takes minutes."""

_MOST_FILESYSTEMS = 64


def translated(url: str) -> str:
    """Return the URL in the form that fsspec expects; web addresses of Azure blobs become `az://` URLs."""
    match = _AZURE_URL.fullmatch(url)
    return url if match is None else f"az://{match['path']}"


def scheme_of(url: str) -> str:
    """Return `s3` for `s3://bucket/trace.json` and for `zip://trace.json::s3://bucket/traces.zip`."""
    match = _SCHEME.match(translated(url.rpartition("::")[2]))
    return match[0].lower() if match else ""


def opened_filesystem(url: str, secret: Secret) -> tuple[AbstractFileSystem, str]:
    """Return the file system of a URL, and the path in this file system.

    Raises:
        UnreachableError: an optional package is missing, the scheme is unknown, or the credentials are invalid.
    """
    environment = tuple((name, value) for name, value in os.environ.items() if name.startswith(_VARIABLES))
    is_signed = bool(secret.query) and translated(url).startswith("http")
    with_query = f"{url}?{secret.query}" if is_signed else url
    with _one_at_a_time:  # so that each bucket has only one file system, whose connections all threads share
        filesystem = _filesystem(_root(url), Secret(user=secret.user) if is_signed else secret, environment)
    return filesystem, str(filesystem._strip_protocol(translated(with_query.partition("::")[0])))  # noqa: SLF001 -- fsspec has no public function for this


def _root(url: str) -> str:
    """Return the part of a URL that identifies the file system: the URL without the path in the file system."""
    first, chain, behind = url.partition("::")
    match = _ROOT.match(first)
    host = "" if chain or match is None else match[0]
    return f"{host or first.partition('://')[0] + '://'}{chain}{behind}"


@functools.lru_cache(_MOST_FILESYSTEMS)
def _filesystem(root: str, secret: Secret, environment: _Environment) -> AbstractFileSystem:
    """Create a file system; the environment is part of the cache key, so a changed credential takes effect."""
    scheme = scheme_of(root)
    _expect_extra(root, scheme)
    import fsspec  # noqa: PLC0415 -- not needed for local paths

    with_user = root.replace("://", f"://{secret.user}", 1)
    for name in _TALKATIVE:  # the errors that we raise already say what these libraries would log
        logging.getLogger(name).addHandler(logging.NullHandler())
    options = _options(root, scheme, secret, dict(environment))
    if scheme not in HADOOP:
        options |= {"skip_instance_cache": True, "use_listings_cache": False}
    try:
        filesystem, _ = fsspec.url_to_fs(translated(with_user), **{scheme: options})
    except Exception as error:  # noqa: BLE001 -- each library raises its own errors
        reason = redacted(str(error).partition("\n")[0] or type(error).__name__)
        message = f"{root} cannot be opened: {reason}"
        raise UnreachableError(message) from None
    made: AbstractFileSystem = filesystem
    _limit_waiting(made, _patience_s(dict(environment)))
    if scheme in {"gs", "gcs"}:  # log in now: if login fails during a request, gcsfs retries for half a minute
        made.credentials.maybe_refresh()
    return made


def _expect_extra(url: str, scheme: str) -> None:
    extra, module = _EXTRAS.get(scheme, ("remote", "fsspec"))
    missing = [name for name in ("fsspec", module) if importlib.util.find_spec(name) is None]
    if missing:
        message = f"opening {url} needs {missing[-1]}: pip install 'holotrace[{extra}]'"
        raise UnreachableError(message)


def _options(root: str, scheme: str, secret: Secret, environment: dict[str, str]) -> dict[str, Any]:
    """Return the options that must be passed because the file system does not read them from the environment."""
    patience_s = _patience_s(environment)
    if scheme in {"s3", "s3a"}:
        endpoint = environment.get("S3_ENDPOINT")
        timeouts = {"connect_timeout": patience_s, "read_timeout": patience_s}
        return {"config_kwargs": timeouts, **({"endpoint_url": endpoint} if endpoint else {})}
    if scheme in {"gs", "gcs"}:
        # Without this variable, gcsfs first requests the type of each bucket over gRPC.
        os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        return {"requests_timeout": patience_s}
    if scheme in {"az", "abfs", "abfss"}:
        timeouts = {"connection_timeout": patience_s, "read_timeout": patience_s}
        return {**timeouts, **_azure_options(root, secret, environment)}
    if scheme in {"http", "https"}:
        return _web_options(patience_s)
    if scheme in HADOOP:
        timeout_ms = str(round(1_000 * patience_s))
        return {"dfs.client.socket-timeout": timeout_ms, "dfs.client.failover.max.attempts": _TRIES_OF_HADOOP}
    user = environment.get("HADOOP_USER_NAME")
    return {"user": user} if scheme == "webhdfs" and user and "@" not in root else {}


def _patience_s(environment: dict[str, str]) -> float:
    text = environment.get(TIMEOUT_VARIABLE, "")
    try:
        return float(text) if text else _PATIENCE_S
    except ValueError:
        message = f"{TIMEOUT_VARIABLE}={text!r} is not a number of seconds"
        raise InvalidOptionError(message) from None


def _azure_options(root: str, secret: Secret, environment: dict[str, str]) -> dict[str, Any]:
    """Return options for the Azure account in the URL; ignore a connection string for another account."""
    match = _AZURE_URL.fullmatch(root)
    if match is None:
        return {"sas_token": secret.query} if secret.query else {}
    account = match["account"]
    known = environment.get("AZURE_STORAGE_CONNECTION_STRING", "")
    if not secret.query and (not known or f"AccountName={account};" in f"{known};"):
        return {"account_name": account, "account_host": f"{account}.blob.{match['cloud']}"}
    signature = f";SharedAccessSignature={secret.query}" if secret.query else ""
    return {"connection_string": f"BlobEndpoint=https://{account}.blob.{match['cloud']}{signature}"}


def _web_options(patience_s: float) -> dict[str, Any]:
    import aiohttp  # noqa: PLC0415 -- see _expect_extra

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=patience_s, sock_read=patience_s)
    # With compression in transit, byte ranges would refer to the compressed bytes:
    # https://www.rfc-editor.org/rfc/rfc9110.html#name-range-requests
    return {"client_kwargs": {"timeout": timeout}, "headers": {"Accept-Encoding": "identity"}}


def _limit_waiting(filesystem: AbstractFileSystem, patience_s: float) -> None:
    """Set timeouts for which there is no option: by default, WebHDFS waits forever, and Azure retries for a minute."""
    session = getattr(filesystem, "session", None)
    if "webhdfs" in filesystem.protocol and session is not None:
        session.request = functools.partial(session.request, timeout=patience_s)
    client = getattr(filesystem, "service_client", None)
    if client is not None:
        client._config.retry_policy.initial_backoff = _FIRST_PAUSE_OF_AZURE_S  # noqa: SLF001 -- there is no public access
        client._config.retry_policy.increment_base = 2  # noqa: SLF001
