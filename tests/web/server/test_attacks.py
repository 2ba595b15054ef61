"""Attacks over HTTP get no data."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

pytest.importorskip("dash", reason="the extra web is not installed")
pytest.importorskip("dash_ag_grid", reason="the extra web is not installed")
pytest.importorskip("waitress", reason="the extra web is not installed")

from holotrace.web.server.server import Address, bound_server
from holotrace.web.session.session import Session
from holotrace.web.shell.scripts import assets_path
from jobs import gpu_job

HIDDEN = "a line that is in no trace"
CALLBACK = "/_dash-update-component"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    """Serve a folder beside a secret file; return host and port."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "secret.txt").write_text(HIDDEN)
    gpu_job().write(folder / "runs")
    (folder / "runs" / "link.json").symlink_to(folder / "secret.txt")
    with bound_server(Session([folder / "runs"], cache=False), Address(port=0, has_token=False)) as server:
        threading.Thread(target=server.run, daemon=True).start()
        yield urlsplit(server.url).netloc


def ask(
    server: str, path: str, method: str = "GET", body: str | bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], str]:
    """Send a request without normalising its path; return status, headers and text."""
    connection = http.client.HTTPConnection(server, timeout=60)
    connection.request(method, path, body, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    text = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text


@pytest.mark.parametrize(
    "path", ["/", "/_dash-layout", f"/{assets_path()}/shell/start.js", "/download/csv/health.files?view=health"]
)
def test_a_wrong_host_name_gets_nothing(server, path) -> None:
    """A request with a foreign Host header, as in DNS rebinding, gets status 403 and no page, data or script."""
    status, _, text = ask(server, path, Host="evil.example")
    assert status == 403
    assert "holotrace_token" not in text
    assert len(text) < 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://[", "://", "é"])
def test_requests_of_other_sites_are_refused(server, origin, caplog) -> None:
    """A POST request with a foreign or malformed Origin gets 403, and nothing is logged."""
    assert ask(server, CALLBACK, "POST", "{}", Origin=origin)[0] == 403
    assert not caplog.records


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        f"/{assets_path()}/../../secret.txt",
        f"/{assets_path()}/..%2f..%2fsecret.txt",
        f"/{assets_path()}/%2e%2e/%2e%2e/secret.txt",
        f"/{assets_path()}//etc/passwd",
        "/_dash-component-suites/dash/../../../../../../etc/passwd",
        "/_dash-component-suites/dash/..%2f..%2f..%2fetc%2fpasswd",
        "/download/csv/..%2f..%2fsecret.txt?view=health",
        "/download/../../secret.txt",
        "/perfetto/../../../../etc/passwd",
        "/perfetto/..%2f..%2f..%2fetc%2fpasswd",
        "/timeline/rows?run=..%2f..%2fsecret.txt&rank=0",
        "/timeline/file?run=..%2fsecret.txt&rank=0",
        "/?view=..%2f..%2fsecret.txt&run=..%2fsecret.txt",
    ],
)
def test_no_path_leads_out_of_the_folder(server, path) -> None:
    """An address with `..` in any encoding returns a page or an error, but no file outside the folder."""
    status, headers, text = ask(server, path)
    assert status in {200, 400, 404}
    assert HIDDEN not in text
    assert "root:" not in text
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no json",
        "[]",
        "{}",
        json.dumps({"output": "page.children", "inputs": [], "changedPropIds": []}),
        json.dumps({"output": "../../secret.txt", "inputs": [{"id": "url", "property": "search", "value": {"a": 1}}]}),
        "[" * 100_000,
        '{"output": "page.children", "n": ' + "9" * 5_000 + "}",
        "\ud800",
    ],
)
def test_an_invalid_callback_reveals_nothing(server, body, caplog) -> None:
    """An invalid callback request gets a 4xx response without a traceback, and the server keeps running."""
    status, _, text = ask(server, CALLBACK, "POST", body.encode(errors="surrogatepass"))
    assert 400 <= status < 500
    assert not caplog.records
    assert "Traceback" not in text
    assert "site-packages" not in text
    assert ask(server, "/")[0] == 200


def test_a_link_out_of_the_folder_is_left_out(server) -> None:
    """A link that leads out of the folder is listed on the health page, and its target is not read."""
    _, _, page = ask(server, "/download/csv/health.skipped?view=health")
    assert "link.json" in page
    assert HIDDEN not in page
