"""A go-between on the way from a client to a server, that cuts connections or lets them go silent."""

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
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: drop what is not sent yet, and tell the other side nothing but that


@dataclass
class Between:
    """Passes bytes on; after so many that the server said on one connection, the fault happens.

    times   how often it happens, None for always
    faults  how often it has happened
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
        """Take connections until the listener is closed."""
        while not self._closed.is_set():
            with suppress(OSError):
                client, _ = listener.accept()
                threading.Thread(target=self._connect, args=[client], daemon=True).start()

    def close(self) -> None:
        """Let go of what is silent."""
        self._closed.set()

    def _connect(self, client: socket.socket) -> None:
        with suppress(OSError), socket.create_connection((HERE, self.server)) as server:
            client = client if self.tls is None else self.tls.wrap_socket(client, server_side=True)
            with client:
                threading.Thread(target=_pass_on, args=[client, server], daemon=True).start()
                self._answer(server, client)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        said = 0
        while content := server.recv(_AT_ONCE):
            said += len(content)
            if said > self.after and self._takes_one():
                self._happen(client)
                return
            client.sendall(content)

    def _takes_one(self) -> bool:
        with self._lock:
            if self.times is not None and self.faults >= self.times:
                return False
            self.faults += 1
            return True

    def _happen(self, client: socket.socket) -> None:
        if self.fault == "silence":
            self._closed.wait()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        client.shutdown(socket.SHUT_RDWR)  # the other thread still listens to it, and closing waits for that


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(_AT_ONCE):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def between(server: int, **how) -> Iterator[Between]:
    """Stand before a server; see Between."""
    with socket.create_server((HERE, 0)) as listener:
        proxy = Between(server, port=listener.getsockname()[1], **how)
        listener.settimeout(0.2)
        accepting = threading.Thread(target=proxy.accept_on, args=[listener], daemon=True)
        accepting.start()
        try:
            yield proxy
        finally:
            proxy.close()
            accepting.join()
