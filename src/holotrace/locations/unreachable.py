"""Turn the errors that libraries raise for URLs into one-line messages: what went wrong, where, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from holotrace.errors import HolotraceError, UnreachableError
from holotrace.locations.filesystems import scheme_of
from holotrace.locations.secrets import redacted

_AWS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or choose a profile with AWS_PROFILE; for a server that is not "
    "Amazon's, set S3_ENDPOINT; for a public bucket, set FSSPEC_S3_ANON=true"
)
_GOOGLE = (
    "run `gcloud auth application-default login` or set GOOGLE_APPLICATION_CREDENTIALS; for a public bucket, set "
    "FSSPEC_GS_TOKEN=anon"
)
_AZURE = "set AZURE_STORAGE_CONNECTION_STRING, or give the address with its SAS token"
_HADOOP = "set HADOOP_CONF_DIR or HADOOP_HOME, and log in with HADOOP_USER_NAME or a Kerberos ticket; or use webhdfs://"
_WAYS_IN = {
    **dict.fromkeys(("s3", "s3a"), _AWS),
    **dict.fromkeys(("gs", "gcs"), _GOOGLE),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), _AZURE),
    **dict.fromkeys(("hdfs", "webhdfs"), _HADOOP),
}
_REFUSED = {401, 403}
_NOT_FOUND = {404, 410}
_WORTH_ASKING_AGAIN = {408, 425, 429}
_CREDENTIAL_SIGNS = (
    "credential",
    "refresherror",
    "authenticat",
    "authoriz",
    "anonymous caller",
    "access key",
    "forbidden",
    "signature",
    "permission denied",
)
_STACK_OF_JAVA = re.compile(r"\\n\\tat ")
"""Matches the beginning of the Java stack trace in a Hadoop message, where line breaks and tabs are escaped."""

_LONGEST_REASON = 300


class _Named(Protocol):
    @property
    def url(self) -> str: ...


@contextmanager
def explained_errors(location: _Named, verb: str = "read") -> Iterator[None]:
    """Turn library errors into an UnreachableError, or into a FileNotFoundError for a missing file.

    Raises:
        FileNotFoundError: the file does not exist.
        UnreachableError: any other error, as one line without secrets.
    """
    try:
        yield
    except HolotraceError:
        raise
    except Exception as error:  # noqa: BLE001 -- each library raises its own errors
        cause = _innermost(error) if isinstance(error, FileNotFoundError) else error
        if isinstance(cause, FileNotFoundError) or _status(cause) in _NOT_FOUND:
            message = f"{location.url} does not exist"
            raise FileNotFoundError(message) from None
        message = _explained(cause, location.url, verb)
        raise UnreachableError(message) from None


def is_final(error: BaseException) -> bool:
    """Return whether retrying is useless, for instance because the file does not exist or access was refused."""
    if isinstance(
        error, HolotraceError | FileNotFoundError | PermissionError | NotImplementedError | ImportError
    ) or _is_about_credentials(error):
        return True
    status = _status(error)
    return status is not None and 400 <= status < 500 and status not in _WORTH_ASKING_AGAIN  # noqa: PLR2004 -- status codes of HTTP


def _explained(error: BaseException, url: str, verb: str) -> str:
    reason = redacted(_reason(error))
    way_in = _WAYS_IN.get(scheme_of(url), "check the address and its permissions")
    if isinstance(error, PermissionError) or _status(error) in _REFUSED or _is_about_credentials(error):
        return f"{url} cannot be {'read' if verb == 'read' else verb}: access was refused ({reason}); {way_in}"
    return f"{url} cannot be {verb}: {reason}"


def _is_about_credentials(error: BaseException) -> bool:
    text = f"{type(error).__name__} {error}".lower()
    return any(sign in text for sign in _CREDENTIAL_SIGNS)


def _reason(error: BaseException) -> str:
    """Return the first line of a message, preceded by the class of the error if the line is a single word."""
    message = _STACK_OF_JAVA.split(str(error), maxsplit=1)[0]
    line = " ".join(message.partition("\n")[0].split())[:_LONGEST_REASON]
    return line if " " in line else f"{type(error).__name__} {line}".strip()


def _innermost(error: BaseException) -> BaseException:
    """Return the original cause of an error.

    For any HTTP error, fsspec raises a FileNotFoundError and keeps the HTTP error as its cause.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _status(error: BaseException) -> int | None:
    names = ("status",) if type(error).__module__.startswith("aiohttp") else ("status", "status_code", "code")
    for name in names:  # aiohttp's `code` is not the status of the response, so use `status` alone
        value = getattr(error, name, None)
        if isinstance(value, int):
            return value
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        value = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return value if isinstance(value, int) else None
    value = getattr(response, "status_code", None)
    return value if isinstance(value, int) else None
