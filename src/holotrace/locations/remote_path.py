"""A file or folder behind a URL, with the methods of `pathlib.Path` that are used of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from typing import TYPE_CHECKING, Any, NamedTuple

from holotrace.locations.filesystems import opened_filesystem, translated
from holotrace.locations.secrets import NO_SECRET, Secret, remember, secret_of, without_secret
from holotrace.locations.unreachable import explained_errors

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_PARTS = re.compile(r"(?P<scheme>[A-Za-z][\w.+-]*:/{2,3})?(?P<path>.*?)(?P<behind>::.*)?", re.DOTALL)
_PAGES = ("http://", "https://")


class _Parts(NamedTuple):
    """A URL cut so that its path can be changed: `https://`, `host/folder/file`, `?version=2` or `::s3://…`."""

    scheme: str
    path: str
    behind: str


@dataclass(frozen=True)
class RemotePath:
    """What a URL names; equal to another one of the same URL, and pickled with what opens it.

    url     as given, without secrets and without `/` at its end, which only addresses of web folders keep
    secret  what was cut out of it
    """

    url: str
    secret: Secret = field(default=NO_SECRET, repr=False, compare=False)

    @classmethod
    def of(cls, url: str) -> RemotePath:
        """Take a URL as somebody wrote it."""
        shown, secret = without_secret(url)
        remember(shown, secret)
        return cls(_trimmed(shown), secret if secret != NO_SECRET else secret_of(shown))

    def __post_init__(self) -> None:
        """Let the text of this path alone open it from now on, also in a process that it was sent to."""
        remember(self.url, self.secret)

    def __reduce__(self) -> tuple[type[RemotePath], tuple[str, Secret]]:
        """Pickle the address and what opens it."""
        return RemotePath, (self.url, self.secret)

    def __str__(self) -> str:
        """Return the URL without secrets."""
        return self.url

    def __truediv__(self, name: str) -> RemotePath:
        """Return what lies below."""
        parts = _parts(self.url)
        between = "" if not parts.path or parts.path.endswith("/") else "/"
        return RemotePath(f"{parts.scheme}{parts.path}{between}{name}{parts.behind}", self.secret)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return posixpath.basename(_parts(self.url).path.rstrip("/"))

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return posixpath.splitext(self.name)[1]

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return posixpath.splitext(self.name)[0]

    @property
    def parent(self) -> RemotePath:
        """The folder around it; itself at the top."""
        parts = _parts(self.url)
        above = posixpath.dirname(parts.path.rstrip("/"))
        slash = "/" if self.is_page else ""
        return RemotePath(f"{parts.scheme}{above}{slash}{parts.behind}", self.secret) if above else self

    def with_name(self, name: str) -> RemotePath:
        """Return what would lie beside it under another name."""
        return self.parent / name

    def below(self, root: RemotePath) -> str:
        """Return the path from `root`, around it, to here; empty where it is the same."""
        return _parts(self.url).path[len(_parts(root.url).path) :].strip("/")

    def is_inside(self, root: RemotePath) -> bool:
        """Whether it lies below `root`, as far as names tell; there are no links."""
        inside, outside = _parts(self.url), _parts(root.url)
        same_place = (inside.scheme, inside.behind) == (outside.scheme, outside.behind)
        return (
            same_place
            and ".." not in inside.path.split("/")
            and f"{inside.path}/".startswith(f"{outside.path.rstrip('/')}/")
        )

    @property
    def is_page(self) -> bool:
        """Whether it is read from a web server, where only a `/` at the end tells a folder."""
        return translated(self.url).startswith(_PAGES)

    @property
    def filesystem(self) -> tuple[AbstractFileSystem, str]:
        """The file system of fsspec, and the path in it.

        Raises:
            UnreachableError: what it takes to reach it is not installed, or not told.
        """
        with explained_errors(self):
            return opened_filesystem(self.url, self.secret)

    def info(self) -> dict[str, Any]:
        """Return what the file system says of it.

        Raises:
            FileNotFoundError: nothing is there.
            UnreachableError: that cannot be asked.
        """
        filesystem, path = self.filesystem
        with explained_errors(self):
            found: dict[str, Any] = filesystem.info(path)
            return found

    def exists(self) -> bool:
        """Whether something is there."""
        return self._type() is not None

    def is_dir(self) -> bool:
        """Whether it is a folder; of web addresses those that end with `/`."""
        return self.url.endswith("/") if self.is_page else self._type() == "directory"

    def is_file(self) -> bool:
        """Whether it is a file."""
        return not self.url.endswith("/") and self._type() == "file"

    def is_symlink(self) -> bool:
        """Return False: what is behind a URL is not looked into so far."""
        return False

    def expanduser(self) -> RemotePath:
        """Return itself."""
        return self

    def absolute(self) -> RemotePath:
        """Return itself."""
        return self

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield what lies in the folder.

        Raises:
            FileNotFoundError: there is no such folder.
            UnreachableError: it cannot be listed.
        """
        return (self / name for name, _ in self.listed())

    def listed(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the names in the folder, those of folders of the web with `/`, and what is said of each.

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
        """Return the files that the pattern in this path matches.

        Raises:
            UnreachableError: it cannot be looked for.
        """
        filesystem, path = self.filesystem
        fixed = self
        while any(sign in _parts(fixed.url).path for sign in "*?["):
            fixed = fixed.parent
        below = fixed.filesystem[1]
        with explained_errors(self):
            found = filesystem.glob(path, detail=True)
        files = (str(name) for name, entry in found.items() if entry.get("type") != "directory")
        return [fixed / relative for name in files if (relative := _path_below(below, name))]

    def open(self, mode: str = "rb") -> BufferedReader:
        """Open the file for reading bytes; what a cut connection left out is asked for again.

        Raises:
            FileNotFoundError: it is not there.
            UnreachableError: it cannot be reached.
        """
        from holotrace.locations.reading import opened_file  # noqa: PLC0415 -- that module reads paths of this one

        if mode != "rb":
            message = f"{mode!r}: what is behind a URL is opened for reading; holotrace.locations.drafted writes"
            raise ValueError(message)
        return opened_file(self)

    def read_bytes(self) -> bytes:
        """Return all bytes of the file; see `open`."""
        with self.open() as file:
            return file.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the file as text; see `open`."""
        return self.read_bytes().decode(encoding)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Make a folder, where the file system knows such; object stores do not."""
        del parents, exist_ok  # folders around it are made, and one that is there is fine: whoever writes asks first
        filesystem, path = self.filesystem
        if not writes_at_once(filesystem):
            with explained_errors(self):
                filesystem.makedirs(path, exist_ok=True)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove the file.

        Raises:
            FileNotFoundError: it is not there.
        """
        filesystem, path = self.filesystem
        if missing_ok and not self.exists():
            return
        try:
            with explained_errors(self, "removed"):
                filesystem.rm_file(path)
        except FileNotFoundError:  # another process was faster
            if not missing_ok:
                raise

    def _type(self) -> str | None:
        try:
            return str(self.info().get("type", "file"))
        except FileNotFoundError:
            return None


_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "memory"}


def writes_at_once(filesystem: AbstractFileSystem) -> bool:
    """Whether a file appears when it is complete, as in object stores, which have no folders either."""
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
    """Return the name of a child; empty where it is the folder itself or, as links of a web page, lies elsewhere."""
    below = _path_below(folder, path).rstrip("/")
    return "" if "/" in below else below


def _path_below(folder: str, path: str) -> str:
    inside, folder = path.strip("/"), folder.strip("/")
    if not folder:
        return inside
    return inside[len(folder) + 1 :] if inside.startswith(f"{folder}/") else ""
