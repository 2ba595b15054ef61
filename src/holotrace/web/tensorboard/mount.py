"""Mount an application below a path of another server; the first request creates the application."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_INDEX = "/index.html"


class Mount:
    """A WSGI application that answers requests below `path`, even if a prefix precedes `path` in the address."""

    def __init__(self, path: str, make: Callable[[], WSGIApplication]) -> None:
        """Mount the application below `path`; the first request calls `make` to create it."""
        self._path = path
        self._make = make
        self._lock = threading.Lock()
        self._app: WSGIApplication | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        before, _, inside = environ["PATH_INFO"].partition(self._path)
        if not inside:  # redirect to the folder, because the addresses in the page are relative to it
            return _see(start_response, self._path.strip("/") + _INDEX)
        moved = {
            "SCRIPT_NAME": environ.get("SCRIPT_NAME", "") + before + self._path,
            "PATH_INFO": "/" if inside == _INDEX else inside,
        }
        return self._made()({**environ, **moved}, start_response)

    def _made(self) -> WSGIApplication:
        with self._lock:
            if self._app is None:
                self._app = self._make()
            return self._app


def _see(start_response: StartResponse, location: str) -> Iterable[bytes]:
    headers = [("Location", location), ("Content-Type", "text/plain"), ("X-Content-Type-Options", "nosniff")]
    start_response("302 Found", headers)
    return [b""]
