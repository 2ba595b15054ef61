"""A proxy between a client and a server that cuts connections or stops answering."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

from remote.servers import HERE

_AT_ONCE = 1 << 16
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: drop unsent bytes and reset the connection


@dataclass
class FaultyProxy:
    """Forwards bytes, and breaks a connection once the server has sent more than `after` bytes on it.

    times   how many connections to break; None means all
    faults  how many connections have been broken so far
    """

    server: int
    fault: Literal["cut", "silence"] = "cut"
    after: int = 1 << 62
    times: int | None = 1
    tls: ssl.SSLContext | None = None
    faults: int = 0
    port: int = 0
    _closed: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def accept_on(self, listener: socket.socket) -> None:
        """Accept connections until the proxy is closed."""
        while not self._closed.is_set():
            with suppress(OSError):
                client, _ = listener.accept()
                threading.Thread(target=self._connect, args=[client], daemon=True).start()

    def close(self) -> None:
        """Stop the proxy and close silent connections."""
        self._closed.set()

    def _connect(self, client: socket.socket) -> None:
        with suppress(OSError), socket.create_connection((HERE, self.server)) as server:
            client = client if self.tls is None else self.tls.wrap_socket(client, server_side=True)
            with client:
                threading.Thread(target=_forward, args=[client, server], daemon=True).start()
                self._answer(server, client)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        sent = 0
        while content := server.recv(_AT_ONCE):
            sent += len(content)
            if sent > self.after and self._is_due():
                self._fail(client)
                return
            client.sendall(content)

    def _is_due(self) -> bool:
        with self._lock:
            if self.times is not None and self.faults >= self.times:
                return False
            self.faults += 1
            return True

    def _fail(self, client: socket.socket) -> None:
        if self.fault == "silence":
            self._closed.wait()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        client.shutdown(socket.SHUT_RDWR)  # `close` would wait for the thread that is still reading


def _forward(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(_AT_ONCE):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def faulty_proxy(server: int, **options) -> Iterator[FaultyProxy]:
    """Run a FaultyProxy in front of a server."""
    with socket.create_server((HERE, 0)) as listener:
        proxy = FaultyProxy(server, port=listener.getsockname()[1], **options)
        listener.settimeout(0.2)
        acceptor = threading.Thread(target=proxy.accept_on, args=[listener], daemon=True)
        acceptor.start()
        try:
            yield proxy
        finally:
            proxy.close()
            acceptor.join()
