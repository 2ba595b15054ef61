"""A WSGI wrapper that keeps other people's pages away from the server.

A page of another site can make a browser send requests to 127.0.0.1, or to a name that it lets point there (DNS
rebinding). So the Host header has to name this server, a POST has to come from one of its own pages, and a server that
other machines can reach wants a token. The content security policy lets a page run only the scripts that the server
itself delivers, and connect to nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Collection, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

COOKIE = "hta_token"
PERFETTO = "https://ui.perfetto.dev"

_SAFE_METHODS = {"GET", "HEAD"}
_METHODS = {*_SAFE_METHODS, "POST"}
_INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
_OWN_FRAMES = "; frame-ancestors 'self'"
_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "same-origin"),
)


class Guard:
    """Wraps a WSGI application: refuses what does not come from its own pages, and adds the security headers.

    allowed_hosts  names and addresses that the Host header may have, without port; None allows any, for a server that
                   has its own rules, such as TensorBoard
    token          what the first request has to bring as `?token=`; None for a server that only this machine reaches
    """

    def __init__(
        self, app: WSGIApplication, *, allowed_hosts: Collection[str] | None, token: str | None = None
    ) -> None:
        """Wrap `app`."""
        self._app = app
        self._hosts = None if allowed_hosts is None else {host.lower() for host in allowed_hosts}
        self._token = token

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        refusal = self._refusal(environ)
        if refusal:
            return _plain(start_response, *refusal)
        if self._token is not None and _token_in_query(environ) == self._token:
            return self._welcome(environ, start_response)
        framed_by_anyone = self._hosts is None  # TensorBoard stands in pages of notebooks and editors
        return _with_policy(self._app, environ, start_response, "" if framed_by_anyone else _OWN_FRAMES)

    def _refusal(self, environ: WSGIEnvironment) -> tuple[str, str] | None:
        """Return status and reason where a request is refused."""
        host = environ.get("HTTP_HOST", "")
        if self._hosts is not None and _host_name(host) not in self._hosts:
            return "403 Forbidden", "this server does not go by that name; start it with --allow-host NAME"
        if environ["REQUEST_METHOD"] not in _METHODS:
            return "405 Method Not Allowed", "this server answers GET and POST"
        if environ["REQUEST_METHOD"] not in _SAFE_METHODS and not _comes_from_here(environ, host):
            return "403 Forbidden", "requests from pages of other sites are refused"
        if self._token is not None and not self._knows_token(environ):
            return "401 Unauthorized", "open the address that hta serve printed, with its token"
        return None

    def _knows_token(self, environ: WSGIEnvironment) -> bool:
        brought = (_token_in_query(environ), _token_in_cookie(environ))
        return any(hmac.compare_digest(each.encode(), (self._token or "").encode()) for each in brought)

    def _welcome(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Move the token from the address, which ends up in histories, into a cookie that scripts cannot read."""
        rest = [pair for pair in parse_qsl(environ.get("QUERY_STRING", "")) if pair[0] != "token"]
        location = "./" + ("?" + urlencode(rest) if rest else "")
        cookie = f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        start_response("303 See Other", [("Location", location), ("Set-Cookie", cookie), *_HEADERS])
        return [b""]


def _with_policy(
    app: WSGIApplication, environ: WSGIEnvironment, start_response: StartResponse, frames: str
) -> Iterable[bytes]:
    """Answer with the security headers; the policy of an HTML page names the hashes of its inline scripts."""
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
    """Return the content security policy of a page: its own inline scripts by their hashes, and this server.

    `unsafe-eval` is what plotly's WebGL traces need; they fail silently without.
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
    """Whether a request that changes or computes something comes from a page of this server.

    Browsers send Origin with every POST; programs that send none carry no one's cookies.
    """
    if environ.get("HTTP_SEC_FETCH_SITE") == "same-origin":  # pages cannot set it; proxies leave it as it is
        return True
    origin = environ.get("HTTP_ORIGIN")
    return origin is None or (urlsplit(origin).netloc.lower() == host.lower() and bool(host))


def _host_name(host: str) -> str:
    """Return a Host header's name in small letters, without the port: `[::1]:8050` is `::1`."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _token_in_query(environ: WSGIEnvironment) -> str:
    return dict(parse_qsl(environ.get("QUERY_STRING", ""))).get("token", "")


def _token_in_cookie(environ: WSGIEnvironment) -> str:
    try:
        cookies = SimpleCookie(environ.get("HTTP_COOKIE", ""))
    except CookieError:
        return ""
    return str(cookies[COOKIE].value) if COOKIE in cookies else ""


def _plain(start_response: StartResponse, status: str, reason: str) -> Iterable[bytes]:
    body = f"{status}: {reason}\n".encode()
    start_response(
        status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *_HEADERS]
    )
    return [body]
