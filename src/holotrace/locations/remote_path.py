"""A file or folder at a URL, with the methods of `pathlib.Path` that holotrace uses."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from typing import TYPE_CHECKING, Any, NamedTuple

from holotrace.locations.filesystems import opened_filesystem, translated
from holotrace.locations.remote_file import opened_file
from holotrace.locations.secrets import NO_SECRET, Secret, remember, secret_of, without_secret
from holotrace.locations.unreachable import explained_errors

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_PARTS = re.compile(r"(?P<scheme>[A-Za-z][\w.+-]*:/{2,3})?(?P<path>.*?)(?P<behind>::.*)?", re.DOTALL)
_PAGES = ("http://", "https://")


class _Parts(NamedTuple):
    """The three parts of a URL: `https://`, then `host/folder/file`, then for example `?version=2` or `::s3://…`."""

    scheme: str
    path: str
    behind: str


@dataclass(frozen=True)
class RemotePath:
    """A file or folder at a URL; the secret is pickled with the path, but ignored when paths are compared.

    url     the URL without secrets; only web folders have a trailing `/`
    secret  the secret that was removed from the URL
    """

    url: str
    secret: Secret = field(default=NO_SECRET, repr=False, compare=False)

    @classmethod
    def of(cls, url: str) -> RemotePath:
        """Parse a URL as the user wrote it."""
        shown, secret = without_secret(url)
        remember(shown, secret)
        return cls(_trimmed(shown), secret if secret != NO_SECRET else secret_of(shown))

    def __post_init__(self) -> None:
        """Remember the secret, so that this process can also open the path from `str(path)`, which omits it."""
        remember(self.url, self.secret)

    def __reduce__(self) -> tuple[type[RemotePath], tuple[str, Secret]]:
        """Pickle the path as its URL and its secret."""
        return RemotePath, (self.url, self.secret)

    def __str__(self) -> str:
        """Return the URL without secrets."""
        return self.url

    def __truediv__(self, name: str) -> RemotePath:
        """Return the path of an entry in this folder."""
        parts = _parts(self.url)
        between = "" if not parts.path or parts.path.endswith("/") else "/"
        return RemotePath(f"{parts.scheme}{parts.path}{between}{name}{parts.behind}", self.secret)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return posixpath.basename(_parts(self.url).path.rstrip("/"))

    @property
    def suffix(self) -> str:
        """The suffix of the name, with its dot."""
        return posixpath.splitext(self.name)[1]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return posixpath.splitext(self.name)[0]

    @property
    def parent(self) -> RemotePath:
        """The parent folder; at the top, the path itself."""
        parts = _parts(self.url)
        above = posixpath.dirname(parts.path.rstrip("/"))
        slash = "/" if self.is_page else ""
        return RemotePath(f"{parts.scheme}{above}{slash}{parts.behind}", self.secret) if above else self

    def with_name(self, name: str) -> RemotePath:
        """Return the path of another entry in the same folder."""
        return self.parent / name

    def below(self, root: RemotePath) -> str:
        """Return the path relative to `root`, which must contain it; empty if both are equal."""
        return _parts(self.url).path[len(_parts(root.url).path) :].strip("/")

    def is_inside(self, root: RemotePath) -> bool:
        """Return whether the path is `root` or below it; only names are compared, because links are not detected."""
        inside, outside = _parts(self.url), _parts(root.url)
        is_same_server = (inside.scheme, inside.behind) == (outside.scheme, outside.behind)
        return (
            is_same_server
            and ".." not in inside.path.split("/")
            and f"{inside.path}/".startswith(f"{outside.path.rstrip('/')}/")
        )

    @property
    def is_page(self) -> bool:
        """Whether the path is on a web server, where only a trailing `/` marks a folder."""
        return translated(self.url).startswith(_PAGES)

    @property
    def filesystem(self) -> tuple[AbstractFileSystem, str]:
        """The fsspec file system that contains the path, and the path within it.

        Raises:
            UnreachableError: a package or a credential for the file system is missing.
        """
        with explained_errors(self):
            return opened_filesystem(self.url, self.secret)

    def info(self) -> dict[str, Any]:
        """Return the file system's metadata for the file or folder.

        Raises:
            FileNotFoundError: the path does not exist.
            UnreachableError: the path cannot be reached.
        """
        filesystem, path = self.filesystem
        with explained_errors(self):
            info: dict[str, Any] = filesystem.info(path)
            return info

    def exists(self) -> bool:
        """Return whether the path exists."""
        return self._type() is not None

    def is_dir(self) -> bool:
        """Return whether the path is a folder; on a web server, a path is a folder if it ends with `/`."""
        return self.url.endswith("/") if self.is_page else self._type() == "directory"

    def is_file(self) -> bool:
        """Return whether the path is a file."""
        return not self.url.endswith("/") and self._type() == "file"

    def is_symlink(self) -> bool:
        """Return False, because links at URLs are not detected."""
        return False

    def expanduser(self) -> RemotePath:
        """Return itself."""
        return self

    def absolute(self) -> RemotePath:
        """Return itself."""
        return self

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield the entries of the folder.

        Raises:
            FileNotFoundError: the folder does not exist.
            UnreachableError: the folder cannot be listed.
        """
        return (self / name for name, _ in self.listed())

    def listed(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the name of each entry and the file system's metadata for it; names of web folders end with `/`.

        Raises:
            FileNotFoundError, UnreachableError: see `iterdir`.
        """
        filesystem, path = self.filesystem
        with explained_errors(self):
            entries = filesystem.ls(path, detail=True)
        slash = "/" if self.is_page else ""
        named = ((_name_below(path, str(entry["name"])), entry) for entry in entries)
        return [(name + slash * (entry["type"] == "directory"), entry) for name, entry in named if name]

    def glob(self) -> list[RemotePath]:
        """Return the files that match this path, which contains a glob pattern.

        Raises:
            UnreachableError: the folder cannot be searched.
        """
        filesystem, path = self.filesystem
        fixed = self
        while any(sign in _parts(fixed.url).path for sign in "*?["):
            fixed = fixed.parent
        below = fixed.filesystem[1]
        with explained_errors(self):
            matches = filesystem.glob(path, detail=True)
        files = (str(name) for name, entry in matches.items() if entry.get("type") != "directory")
        return [fixed / relative for name in files if (relative := _path_below(below, name))]

    def open(self, mode: str = "rb") -> BufferedReader:
        """Open the file for reading bytes, with retries after lost connections.

        Raises:
            FileNotFoundError: the file does not exist.
            UnreachableError: the file cannot be reached.
        """
        if mode != "rb":
            message = (
                f"mode {mode!r}: files at URLs can only be opened for reading; write with holotrace.locations.drafted"
            )
            raise ValueError(message)
        return opened_file(self)

    def read_bytes(self) -> bytes:
        """Return all bytes of the file, with the same retries as `open`."""
        with self.open() as file:
            return file.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the file as text, with the same retries as `open`."""
        return self.read_bytes().decode(encoding)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Create a folder; do nothing in an object store, which has no folders."""
        del parents, exist_ok  # both are assumed to be True; a caller that needs a new folder checks beforehand
        filesystem, path = self.filesystem
        if not writes_at_once(filesystem):
            with explained_errors(self):
                filesystem.makedirs(path, exist_ok=True)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove the file.

        Raises:
            FileNotFoundError: the file does not exist.
        """
        filesystem, path = self.filesystem
        if missing_ok and not self.exists():
            return
        try:
            with explained_errors(self, "removed"):
                filesystem.rm_file(path)
        except FileNotFoundError:  # another process has removed the file
            if not missing_ok:
                raise

    def _type(self) -> str | None:
        try:
            return str(self.info().get("type", "file"))
        except FileNotFoundError:
            return None


_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "memory"}


def writes_at_once(filesystem: AbstractFileSystem) -> bool:
    """Return whether a file system is an object store: it has no folders, and shows a file only when it is complete."""
    protocols = filesystem.protocol if isinstance(filesystem.protocol, list | tuple) else [filesystem.protocol]
    return not _OBJECT_STORES.isdisjoint(protocols)


def _parts(url: str) -> _Parts:
    match = _PARTS.fullmatch(url)
    scheme, path, behind = match.group("scheme", "path", "behind") if match else ("", url, "")
    if scheme in _PAGES:
        path, question, query = path.partition("?")
        return _Parts(scheme, path, f"{question}{query}{behind or ''}")
    return _Parts(scheme or "", path, behind or "")


def _trimmed(url: str) -> str:
    parts = _parts(url)
    path = parts.path if parts.scheme in _PAGES and not translated(url).startswith("az") else parts.path.rstrip("/")
    return f"{parts.scheme}{path}{parts.behind}"


def _name_below(folder: str, path: str) -> str:
    """Return the name of an entry; empty for the folder itself and for links that lead out of a web folder."""
    below = _path_below(folder, path).rstrip("/")
    return "" if "/" in below else below


def _path_below(folder: str, path: str) -> str:
    inside, folder = path.strip("/"), folder.strip("/")
    if not folder:
        return inside
    return inside[len(folder) + 1 :] if inside.startswith(f"{folder}/") else ""
