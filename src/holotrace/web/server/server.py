"""The server of `holotrace serve`: waitress in one process; `Guard` protects it from other sites and users."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holotrace.errors import InvalidOptionError
from holotrace.web.server.connections import ConnectionServer
from holotrace.web.server.guard import Guard
from holotrace.web.session.session import Session
from holotrace.web.shell.app import create_app

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_ANY_ADDRESS = {"0.0.0.0", "::", ""}  # noqa: S104 -- compared, not bound


@dataclass(frozen=True)
class Address:
    """The host and port to listen on, additional names of the server, and whether the address contains a token."""

    host: str = "127.0.0.1"
    port: int = 8050
    names: frozenset[str] = frozenset()
    has_token: bool = True

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """Names allowed in the Host header; if the server listens on all addresses, also all names of its machine."""
        own = {*_own_names(), *_own_addresses()} if self.host in _ANY_ADDRESS else {self.host}
        return frozenset({*_LOOPBACK_NAMES, *own, *self.names})


@dataclass(frozen=True)
class Server:
    """A server that is bound to its port."""

    url: str
    _waitress: ConnectionServer

    def run(self) -> None:
        """Answer requests until interrupted."""
        self._waitress.run()

    def close(self) -> None:
        """Free the port."""
        self._waitress.close()


@contextmanager
def bound_server(session: Session, address: Address) -> Iterator[Server]:
    """Bind the port at once, to fail early if it is in use.

    Raises:
        InvalidOptionError: the address is not available, or other machines can reach it without a token.
    """
    token = _token(address)
    listening = _listen(address)
    server = Server(
        _url(address, listening.getsockname()[1], token),
        ConnectionServer(guarded(session, address, token), listening),
    )
    try:
        yield server
    finally:
        server.close()
        session.close()


def guarded(session: Session, address: Address, token: str | None) -> WSGIApplication:
    """Return the application, protected by a guard."""
    return Guard(create_app(session).server.wsgi_app, allowed_hosts=address.allowed_hosts, token=token)


def _token(address: Address) -> str | None:
    """Return a new token; None with `--no-token`, which lets all users of this machine open the pages."""
    if address.has_token:
        return secrets.token_urlsafe(24)
    if address.is_loopback:
        return None
    message = f"other machines can reach {address.host}, so the pages need a token: leave out --no-token"
    raise InvalidOptionError(message)


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        message = f"cannot listen on {address.host}:{address.port}: {error.strerror}; choose another port with --port"
        raise InvalidOptionError(message) from error


def _url(address: Address, port: int, token: str | None) -> str:
    host = socket.gethostname() if address.host in _ANY_ADDRESS else address.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + (f"?token={token}" if token else "")


def _own_names() -> set[str]:
    names = {socket.gethostname(), socket.getfqdn()}
    return names | {name.partition(".")[0] for name in names}


def _own_addresses() -> set[str]:
    try:
        return {str(address) for *_, (address, *_) in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:
        return set()
