"""Connections that send no request are closed after a while and do not block other connections."""

from __future__ import annotations

import http.client
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest

pytest.importorskip("dash", reason="the extra web is not installed")
pytest.importorskip("waitress", reason="the extra web is not installed")

from holotrace.web.server import connections
from holotrace.web.server.connections import LONGEST_STALL_S, LONGEST_WAIT_S, MOST_CONNECTIONS, ConnectionServer

ANSWER = b"an answer"
_KEPT = 16 << 20
NOTHING = b""
HALF_A_LINE = b"GET / HT"
HALF_A_HEADER = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-More: "
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\nhalf"
EMPTY_LINES = b"\r\n\r\n"
WHOLE = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def answers(environ, start_response) -> Iterator[bytes]:
    """Answer every request; the answer to `/large` is larger than the buffers of the server."""
    parts = [b"x" * (1 << 20)] * 40 if environ["PATH_INFO"] == "/large" else [ANSWER]
    start_response("200 OK", [("Content-Length", str(sum(map(len, parts))))])
    return iter(parts)


@contextmanager
def running() -> Iterator[ConnectionServer]:
    """Run a connection server in a thread."""
    server = ConnectionServer(answers, socket.create_server(("127.0.0.1", 0)))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield server
    server.task_dispatcher.shutdown()
    server.close()


@pytest.fixture
def server() -> Iterator[ConnectionServer]:
    """Return a running server."""
    with running() as started:
        yield started


def ask(server: ConnectionServer) -> bytes:
    """Send a request on a new connection."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.effective_port, timeout=60)) as connection:
        connection.request("GET", "/")
        return connection.getresponse().read()


def opened(server: ConnectionServer, count: int, sent: bytes, until: ExitStack) -> list[socket.socket]:
    """Open connections, each of which sends some bytes and then nothing more."""
    made = []
    for _ in range(count):
        connection = until.enter_context(
            socket.create_connection(("127.0.0.1", int(server.effective_port)), timeout=60)
        )
        connection.sendall(sent)
        made.append(connection)
    return made


def read(connection: socket.socket) -> bytes:
    """Receive until the response is complete or the connection ends."""
    answer = b""
    with suppress(ConnectionResetError):  # the server may close the connection before it has read everything
        while not answer.endswith(ANSWER) and (more := connection.recv(1_000)):
            answer += more
    return answer


@pytest.mark.parametrize("sent", [NOTHING, HALF_A_LINE, HALF_A_HEADER, HALF_A_BODY, EMPTY_LINES, WHOLE])
def test_silent_connections_do_not_block_others(server, sent) -> None:
    """With 300 silent connections, more than the server accepts, a new request is still answered."""
    with ExitStack() as until:
        for _ in range(3):
            opened(server, 100, sent, until)
            assert ask(server) == ANSWER
        assert len(server.active_channels) <= MOST_CONNECTIONS + 1


def test_slow_connections_do_not_block_others(server) -> None:
    """With 300 connections that send one byte at a time, a new request is still answered."""
    with ExitStack() as until:
        slow = opened(server, 300, HALF_A_HEADER, until)
        for _ in range(3):
            for connection in slow:
                with suppress(OSError):  # the server may have closed this connection to accept another
                    connection.send(b"x")
            assert ask(server) == ANSWER


def test_the_machine_with_most_connections_loses_one(server) -> None:
    """If one machine opens 300 connections, the only connection of another machine stays open."""
    with ExitStack() as until:
        [mine] = opened(server, 1, WHOLE, until)
        assert ANSWER in read(mine)
        (channel,) = server.active_channels.values()
        channel.addr = ("192.0.2.1", 1)
        opened(server, 300, NOTHING, until)
        assert ask(server) == ANSWER
        mine.sendall(WHOLE)
        assert ANSWER in read(mine)


@pytest.mark.parametrize("sent", [NOTHING, HALF_A_LINE, HALF_A_HEADER, HALF_A_BODY])
def test_a_request_must_arrive_within_half_a_minute(server, sent) -> None:
    """A connection with an incomplete request is closed LONGEST_WAIT_S after its start, even if more bytes arrive."""
    with ExitStack() as until:
        [slow] = opened(server, 1, sent, until)
        assert ask(server) == ANSWER  # by now, the server has accepted the slow connection
        channel = min(list(server.active_channels.values()), key=lambda channel: channel.creation_time)
        server.maintenance(channel.creation_time + LONGEST_WAIT_S - 5)
        assert not channel.will_close
        slow.send(b"x")
        server.maintenance(channel.creation_time + LONGEST_WAIT_S + 1)
        assert read(slow) == b""


def test_a_client_that_does_not_receive_frees_its_thread(monkeypatch) -> None:
    """A client that does not read a large response is dropped after LONGEST_STALL_S, and the next client is served."""
    monkeypatch.setattr(connections, "THREADS", 1)
    with running() as server, ExitStack() as until:
        opened(server, 1, WHOLE.replace(b"GET /", b"GET /large"), until)
        while not any(channel.total_outbufs_len > _KEPT for channel in server.active_channels.values()):
            time.sleep(0.01)
        [stalled] = server.active_channels.values()
        server.maintenance(stalled.last_activity + LONGEST_STALL_S + 1)
        assert ask(server) == ANSWER


def test_the_limit_of_open_files_is_respected(monkeypatch) -> None:
    """With a limit of 64 open files, the server accepts only 32 connections, so that it can open 32 trace files."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    with closing(ConnectionServer(answers, socket.create_server(("127.0.0.1", 0)))) as server:
        assert server._most_connections == 32


def test_broken_connections_are_not_logged(server, caplog) -> None:
    """If fifty connections are reset during a request, nothing is logged."""
    caplog.set_level(logging.WARNING)
    with ExitStack() as until:
        for connection in opened(server, 50, HALF_A_BODY, until):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()
    assert ask(server) == ANSWER
    assert not [record for record in caplog.records if record.name != "waitress.queue"]  # waitress.queue logs the load
