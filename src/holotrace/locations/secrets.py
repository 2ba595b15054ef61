"""What an address carries that nobody else may see: signatures of SAS and presigned URLs, user names with passwords.

A secret is cut out of an address before the address goes anywhere: into messages, reports, pages, names of cache
entries. The process remembers it, so that the address without it still opens what it names, and what lies below it.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.parse import parse_qsl

_QUERY = re.compile(r"\?(?P<query>[^?#]*=[^?#]*)$")
_TELLING = re.compile(r"sig|token|secret|password|credential|key|auth|code", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/@:]*:[^/@]+@")
_NO_PASSWORDS = ("github://", "git://")
"""Schemes that write `organisation:repository@` where others write a user and a password."""

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
"""A shorter secret is not looked for in messages: it would be found in the middle of words."""


class Secret(NamedTuple):
    """What was cut out of an address: `sv=…&sig=…`, and `user:password@`."""

    query: str = ""
    user: str = ""


NO_SECRET = Secret()
_known: dict[str, Secret] = {}


def without_secret(url: str) -> tuple[str, Secret]:
    """Return the address that may be shown, and what was cut out of it."""
    query = _QUERY.search(url)
    is_secret = query is not None and any(_TELLING.search(name) for name, _ in parse_qsl(query["query"]))
    shown = url[: query.start()] if query is not None and is_secret else url
    user = None if url.startswith(_NO_PASSWORDS) else _USER.search(shown)
    if user is not None:
        shown = shown[: user.start()] + shown[user.end() :]
    return shown, Secret(query["query"] if query is not None and is_secret else "", "" if user is None else user[0])


def remember(url: str, secret: Secret) -> None:
    """Keep the secret of an address, for it and for what lies below it."""
    if secret != NO_SECRET:
        _known[url.rstrip("/")] = secret


def secret_of(url: str) -> Secret:
    """Return the secret of an address, else that of the nearest one above it."""
    above = [each for each in _known if url == each or url.startswith(f"{each}/")]
    return _known[max(above, key=len)] if above else NO_SECRET


def redacted(text: str) -> str:
    """Return a message of somebody else without any secret that it may hold."""
    for secret in sorted(_all_secrets(), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return _IN_TEXT.sub(rf"\g<name>{_HIDDEN}", text)


def _all_secrets() -> set[str]:
    named = {os.environ.get(name, "") for name in _SECRET_VARIABLES}
    cut = {part for secret in _known.values() for part in (*secret, *(value for _, value in parse_qsl(secret.query)))}
    telling = {part.rstrip("@") for part in cut}
    passwords = {secret.user.rstrip("@").partition(":")[2] for secret in _known.values()}
    return {each for each in named | telling | passwords if len(each) >= _SHORTEST}
