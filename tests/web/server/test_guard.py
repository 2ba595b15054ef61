"""The guard refuses requests from pages of other sites and from other machines."""

from __future__ import annotations

import base64
import hashlib
from wsgiref.util import setup_testing_defaults

import pytest

from holotrace.web.server.guard import Guard, content_policy

PAGE = b"<html><script>\nlet one = 1;\n</script><script src='x.js'></script></html>"
HOSTS = {"127.0.0.1", "localhost", "::1"}


def ask(guard: Guard, method: str = "GET", query: str = "", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Send a request through a guard; return status, headers and body of the response."""
    environ = {"REQUEST_METHOD": method, "QUERY_STRING": query, "HTTP_HOST": "127.0.0.1:8050", **headers}
    setup_testing_defaults(environ)
    seen: list[tuple[str, list[tuple[str, str]]]] = []
    body = b"".join(guard(environ, lambda status, head, *_: seen.append((status, head))))
    return int(seen[0][0].split()[0]), dict(seen[0][1]), body


def page(_environ, start_response):
    """Answer with a page that has an inline script."""
    start_response("200 OK", [("Content-Type", "text/html; charset=utf-8"), ("X-Content-Type-Options", "old")])
    return [PAGE[:20], PAGE[20:]]


def guarded(token: str | None = None) -> Guard:
    """Return a guard in front of `page`."""
    return Guard(page, allowed_hosts=HOSTS, token=token)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8050", "LOCALHOST:1", "[::1]:8050"])
def test_names_of_the_server_are_accepted(host) -> None:
    """The host names of the server are accepted with or without a port, in upper or lower case."""
    assert ask(guarded(), HTTP_HOST=host)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:127", "127.0.0.1@evil.example", "", "[::1", "a b"]
)
def test_other_names_are_refused(host) -> None:
    """Other host names get 403, because a foreign page could use DNS rebinding to read the response."""
    status, _, body = ask(guarded(), HTTP_HOST=host)
    assert status == 403
    assert PAGE not in body


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:9999",
        "https://127.0.0.1",
        "",
        "http://[",
        "http://[::1",
        "\x00",
    ],
)
def test_a_page_of_another_site_cannot_post(origin) -> None:
    """A POST request gets 403 if its Origin is malformed or that of another site, another port or a sandboxed page."""
    assert ask(guarded(), "POST", HTTP_ORIGIN=origin)[0] == 403


@pytest.mark.parametrize(
    "headers", [{"HTTP_ORIGIN": "http://127.0.0.1:8050"}, {}, {"HTTP_SEC_FETCH_SITE": "same-origin"}]
)
def test_own_pages_and_programs_can_post(headers) -> None:
    """POST requests from the server's own pages are accepted, as are programs' requests, which have no Origin header."""
    assert ask(guarded(), "POST", **headers)[0] == 200


def test_only_same_origin_replaces_the_check_of_the_origin() -> None:
    """A request marked `same-site` still needs a valid Origin, because it may come from a page on another port."""
    assert ask(guarded(), "POST", HTTP_ORIGIN="http://127.0.0.1:1", HTTP_SEC_FETCH_SITE="same-site")[0] == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(method) -> None:
    """PUT, DELETE, TRACE, CONNECT and preflight requests (OPTIONS) get 405."""
    status, headers, _ = ask(guarded(), method)
    assert status == 405
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("query", ["", "token=", "token=wrong", "token=secre", "token=secret%00", "token=%ff"])
def test_without_the_token_nothing_is_shown(query) -> None:
    """A request with a missing, wrong or malformed token gets 401 and no content."""
    status, _, body = ask(guarded("secret"), query=query)
    assert status == 401
    assert b"secret" not in body


@pytest.mark.parametrize(
    "cookie",
    [
        "holotrace_token_8050=wrong",
        "holotrace_token_8050",
        "a=b; holotrace_token_8050=",
        "\x00;;=",
        "holotrace_token_8050=sécret",
        "holotrace_token=secret",
        "holotrace_token_8051=secret",
    ],
)
def test_a_wrong_cookie_is_refused(cookie) -> None:
    """A request gets 401 if its cookie is wrong, malformed or from a server on another port."""
    assert ask(guarded("secret"), HTTP_COOKIE=cookie)[0] == 401


@pytest.mark.parametrize(
    ("path", "query", "location"),
    [
        ("/", "token=secret", "./"),
        ("/", "token=secret&view=health&ranks=0-3,7&q.a=", "./?view=health&ranks=0-3,7&q.a="),
        ("/download/csv/a b\r\n.1", "view=health&token=secret", "./a%20b%0D%0A.1?view=health"),
    ],
)
def test_the_token_moves_from_the_address_into_a_cookie(path, query, location) -> None:
    """If an address contains the token, the answer sets the cookie and redirects to the address without the token.

    This keeps the token out of the browser's history.
    """
    status, headers, _ = ask(guarded("secret"), query=query, PATH_INFO=path)
    assert (status, headers["Location"]) == (303, location)
    assert headers["Set-Cookie"] == "holotrace_token_8050=secret; HttpOnly; SameSite=Strict; Path=/"


@pytest.mark.parametrize(
    "others", ["", 'other={"a": 1}, b; ', "holotrace_token_8051=wrong; holotrace_token=wrong; ", "=; ;"]
)
def test_the_cookie_opens_the_pages(others) -> None:
    """The right cookie opens the pages, even among cookies of other servers on the machine."""
    assert ask(guarded("secret"), HTTP_COOKIE=f"{others}holotrace_token_8050=secret")[0] == 200


LINK = {"HTTP_SEC_FETCH_SITE": "cross-site", "HTTP_SEC_FETCH_MODE": "navigate", "HTTP_SEC_FETCH_DEST": "document"}


def test_a_link_on_another_site_works_after_a_reload() -> None:
    """A user who follows a link on another site first gets a page that reloads itself.

    Browsers do not send the cookie when such a link is followed, but they send it with the reload.
    """
    status, headers, body = ask(guarded("secret"), **LINK)
    assert (status, headers["Content-Type"]) == (401, "text/html; charset=utf-8")
    assert b'http-equiv="refresh"' in body
    assert PAGE not in body


@pytest.mark.parametrize(
    "brought", [{}, {**LINK, "HTTP_SEC_FETCH_SITE": "same-origin"}, {**LINK, "HTTP_SEC_FETCH_DEST": "iframe"}]
)
def test_a_request_without_token_does_not_reload_forever(brought) -> None:
    """If a request has no token and no cookie, it gets a self-reloading page only if a link on another site led to it.

    For other requests, a reload would not add the cookie, so the page would reload forever.
    """
    assert b"refresh" not in ask(guarded("secret"), **brought)[2]


def test_the_token_does_not_replace_the_other_checks() -> None:
    """A request with a valid cookie and a foreign Host or Origin header gets 403."""
    cookie = {"HTTP_COOKIE": "holotrace_token_8050=secret"}
    assert ask(guarded("secret"), HTTP_HOST="evil.example", **cookie)[0] == 403
    assert ask(guarded("secret"), "POST", HTTP_ORIGIN="http://evil.example", **cookie)[0] == 403


def test_every_answer_has_the_security_headers() -> None:
    """Pages and refusals have the guard's security headers, which override those of the guarded application."""
    for host in ("127.0.0.1", "evil.example"):
        _, headers, _ = ask(guarded(), HTTP_HOST=host)
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Referrer-Policy"] == "same-origin"


def test_a_page_runs_only_its_own_scripts() -> None:
    """The content security policy allows only inline scripts with a listed hash."""
    _, headers, body = ask(guarded())
    digest = base64.b64encode(hashlib.sha256(b"\nlet one = 1;\n").digest()).decode()
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert body == PAGE
    assert policy["script-src"] == f"'self' 'unsafe-eval' 'sha256-{digest}'"
    assert (policy["default-src"], policy["connect-src"], policy["object-src"]) == ("'self'", "'self'", "'none'")


def test_the_policy_of_a_page_without_scripts_allows_no_inline_script() -> None:
    """The policy of a page without scripts contains no `unsafe-inline` for scripts."""
    assert "unsafe-inline" not in content_policy(b"<p>").split("style-src")[0]


def of_tensorboard() -> Guard:
    """Return a guard in front of `page`, configured as in TensorBoard."""
    return Guard(page, allowed_hosts=HOSTS, any_address=True, may_be_framed=True, way_to_allow="set NAME")


@pytest.mark.parametrize("host", ["localhost:6006", "10.1.2.3:6006", "[fe80::1]:6006"])
def test_any_numeric_address_is_accepted_in_tensorboard(host) -> None:
    """In TensorBoard, any numeric address is a valid host, but POST requests from other sites still get 403."""
    assert ask(of_tensorboard(), HTTP_HOST=host)[0] == 200
    assert ask(of_tensorboard(), "POST", HTTP_HOST=host, HTTP_ORIGIN="http://evil.example")[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.1.2", ""])
def test_other_names_are_refused_in_tensorboard(host) -> None:
    """In TensorBoard, other host names get 403, with a text that says how to allow the name of a proxy."""
    status, _, body = ask(of_tensorboard(), HTTP_HOST=host)
    assert (status, PAGE in body) == (403, False)
    assert body.endswith(b"set NAME\n")


def test_all_names_can_be_allowed() -> None:
    """`allowed_hosts={"*"}` accepts every host name; this is needed for proxies with generated names."""
    assert ask(Guard(page, allowed_hosts={"*"}), HTTP_HOST="evil.example")[0] == 200


def test_only_tensorboard_may_be_embedded() -> None:
    """Other sites, such as notebooks and editors, may embed TensorBoard but not the pages of `holotrace serve`."""
    frames = "frame-ancestors 'self'"
    assert frames in ask(guarded())[1]["Content-Security-Policy"]
    assert "frame-ancestors" not in ask(of_tensorboard())[1]["Content-Security-Policy"]
