"""Secrets in URLs: signatures of SAS and presigned URLs, and user names with passwords.

Messages, reports, pages and names of cache entries contain URLs without secrets. The process keeps each secret in
memory. It can therefore open a location, and all paths below it, even if a caller gives only the URL without the
secret.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.parse import parse_qsl

_QUERY = re.compile(r"\?(?P<query>[^?#]*=[^?#]*)$")
_SECRET_NAME = re.compile(r"sig|token|secret|password|credential|key|auth|code", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/@:]*:[^/@]+@")
_NO_PASSWORDS = ("github://", "git://")
"""Schemes whose URLs contain `organisation:repository@` instead of a user and a password."""

_SECRET_VARIABLES = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_CLIENT_SECRET",
)
_IN_TEXT = re.compile(
    r"(?P<name>(?:sig|signature|token|AccountKey|SharedAccessSignature|X-(?:Amz|Goog)-(?:Signature|Credential|Security-Token))"
    r"\s*=\s*)[^&;\s'\"<>]+",
    re.IGNORECASE,
)
_HIDDEN = "…"
_SHORTEST = 6
"""Shorter secrets are not removed from messages, because they would match inside words."""


class Secret(NamedTuple):
    """The secrets removed from a URL, such as the query `sv=…&sig=…` and the user `user:password@`."""

    query: str = ""
    user: str = ""


NO_SECRET = Secret()
_known: dict[str, Secret] = {}


def without_secret(url: str) -> tuple[str, Secret]:
    """Return the URL without its secret, and the secret."""
    query = _QUERY.search(url)
    is_secret = query is not None and any(_SECRET_NAME.search(name) for name, _ in parse_qsl(query["query"]))
    shown = url[: query.start()] if query is not None and is_secret else url
    user = None if url.startswith(_NO_PASSWORDS) else _USER.search(shown)
    if user is not None:
        shown = shown[: user.start()] + shown[user.end() :]
    return shown, Secret(query["query"] if query is not None and is_secret else "", "" if user is None else user[0])


def remember(url: str, secret: Secret) -> None:
    """Remember a secret for a URL and for all paths below it."""
    if secret != NO_SECRET:
        _known[url.rstrip("/")] = secret


def secret_of(url: str) -> Secret:
    """Return the secret remembered for a URL or, if there is none, for its nearest parent with a secret."""
    above = [known for known in _known if url == known or url.startswith(f"{known}/")]
    return _known[max(above, key=len)] if above else NO_SECRET


def redacted(text: str) -> str:
    """Return a message from another library with all secrets removed."""
    for secret in sorted(_all_secrets(), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return _IN_TEXT.sub(rf"\g<name>{_HIDDEN}", text)


def _all_secrets() -> set[str]:
    named = {os.environ.get(name, "") for name in _SECRET_VARIABLES}
    cut = {part for secret in _known.values() for part in (*secret, *(value for _, value in parse_qsl(secret.query)))}
    parts = {part.rstrip("@") for part in cut}
    passwords = {secret.user.rstrip("@").partition(":")[2] for secret in _known.values()}
    return {text for text in named | parts | passwords if len(text) >= _SHORTEST}
