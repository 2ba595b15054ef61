"""A WSGI wrapper that protects the server from pages of other sites.

A page of another site can make a browser send requests to 127.0.0.1, or to a name that resolves to it (DNS
rebinding). The Host header must therefore contain a name of this server, and a POST must come from one of this server's
pages. Other users of this machine, and of machines that can reach it, need the token. The content security policy lets
a page run only scripts of this server, and connect only to this server.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import re
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

COOKIE = "holotrace_token"
"""Beginning of the cookie's name; the port is appended, because browsers share cookies among all ports of a machine."""

ANY_NAME = "*"
"""The entry in `allowed_hosts` that allows all names."""

PERFETTO = "https://ui.perfetto.dev"

_SAFE_METHODS = {"GET", "HEAD"}
_METHODS = {*_SAFE_METHODS, "POST"}
_INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
_OWN_FRAMES = "; frame-ancestors 'self'"
_AGAIN = b'<!doctype html><title>holotrace</title><meta http-equiv="refresh" content="0">'
_NO_TOKEN = "401 Unauthorized", "open the address that holotrace serve printed, with its token"
_NOT_KEPT = ("Cache-Control", "no-store")
_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "same-origin"),
)


class Guard:
    """Wraps a WSGI application: refuses requests from pages of other sites, and adds the security headers.

    allowed_hosts    names and addresses that the Host header may contain, without port; `*` allows all
    token            token that the first request must contain as `?token=`; None if no token is needed, because the
                     user turned it off or TensorBoard controls access
    any_address      whether the Host header may contain any numeric address; this is safe, because DNS rebinding needs
                     a name
    may_be_framed    whether other sites may show the pages in frames
    way_to_allow     part of the error message: what the user must do to allow another name
    """

    def __init__(  # noqa: PLR0913 -- one argument per rule
        self,
        app: WSGIApplication,
        *,
        allowed_hosts: Collection[str],
        token: str | None = None,
        any_address: bool = False,
        may_be_framed: bool = False,
        way_to_allow: str = "start it with --allow-host NAME",
    ) -> None:
        """Wrap `app`."""
        self._app = app
        self._hosts = {host.lower() for host in allowed_hosts}
        self._token = token
        self._any_address = any_address
        self._frames = "" if may_be_framed else _OWN_FRAMES
        self._way_to_allow = way_to_allow

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        refusal = self._refusal(environ)
        if refusal:
            return _plain(start_response, *refusal)
        if self._token is not None and not self._knows_token(environ):
            return _ask_again(start_response) if _follows_a_link(environ) else _plain(start_response, *_NO_TOKEN)
        if environ["REQUEST_METHOD"] in _SAFE_METHODS and self._is_token(_token_in_query(environ)):
            return self._welcome(environ, start_response)
        return _with_policy(self._app, environ, start_response, self._frames)

    def _refusal(self, environ: WSGIEnvironment) -> tuple[str, str] | None:
        """If the request must be refused even with the right token, return the HTTP status and the reason."""
        host = environ.get("HTTP_HOST", "")
        if not self._goes_by(_host_name(host)):
            return "403 Forbidden", f"this server does not accept the host name in this address; {self._way_to_allow}"
        if environ["REQUEST_METHOD"] not in _METHODS:
            return "405 Method Not Allowed", "this server answers only GET and POST"
        if environ["REQUEST_METHOD"] not in _SAFE_METHODS and not _comes_from_here(environ, host):
            return "403 Forbidden", "requests from pages of other sites are refused"
        return None

    def _goes_by(self, name: str) -> bool:
        return name in self._hosts or ANY_NAME in self._hosts or (self._any_address and _is_address(name))

    def _knows_token(self, environ: WSGIEnvironment) -> bool:
        return self._is_token(_token_in_query(environ)) or self._is_token(_token_in_cookie(environ))

    def _is_token(self, text: str) -> bool:
        """Compare in constant time."""
        return self._token is not None and hmac.compare_digest(text.encode(), self._token.encode())

    def _welcome(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Move the token from the address, which browsers store in the history, to a cookie hidden from scripts."""
        query = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        rest = [pair for pair in query if pair[0] != "token"]
        page = quote(environ.get("PATH_INFO", "").rpartition("/")[2], encoding="latin-1")
        location = f"./{page}" + ("?" + urlencode(rest, safe=",") if rest else "")
        cookie = f"{_cookie_name(environ)}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        start_response("303 See Other", [("Location", location), ("Set-Cookie", cookie), _NOT_KEPT, *_HEADERS])
        return [b""]


def _follows_a_link(environ: WSGIEnvironment) -> bool:
    """Return whether the browser follows a link from another site.

    The browser does not send our cookie with a request that comes from another site. If we answer with a page that
    loads the same address again, the browser sends the cookie with the second request.
    """
    sent = tuple(environ.get(f"HTTP_SEC_FETCH_{name}") for name in ("SITE", "MODE", "DEST"))
    return environ["REQUEST_METHOD"] == "GET" and sent == ("cross-site", "navigate", "document")


def _ask_again(start_response: StartResponse) -> Iterable[bytes]:
    """Answer with a page that opens the same address again; the browser then sends our cookie."""
    headers = [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(_AGAIN)))]
    start_response(_NO_TOKEN[0], [*headers, _NOT_KEPT, *_HEADERS, _policy(_AGAIN, _OWN_FRAMES)])
    return [_AGAIN]


def _with_policy(
    app: WSGIApplication, environ: WSGIEnvironment, start_response: StartResponse, frames: str
) -> Iterable[bytes]:
    """Add security headers to the answer of `app`; the content policy of an HTML page allows its inline scripts."""
    kept: list[tuple[str, list[tuple[str, str]]]] = []

    def keep(status: str, headers: list[tuple[str, str]], *_: object) -> Callable[[bytes], object]:
        kept.append((status, headers))
        return lambda _data: None

    chunks = app(environ, keep)
    status, headers = kept[-1]
    if not any(name.lower() == "content-type" and value.startswith("text/html") for name, value in headers):
        start_response(status, [*_without(headers), *_HEADERS, _policy(b"", frames)])
        return chunks
    try:
        body = b"".join(chunks)
    finally:
        if hasattr(chunks, "close"):
            chunks.close()
    start_response(status, [*_without(headers), *_HEADERS, _policy(body, frames)])
    return [body]


def content_policy(html: bytes) -> str:
    """Return the content security policy of a page.

    The policy allows content from this server, and Perfetto in frames. It lists the hashes of the page's inline
    scripts; browsers run no other inline scripts. It includes `unsafe-eval`, because Plotly's WebGL traces would fail
    silently without it.
    """
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in _INLINE_SCRIPT.findall(html))
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' 'unsafe-eval' {hashes}".rstrip(),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            f"frame-src 'self' {PERFETTO}",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
        )
    )


def _policy(html: bytes, frames: str) -> tuple[str, str]:
    return "Content-Security-Policy", content_policy(html) + frames


def _hash(script: bytes) -> str:
    return base64.b64encode(hashlib.sha256(script.replace(b"\r\n", b"\n")).digest()).decode()


def _without(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    ours = {"content-security-policy", *(name.lower() for name, _ in _HEADERS)}
    return [(name, value) for name, value in headers if name.lower() not in ours]


def _comes_from_here(environ: WSGIEnvironment, host: str) -> bool:
    """Return whether a POST comes from a page of this server.

    Browsers send Origin with every POST. A client that sends a POST without Origin is therefore not a browser, and
    pages of other sites cannot control it.
    """
    if environ.get("HTTP_SEC_FETCH_SITE") == "same-origin":  # pages cannot set this header, and proxies pass it on
        return True
    origin = environ.get("HTTP_ORIGIN")
    return origin is None or (bool(host) and _netloc_of(origin) == host.lower())


def _netloc_of(origin: str) -> str:
    """Return host and port from an Origin header; empty if the header is malformed."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _host_name(host: str) -> str:
    """Return the name in a Host header in lower case, without the port: `[::1]:8050` is `::1`."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _token_in_query(environ: WSGIEnvironment) -> str:
    return dict(parse_qsl(environ.get("QUERY_STRING", ""))).get("token", "")


def _token_in_cookie(environ: WSGIEnvironment) -> str:
    """Return the value of our cookie; the header may also contain cookies of other servers on this machine."""
    pairs = (pair.strip().partition("=") for pair in environ.get("HTTP_COOKIE", "").split(";"))
    ours = _cookie_name(environ)
    return next((value for name, _, value in pairs if name == ours), "")


def _cookie_name(environ: WSGIEnvironment) -> str:
    """Return the name of the cookie; it contains the requested port, to distinguish several servers."""
    try:
        port = urlsplit(f"//{environ.get('HTTP_HOST', '')}").port
    except ValueError:
        port = None
    return COOKIE if port is None else f"{COOKIE}_{port}"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _plain(start_response: StartResponse, status: str, reason: str) -> Iterable[bytes]:
    body = f"{status}: {reason}\n".encode()
    start_response(
        status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *_HEADERS]
    )
    return [body]
