"""`hta serve`: what it says before it serves, and that it then does."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from importlib import import_module

import pytest
from typer.testing import CliRunner

pytest.importorskip("waitress", reason="the extra web is not installed")
pytest.importorskip("dash", reason="the extra web is not installed")

from hta.cli.commands import app
from hta.errors import InvalidOptionError, TraceNotFoundError
from hta.web.server import Address, bound_server
from hta.web.session import Session
from jobs import gpu_job

serve_module = import_module("hta.cli.serve")


def refused(*arguments: str) -> BaseException | None:
    """Run a command that fails at once."""
    return CliRunner().invoke(app, ["serve", *arguments]).exception


def test_a_path_without_a_trace_is_told_at_once(tmp_path) -> None:
    """A folder without one, a path that does not exist, and a file that is none."""
    (tmp_path / "notes.md").write_text("x")
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "notes.md"):
        error = refused(str(path))
        assert isinstance(error, (TraceNotFoundError, ValueError)), error
        assert str(path) in str(error)


def test_a_port_that_is_taken_is_told_at_once(tmp_path) -> None:
    """With the way out."""
    gpu_job().write(tmp_path)
    session = Session([tmp_path], cache=False)
    with bound_server(session, Address(port=0)) as server:
        port = int(server.url.rsplit(":", 1)[1].strip("/"))
        with (
            pytest.raises(InvalidOptionError, match="choose another with --port"),
            bound_server(session, Address(port=port)),
        ):
            pass


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch) -> None:
    """The core comes without it."""
    monkeypatch.setattr(serve_module, "_MODULES", ("dash", "no_such_module_of_hta"))
    error = refused(str(tmp_path))
    assert str(error) == "hta serve needs no_such_module_of_hta: pip install 'holistic-trace-analysis[web]'"


def test_it_answers_its_own_address_and_no_other_name(tmp_path) -> None:
    """The command, waitress, the guard and the pages together."""
    gpu_job().write(tmp_path)
    command = [sys.executable, "-m", "hta", "serve", str(tmp_path), "--port", "0", "--no-cache"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            url = process.stdout.readline().split()[-1]
            with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 -- the server above
                assert b"react-entry-point" in answer.read()
                assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
            other = urllib.request.Request(url, headers={"Host": "evil.example"})  # noqa: S310
            with pytest.raises(urllib.error.HTTPError, match="403") as refusal:
                urllib.request.urlopen(other, timeout=60)  # noqa: S310
            refusal.value.close()
        finally:
            process.terminate()


def test_an_address_for_other_machines_carries_a_token(tmp_path) -> None:
    """Printed once, different each time."""
    gpu_job().write(tmp_path)
    urls = set()
    for _ in range(2):
        with bound_server(Session([tmp_path], cache=False), Address("0.0.0.0", 0)) as server:  # noqa: S104
            urls.add(server.url.partition("?token=")[2])
    assert len(urls) == 2
    assert all(len(token) >= 32 for token in urls)
