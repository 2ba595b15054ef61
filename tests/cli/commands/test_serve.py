"""`holotrace serve`: errors before the server starts, and the running server."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("waitress", reason="the extra web is not installed")
pytest.importorskip("dash", reason="the extra web is not installed")

from holotrace.cli.group import app
from holotrace.errors import InvalidOptionError, TraceNotFoundError
from holotrace.web.server.server import Address, bound_server
from holotrace.web.session.session import Session
from jobs import gpu_job

serve_module = import_module("holotrace.cli.commands.serve")


def refused(*arguments: str) -> BaseException | None:
    """Run a command that fails at once; return its error."""
    return CliRunner().invoke(app, ["serve", *arguments]).exception


def test_a_path_without_a_trace_is_an_error_at_once(tmp_path) -> None:
    """`serve` refuses a folder without traces, a missing path, and a file that is not a trace."""
    (tmp_path / "notes.md").write_text("x")
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "notes.md"):
        error = refused(str(path))
        assert isinstance(error, (TraceNotFoundError, ValueError)), error
        assert str(path) in str(error)


def test_an_event_is_a_rank_and_an_index(tmp_path) -> None:
    """`--event` must be RANK:INDEX; the address to open contains the token and the event."""
    gpu_job().write(tmp_path)
    wrong = CliRunner().invoke(app, ["serve", str(tmp_path), "--event", "3"])
    assert wrong.exit_code == 2
    assert "RANK:INDEX" in wrong.output

    address = serve_module._at_event("http://127.0.0.1:8050/?token=x", "31fc", 3, 71_535)
    assert address == "http://127.0.0.1:8050/?token=x&view=timeline&run=31fc&event=3:71535"


def test_a_port_in_use_is_an_error_at_once(tmp_path) -> None:
    """The error for a port in use suggests `--port`."""
    gpu_job().write(tmp_path)
    session = Session([tmp_path], cache=False)
    with bound_server(session, Address(port=0, has_token=False)) as server:
        port = int(server.url.rsplit(":", 1)[1].strip("/"))
        with (
            pytest.raises(InvalidOptionError, match="choose another port with --port"),
            bound_server(session, Address(port=port)),
        ):
            pass


def test_without_the_extra_the_error_says_what_to_install(tmp_path, monkeypatch) -> None:
    """If Dash is not installed, the error says to install the extra `web`."""
    monkeypatch.setattr(serve_module, "_MODULES", ("dash", "no_such_module_of_holotrace"))
    error = refused(str(tmp_path))
    assert str(error) == "holotrace serve needs no_such_module_of_holotrace: pip install 'holotrace[web]'"


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """Start `holotrace serve`; yield the address that it prints."""
    command = [sys.executable, "-m", "holotrace", "serve", *arguments, "--port", "0", "--no-cache"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def status_of(url: str, **headers: str) -> int:
    """Return the HTTP status of a request without cookies, after redirects."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:  # noqa: S310
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_the_server_answers_only_with_the_token_and_under_its_own_host(tmp_path) -> None:
    """With the token, a browser gets the page; without it, every path returns 401; a foreign Host header gets 403."""
    gpu_job().write(tmp_path)
    with serving(str(tmp_path)) as url:
        base = url.partition("?token=")[0]
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(url, timeout=60) as answer:
            assert answer.url == base
            assert b"react-entry-point" in answer.read()
            assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        paths = (
            "",
            "_dash-layout",
            "assets/holotrace.js",
            "timeline/file?rank=0",
            "download/csv/health.files?view=health",
        )
        assert {status_of(base + path) for path in paths} == {401}
        assert status_of(url, Host="evil.example") == 403


@pytest.mark.slow
def test_only_a_local_address_can_do_without_the_token(tmp_path) -> None:
    """`--no-token` is refused for an address that other machines can reach."""
    gpu_job().write(tmp_path)
    with serving(str(tmp_path), "--no-token") as url:
        assert url.endswith("/")
        assert status_of(url) == 200
    assert str(refused(str(tmp_path), "--no-token", "--host", "0.0.0.0", "--port", "0")) == (  # noqa: S104
        "other machines can reach 0.0.0.0, so the pages need a token: leave out --no-token"
    )


def test_the_browser_is_opened_without_showing_the_token_to_other_users(tmp_path, monkeypatch) -> None:
    """The browser opens a private file that redirects to the pages, so that no command line contains the token."""
    gpu_job().write(tmp_path)
    opened_files = []

    def opened(address: str) -> None:
        path = Path(address.removeprefix("file://"))
        opened_files.append((path.read_text(), path.parent.stat().st_mode & 0o077, path))
        raise KeyboardInterrupt

    monkeypatch.setattr(serve_module.webbrowser, "open", opened)
    CliRunner().invoke(app, ["serve", str(tmp_path), "--port", "0", "--open"])

    [(page, rights_of_others, path)] = opened_files
    assert re.search(r"url=http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", page)
    assert (rights_of_others, path.exists()) == (0, False)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104
def test_an_address_carries_a_token(tmp_path, host) -> None:
    """Two servers have different tokens of at least 32 characters."""
    gpu_job().write(tmp_path)
    urls = set()
    for _ in range(2):
        with bound_server(Session([tmp_path], cache=False), Address(host, 0)) as server:
            urls.add(server.url.partition("?token=")[2])
    assert len(urls) == 2
    assert all(len(token) >= 32 for token in urls)
