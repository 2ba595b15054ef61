"""waitress, made to answer while others hold connections open and ask nothing.

By itself waitress takes 100 connections and drops a silent one after two minutes, one that sends a byte now and then
never: whoever opens 100 stops it, before any token is asked for. Here a request has to arrive within half a minute, and
where all places are taken, the connection that has waited longest makes room for the next one.
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

from holotrace.web.shell.app import MOST_BYTES_ASKED

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

THREADS = 16
"""Requests answered at once: a page asks for several parts, each waiting for its work at most a fraction of a second."""

MOST_CONNECTIONS = 256
"""Browsers hold six each. Where a process may open few files, connections take at most half of them."""

LONGEST_WAIT_S = 30
"""How long a connection may take until a request has arrived whole, and how long it may stay open after an answer."""

LONGEST_STALL_S = 120
"""How long a browser may take no part of an answer."""

_MOST_HEADER_BYTES = 64 << 10
_CLEANED_EVERY_S = 5
_SPARE = 32
"""Connections taken while the ones that make room are being closed."""


class Connection(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """One connection, which knows since when it has waited for a request."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 -- waitress's own
        """Wait from now on."""
        super().__init__(*arguments, **options)
        self.waits_since_s = self.creation_time
        self.has_answered = False

    @property
    def is_waiting(self) -> bool:
        """Whether no whole request has arrived that is not answered."""
        return not (self.requests or self.total_outbufs_len or self.will_close)

    def received(self, data: bytes) -> bool:
        """Take a part of a request; the time for it begins with its first byte, or with the connection."""
        if self.has_answered and self.request is None:
            self.waits_since_s = time.time()
        return bool(super().received(data))

    def service(self) -> None:
        """Answer a request."""
        super().service()
        self.has_answered, self.waits_since_s = True, time.time()

    def end(self) -> None:
        """Close the connection, also where the other side takes nothing; waitress does so in its next round."""
        self.will_close = True
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class ConnectionServer(TcpWSGIServer):  # type: ignore[misc]  # waitress has no types
    """Listens on a socket that is bound already."""

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
        """Close connections that ask nothing, or take no answer, for too long."""
        for each in list(self.active_channels.values()):
            is_idle = each.is_waiting and now - each.waits_since_s > LONGEST_WAIT_S
            if is_idle or (each.total_outbufs_len and now - each.last_activity > LONGEST_STALL_S):
                each.end()

    def handle_accept(self) -> None:
        """Take a connection, in the place of another one where there are too many."""
        waiting = [each for each in self.active_channels.values() if each.is_waiting]
        if len(self.active_channels) >= self._most_connections and waiting:
            _longest_waiting(waiting).end()
        super().handle_accept()


def _longest_waiting(waiting: list[Connection]) -> Connection:
    """Return the connection to close: of the machine that has most of them, the one that has waited longest."""
    machines = Counter(each.addr[0] for each in waiting)
    return min(waiting, key=lambda each: (-machines[each.addr[0]], each.waits_since_s))


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
        max_request_body_size=MOST_BYTES_ASKED,
    )
