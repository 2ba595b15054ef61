"""Started as a user would start it, TensorBoard shows a working tab in a real browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("dash")
pytest.importorskip("tensorboard")

from browsing import PATIENCE_MS, Visit, expect_page, go_to, visit, walk
from holotrace.web.pages import PAGES
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Scope, Session
from holotrace.web.tensorboard import plugin
from holotrace.web.tensorboard.mount import Mount
from jobs import gpu_job

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

BEHIND_A_PROXY = "/outer"


@contextmanager
def started(folder: Path, *options: str) -> Iterator[str]:
    """Start TensorBoard on a free port; return its address."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--port", "0", *options]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environ) as process:  # noqa: S603
        try:
            assert process.stderr is not None
            lines = (line.decode(errors="replace") for line in process.stderr)
            yield next(match[0] for line in lines if (match := re.search(r"http://\S+", line)) and " at " in line)
        finally:
            process.terminate()


class StripPrefix(BaseHTTPRequestHandler):
    """Forwards requests without their path prefix and with another Host header, as most proxies do."""

    target = ""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        connection = HTTPConnection(self.target)
        connection.request(self.command, self.path.removeprefix(BEHIND_A_PROXY), body, headers)
        answer = connection.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"transfer-encoding", "content-length", "connection"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    do_GET = do_POST = _pass_on  # noqa: N815 -- the names in BaseHTTPRequestHandler

    def log_message(self, *_) -> None:
        """Print nothing."""


@contextmanager
def proxied(url: str) -> Iterator[str]:
    """Run a proxy in front of a server; return its address with the prefix that the proxy removes."""
    handler = type("Handler", (StripPrefix,), {"target": urlsplit(url).netloc})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{BEHIND_A_PROXY}/"
        server.shutdown()


def expect_installed() -> None:
    """Skip the test if the installed package has no entry point for TensorBoard."""
    if "holotrace" not in entry_points(group="tensorboard_plugins").names:
        pytest.skip("TensorBoard does not find holotrace: install the package again")


@pytest.fixture(scope="module")
def tensorboard(log_folder) -> Iterator[tuple[Session, str]]:
    """Start TensorBoard on the real traces; return a session with the same traces, and TensorBoard's address."""
    expect_installed()
    with started(log_folder) as url:
        yield Session([log_folder]), url


@pytest.fixture
def small_folder(tmp_path) -> Path:
    """Return a log folder with a small run; its files are named as PyTorch's trace handler names them."""
    expect_installed()
    [first, second] = gpu_job().write(tmp_path)
    (tmp_path / "run").mkdir()
    first.rename(tmp_path / "run" / "host_1.1700000000000.pt.trace.json")
    second.rename(tmp_path / "run" / "host_2.1700000000001.pt.trace.json")
    return tmp_path


def tab(seen: Visit):
    """Return the iframe of holotrace's tab."""
    seen.page.wait_for_function(
        "() => [...document.querySelectorAll('iframe')].some(frame => frame.contentWindow.location.href.includes('/app/'))",
        timeout=PATIENCE_MS,
    )
    return next(frame for frame in seen.page.frames if "/app/" in frame.url)


def choose_run(seen: Visit, name: str, run: str) -> None:
    """Follow the link to a run, and wait until the navigation links to its pages."""
    frame = tab(seen)
    frame.get_by_role("link", name=name, exact=True).click(timeout=PATIENCE_MS)
    frame.locator(f'#nav a[href*="run={run}"]').first.wait_for(timeout=PATIENCE_MS)


@pytest.mark.slow
def test_the_tab_shows_each_folder_as_a_run(tensorboard, browser) -> None:
    """The tab shows the overview of each real trace; for one trace, it shows every page with figures and tables."""
    session, url = tensorboard
    overview = next(page for page in PAGES if page.name == "overview")
    with visit(browser, f"{url}#holotrace") as seen:
        for run in sorted(session.runs, key=lambda run: run.name == "dlrm_8rank"):
            choose_run(seen, run.name, run.id)
            go_to(tab(seen), overview.name)
            expect_page(seen, tab(seen), overview, session, Selection(overview.name, run=run.id))
            go_to(tab(seen), "runs")
        for page in walk(seen, tab(seen), session, Scope(run.id)):
            seen.keep(f"tensorboard-{run.name}-{page}")


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["path_prefix", "proxy"])
def test_the_tab_works_below_a_prefix(small_folder, browser, prefix) -> None:
    """The tab opens the page named in the address, both with --path_prefix and behind a proxy that removes a prefix."""
    options = ["--path_prefix", "/inner"] if prefix == "path_prefix" else []
    with started(small_folder, *options) as url, proxied(url) as outside:
        address = outside if prefix == "proxy" else url
        with visit(browser, f"{address}?p.holotrace.view=idle_time#holotrace") as seen:
            seen.expect(tab(seen), title="Idle time", figures=1, tables=2)
            assert tab(seen).locator("#nav a[aria-current]").all_inner_texts() == ["Idle time"]
            assert not seen.troubles


@pytest.mark.slow
def test_the_tab_follows_tensorboards_colours(tensorboard, browser) -> None:
    """The tab becomes dark and light together with TensorBoard."""
    scheme = "scheme => document.documentElement.dataset.mantineColorScheme === scheme"
    with visit(browser, f"{tensorboard[1]}#holotrace") as seen:
        tab(seen).wait_for_function(scheme, arg="light", timeout=PATIENCE_MS)
        for wanted in ("dark", "light"):
            seen.page.evaluate("() => document.body.classList.toggle('dark-mode')")
            tab(seen).wait_for_function(scheme, arg=wanted)
        assert not seen.troubles


def test_nothing_is_loaded_before_the_tab_opens() -> None:
    """Importing the plugin does not import dash, plotly, polars, pandas or waitress."""
    code = "import sys, holotrace.web.tensorboard.plugin; print({name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    assert "holotrace" in done.stdout
    assert not [name for name in ("dash", "plotly", "polars", "pandas", "waitress") if f"'{name}'" in done.stdout]


def test_the_tab_is_active_if_a_name_may_be_a_trace(tmp_path, monkeypatch) -> None:
    """The tab is active if the log folder has a trace or too many folders to search, but not if it is empty."""
    context = pytest.importorskip("tensorboard.plugins.base_plugin").TBContext
    assert not plugin.HolotracePlugin(context(logdir=str(tmp_path / "missing"))).is_active()
    tab_of = plugin.HolotracePlugin(context(logdir=str(tmp_path)))
    assert not tab_of.is_active()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.pt.trace.json").touch()
    assert tab_of.is_active()
    monkeypatch.setattr(plugin, "MOST_FOLDERS", 1)
    assert plugin.HolotracePlugin(context(logdir=str(tmp_path))).is_active()


def asked(mount: Mount, path: str, script_name: str = "") -> tuple[str, dict[str, str], list[bytes]]:
    """Send a request to a mounted application; return status, headers and body."""
    kept: list[tuple[str, dict[str, str]]] = []
    environ = {"PATH_INFO": path, "SCRIPT_NAME": script_name}
    body = mount(environ, lambda status, headers, *_: kept.append((status, dict(headers))))
    return *kept[0], list(body)


def test_a_mounted_application_gets_its_path() -> None:
    """A mounted application is created once, and SCRIPT_NAME is its mount path, including any prefix."""
    made = []

    def make():
        made.append(True)

        def application(environ, start_response):
            start_response("200 OK", [])
            return [f"{environ['SCRIPT_NAME']} {environ['PATH_INFO']}".encode()]

        return application

    mount = Mount("/app", make)
    assert asked(mount, "/data/plugin/holotrace/app")[1]["Location"] == "app/index.html"
    assert not made
    assert asked(mount, "/data/plugin/holotrace/app/index.html")[2] == [b"/data/plugin/holotrace/app /"]
    assert asked(mount, "/data/plugin/holotrace/app/a/app/b", "/inner")[2] == [
        b"/inner/data/plugin/holotrace/app /a/app/b"
    ]
    assert made == [True]
