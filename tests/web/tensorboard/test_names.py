"""The TensorBoard tab opens only under valid host names."""

from __future__ import annotations

import socket
from argparse import Namespace
from pathlib import Path
from wsgiref.util import setup_testing_defaults

import pytest

pytest.importorskip("dash")
pytest.importorskip("tensorboard")

from holotrace.web.tensorboard import plugin


def status_under(name: str, folder: Path, **flags: object) -> str:
    """Request a page from a TensorBoard with these options and `name` as the HTTP host; return the HTTP status."""
    context = pytest.importorskip("tensorboard.plugins.base_plugin").TBContext
    tab_of = plugin.HolotracePlugin(context(logdir=str(folder), flags=Namespace(**flags)))
    environ = {"PATH_INFO": "/data/plugin/holotrace/app/index.html", "HTTP_HOST": name}
    setup_testing_defaults(environ)
    seen: list[str] = []
    list(tab_of.get_plugin_apps()["/app/*"](environ, lambda status, *_: seen.append(status)))
    return seen[0].partition(" ")[0]


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ({"host": None, "bind_all": False}, ["localhost:6006", "127.0.0.1:6006", "[::1]:6006"]),
        ({"host": "board.lan", "bind_all": False}, ["board.lan:6006", "localhost"]),
        ({"host": None, "bind_all": True}, [f"{socket.gethostname()}:6006", "192.168.0.7:6006", "localhost:6006"]),
        ({}, ["localhost"]),
    ],
)
def test_the_tab_accepts_the_names_that_tensorboard_listens_on(tmp_path, flags, names) -> None:
    """Requests to the host names of TensorBoard get status 200; those to foreign names (DNS rebinding) get 403."""
    assert {status_under(name, tmp_path, **flags) for name in names} == {"200"}
    assert {status_under(name, tmp_path, **flags) for name in ("evil.example", "localhost.evil.example", "")} == {"403"}


def test_a_proxys_name_is_allowed_by_the_environment(tmp_path, monkeypatch) -> None:
    """An environment variable lists the allowed host names of proxies, separated by commas; `*` allows every name."""
    assert status_under("board.example", tmp_path) == "403"
    monkeypatch.setenv(plugin.HOSTS_VARIABLE, "other.example, board.example,")
    assert [status_under(name, tmp_path) for name in ("board.example", "evil.example", "")] == ["200", "403", "403"]
    monkeypatch.setenv(plugin.HOSTS_VARIABLE, "*")
    assert status_under("any.example", tmp_path) == "200"
