"""A web server in the test process that supports byte ranges and can cut off or refuse responses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass
class WebFiles:
    """The files that a server offers, how it responds, and the requests that it received.

    files       {path: content}; a folder is served as a page of links
    has_ranges  whether the server supports byte ranges
    cuts        how many responses above 1,000 bytes are still to be cut off in the middle
    status      HTTP status that replaces every response
    etag        the version that the server sends; if it is "", the server sends no version
    requests    method, path with query, and byte range of each request
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    has_ranges: bool = True
    cuts: int = 0
    status: int | None = None
    etag: str = "v1"
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    sent_bytes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def takes_a_cut(self, byte_count: int) -> bool:
        """Return whether to cut off a response of this size."""
        with self.lock:
            is_cut = byte_count > 1_000 and self.cuts > 0
            self.cuts -= is_cut
            return is_cut


class _Server(ThreadingHTTPServer):
    """Answers each request in a separate thread."""

    daemon_threads = True

    def __init__(self, served: WebFiles) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.served = served
        served.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: object) -> None:
        """Ignore clients that close the connection."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        served = self.server.served
        served.requests.append((self.command, self.path, self.headers.get("Range", "")))
        content = _content(served, urlsplit(self.path).path)
        if served.status is not None or content is None:
            self.send_response(served.status or HTTPStatus.NOT_FOUND)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        part = self.send_head(served, len(content))
        if with_body:
            self.send(served, content[part])

    def send_head(self, served: WebFiles, size: int) -> slice:
        asked = self.headers.get("Range") if served.has_ranges else None
        start, end = _part(asked, size)
        self.send_response(HTTPStatus.OK if asked is None else HTTPStatus.PARTIAL_CONTENT)
        if asked is not None:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        if served.etag:
            self.send_header("ETag", f'"{served.etag}"')
        self.send_header("Content-Length", str(end - start))
        self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
        self.end_headers()
        return slice(start, end)

    def send(self, served: WebFiles, body: bytes) -> None:
        is_cut = served.takes_a_cut(len(body))
        sent = body[: len(body) // 2] if is_cut else body
        served.sent_bytes += len(sent)
        self.wfile.write(sent)
        self.close_connection = self.close_connection or is_cut

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving() -> Iterator[WebFiles]:
    """Run a server until the `with` block ends."""
    server = _Server(WebFiles())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _content(served: WebFiles, path: str) -> bytes | None:
    if path.endswith("/"):
        names = {rest.partition("/") for file in served.files if (rest := file.removeprefix(path)) != file}
        links = [f'<a href="{name}{slash}">{name}</a>' for name, slash, _ in sorted(names)]
        return "".join(['<a href="../">up</a><a href="http://elsewhere.invalid/a.json">away</a>', *links]).encode()
    return served.files.get(path)


def _part(asked: str | None, size: int) -> tuple[int, int]:
    if asked is None:
        return 0, size
    first, _, last = asked.removeprefix("bytes=").partition("-")
    return int(first), min(size, int(last) + 1 if last else size)
