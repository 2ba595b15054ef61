"""Turn an address, as the user wrote it, into a location: a local path or a URL."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import unquote

from holotrace.locations.remote_path import RemotePath

Address: TypeAlias = str | os.PathLike[str] | RemotePath
Location: TypeAlias = Path | RemotePath
"""A local `pathlib.Path`, or a `RemotePath` with the same methods for a URL."""

T = TypeVar("T")

_URL = re.compile(r"[A-Za-z][\w.+-]+(://|::[A-Za-z])")
_FILE = re.compile(r"file://(localhost)?(?=/)", re.IGNORECASE)
_MOST_AT_ONCE = 16


def is_url(text: str) -> bool:
    """Return whether a string is a URL such as `s3://bucket/trace.json`; a `file://` address is a local path."""
    return _URL.match(text) is not None and _FILE.match(text) is None


def address_text(address: Address) -> str:
    """Return an address as a string: a path with `~` expanded, or a URL without secrets."""
    text = str(address) if isinstance(address, RemotePath) else os.fspath(address)
    if is_url(text):
        return str(RemotePath.of(text))
    local = _FILE.match(text)
    return os.path.expanduser(unquote(text[local.end() :]) if local else text)  # noqa: PTH111 -- the result must be the given text


def located(address: Address) -> Location:
    """Return the location of an address, without accessing it."""
    if isinstance(address, RemotePath):
        return address
    text = os.fspath(address)
    return RemotePath.of(text) if is_url(text) else Path(address_text(text))


def name_of(address: str) -> str:
    """Return the name of a file without its folders."""
    return located(address).name


def side_by_side(function: Callable[[str], T], addresses: Sequence[str]) -> list[T]:
    """Return `function(address)` for every address; if there are URLs, the calls run in parallel."""
    if not any(map(is_url, addresses)):
        return [function(address) for address in addresses]
    with ThreadPoolExecutor(min(_MOST_AT_ONCE, len(addresses)), thread_name_prefix="holotrace-look") as pool:
        return list(pool.map(function, addresses))
