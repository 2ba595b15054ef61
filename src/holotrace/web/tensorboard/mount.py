"""An application below a path of another server: made when the first request comes, and told where it stands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_INDEX = "/index.html"


class Mount:
    """A WSGI application that stands below the first `path` in the addresses that it is asked for."""

    def __init__(self, path: str, make: Callable[[], WSGIApplication]) -> None:
        """Remember how to make the application."""
        self._path = path
        self._make = make
        self._lock = threading.Lock()
        self._app: WSGIApplication | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        before, _, inside = environ["PATH_INFO"].partition(self._path)
        if not inside:  # addresses in its page are relative to the folder that its own address names
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
