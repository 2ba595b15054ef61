"""A waitress server that keeps answering even if clients keep connections open without sending requests.

By default, waitress accepts 100 connections. It closes a silent connection after two minutes, but never a connection
that keeps sending single bytes. Any client, even one without a token, can
therefore block waitress with 100 such connections.

With the server of this module, a request must arrive within half a minute. If all connections are in use, the server
closes one that is waiting for a request.
"""

from __future__ import annotations

import select
import socket
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

from holotrace.web.shell.app import MOST_REQUEST_BYTES

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

THREADS = 16
"""Number of threads for requests; a page requests several parts at once, and a request takes a fraction of a second."""

MOST_CONNECTIONS = 256
"""Maximum number of connections. If half the number of files that the process may open is smaller, that is the maximum.
A browser opens six connections."""

LONGEST_WAIT_S = 30
"""Seconds within which a complete request must arrive; see `Connection.received` for the start of this time limit.
After an answer, the first byte of the next request must arrive within the same number of seconds."""

LONGEST_STALL_S = 120
"""Seconds after which the server closes a connection whose client accepts no more bytes of an answer."""

_MOST_HEADER_BYTES = 64 << 10
_CLEANED_EVERY_S = 5
_SPARE = 32
"""How far the number of connections may exceed the maximum while the server closes waiting connections."""


class Connection(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection that records when it began to wait for a request."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 -- as in waitress
        """Start waiting for the first request."""
        super().__init__(*arguments, **options)
        self.waits_since_s = self.creation_time
        self.has_answered = False

    @property
    def is_waiting(self) -> bool:
        """Whether every complete request has been answered and the connection is not being closed."""
        return not (self.requests or self.total_outbufs_len or self.will_close)

    def received(self, data: bytes) -> bool:
        """Receive bytes.

        The time limit of a request starts at its first byte; for the first request, it starts when the client connects.
        """
        if self.has_answered and self.request is None:
            self.waits_since_s = time.time()
        return bool(super().received(data))

    def service(self) -> None:
        """Answer a request."""
        super().service()
        self.has_answered, self.waits_since_s = True, time.time()

    def end(self) -> None:
        """Close the connection when waitress's loop runs next, even if an answer has not been sent completely."""
        self.will_close = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class ConnectionServer(TcpWSGIServer):  # type: ignore[misc]  # waitress has no types
    """A server on a socket that is already bound."""

    channel_class = Connection

    def __init__(self, app: WSGIApplication, listening: socket.socket) -> None:
        """Serve `app`."""
        family, kind, protocol = listening.family, listening.type, listening.proto
        self._most_connections = _most_connections()
        super().__init__(
            app,
            map={},
            _sock=listening,
            adj=_adjustments(self._most_connections + _SPARE),
            sockinfo=(family, kind, protocol, listening.getsockname()),
            bind_socket=False,
        )

    def maintenance(self, now: float) -> None:
        """Close connections whose client has taken too long to send a request or to accept an answer."""
        for connection in list(self.active_channels.values()):
            is_idle = connection.is_waiting and now - connection.waits_since_s > LONGEST_WAIT_S
            is_stalled = connection.total_outbufs_len and now - connection.last_activity > LONGEST_STALL_S
            if is_idle or is_stalled:
                connection.end()

    def handle_accept(self) -> None:
        """Accept a connection; if too many are open, close one that is waiting for a request."""
        waiting = [connection for connection in self.active_channels.values() if connection.is_waiting]
        if len(self.active_channels) >= self._most_connections and waiting:
            _longest_waiting(waiting).end()
        super().handle_accept()


def _longest_waiting(waiting: list[Connection]) -> Connection:
    """Return the longest-waiting connection of the client with the most waiting connections."""
    machines = Counter(connection.addr[0] for connection in waiting)
    return min(waiting, key=lambda connection: (-machines[connection.addr[0]], connection.waits_since_s))


def _most_connections() -> int:
    try:
        import resource  # noqa: PLC0415 -- not on Windows
    except ImportError:
        return MOST_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft // 2)


def _adjustments(connection_limit: int) -> Adjustments:
    return Adjustments(
        threads=THREADS,
        ident="holotrace",
        connection_limit=connection_limit,
        cleanup_interval=_CLEANED_EVERY_S,
        asyncore_use_poll=hasattr(select, "poll"),
        log_socket_errors=False,
        max_request_header_size=_MOST_HEADER_BYTES,
        max_request_body_size=MOST_REQUEST_BYTES,
    )
