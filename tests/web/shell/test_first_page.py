"""The first page shows its figure after loading few scripts in few round trips."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

pytest.importorskip("dash")
pytest.importorskip("waitress")

from browsing import PATIENCE_MS, visit
from holotrace.drawing.theme import SURFACES
from holotrace.web.pages import PAGES
from holotrace.web.server.server import Address, bound_server
from holotrace.web.session.session import Session
from holotrace.web.shell.app import SCHEME_COOKIE
from holotrace.web.shell.scripts import ASSETS, KEPT_S
from jobs import gpu_job, hostile_job
from matrices import slow_except
from web_client import WebClient, components, texts

FIGURE = "() => document.querySelector('#page .dash-graph .main-svg')"
BEFORE_THE_FIGURE = {
    *("react", "react-dom", "prop-types", "dash_mantine_components", "dash_renderer", "dash_core_components"),
    *("dash_core_components-shared", "dash_html_components", "async-graph", "plotly"),
    *("polyfill", "bundle"),
    *(
        "address",
        "callbacks",
        "figure_names",
        "findings",
        "keys",
        "later",
        "navigation",
        "scheme",
        "sidebar",
        "start",
        "storage",
        "table_rows",
    ),
}
"""The first part of the name of each script that loads before the figure; more scripts would delay the figure."""


@pytest.fixture
def client(tmp_path) -> WebClient:
    """Serve a small job."""
    gpu_job().write(tmp_path)
    return WebClient(tmp_path)


@pytest.fixture
def url(tmp_path) -> Iterator[str]:
    """Run a server for a small job; return the address."""
    hostile_job().write(tmp_path)
    with bound_server(Session([tmp_path]), Address(port=0, has_token=False)) as server:
        threading.Thread(target=server.run, daemon=True).start()
        yield server.url


def layout(client: WebClient, address: str | None, **headers: str) -> str:
    """Return the layout that a browser requests from a page with this address."""
    referer = {} if address is None else {"Referer": address}
    return client.http.get("/_dash-layout", headers={**referer, **headers}).text


class Named(HTMLParser):
    """Collects the addresses in a page, including those of files that load later."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.addresses: list[str] = re.findall(r'"(\./[^"]+)"', html)
        self.feed(html)

    def handle_starttag(self, _tag, attrs) -> None:
        """Record the `src` and `href` of an element."""
        self.addresses += [value for name, value in attrs if name in ("src", "href") and value]

    @property
    def assets(self) -> set[str]:
        """Return the paths of holotrace's own files, such as `shell/start.js`, without the fingerprint."""
        return {address.split("/", 3)[3] for address in self.addresses if address.startswith("./assets/")}


def test_the_layout_contains_the_page_that_the_address_names(client) -> None:
    """The layout contains the page's title, figure and selectors, so the browser need not request them."""
    run = client.session.runs[0].id
    for part in ("idle_time", "choices", "without-data"):
        client.part(f"?view=idle_time&run={run}", part)  # the layout contains only parts that have been computed
    shown = json.loads(layout(client, f"http://127.0.0.1/?view=idle_time&run={run}"))
    assert components(shown, "Title")[0]["children"] == "Idle time"
    assert components(shown, "Graph")
    assert components(shown, "MultiSelect")
    assert not components(shown, "Interval")
    assert components(shown, "Location")[0]["search"] == f"?view=idle_time&run={run}"


def test_a_browser_without_referer_requests_its_page(client) -> None:
    """If the request has no Referer, the layout is only the shell; the browser sends the page's address later."""
    shown = json.loads(layout(client, None))
    assert not components(shown, "Title")
    assert "search" not in components(shown, "Location")[0]


@pytest.mark.parametrize("address", ["http://127.0.0.1/?view=nothing&run=../..", "\x00", "?%%%", "http://[/?view=diff"])
def test_an_invalid_referer_leads_to_the_first_page_or_to_the_shell(client, address) -> None:
    """An invalid Referer leads to the layout of the first page or of the empty shell, never to an error."""
    assert "holotrace" in texts(json.loads(layout(client, address)))


def test_the_first_page_has_the_last_colour_scheme(client) -> None:
    """The cookie sets the colours of the layout: `dark` makes the layout dark, and any other value makes it light."""
    run = client.session.runs[0].id
    for cookie, scheme in (("dark", "dark"), ("<script>", "light")):
        client.part(f"?view=idle_time&run={run}", "idle_time", scheme)
        client.http.set_cookie(SCHEME_COOKIE, cookie)
        shown = json.loads(layout(client, f"http://127.0.0.1/?view=idle_time&run={run}"))
        assert components(shown, "MantineProvider")[0]["forceColorScheme"] == scheme
        (figure,) = components(shown, "Graph")
        assert figure["figure"]["layout"]["template"]["layout"]["paper_bgcolor"] == SURFACES[scheme].background


LATER = (
    "timeline/later.js",
    "timeline/area/",
    "timeline/rows/rows_list.js",
    "timeline/sql/",
    "timeline/window/flag_list.js",
    "timeline/window/minimap.js",
)
"""Modules that the timeline loads after its first drawing."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_the_files_that_it_needs(client, page) -> None:
    """The HTML of a page links every file that the first drawing needs, so these files load in parallel.

    The HTML does not link modules that are needed only later, because loading them would delay the first drawing.
    """
    folders = {
        "icon.svg",
        "style.css",
        "timeline.css",
        "shell",
        "timeline/start.js",
        *([page.name, "palette.js", "unit_tables.js", "units.js"] if page.module else []),
    }
    files = {path.relative_to(ASSETS).as_posix() for path in ASSETS.rglob("*.*") if not path.name.endswith(".d.ts")}
    at_once = {file for file in files if not file.startswith(LATER)}
    expected = {file for file in at_once if file in folders or file.partition("/")[0] in folders}
    assert Named(client.get(f"/?view={page.name}").text).assets == expected


def test_the_addresses_of_a_page_exist_and_can_be_cached(client) -> None:
    """Every address in a page works, and those with a fingerprint are cached for KEPT_S seconds."""
    for address in Named(client.get("/").text).addresses:
        path = address.removeprefix(".").replace("\\u002f", "/")
        answer = client.get(path)
        assert answer.status_code == 200, path
        if "?v=" in path or path.startswith("/assets/"):
            assert f"max-age={KEPT_S}" in answer.headers["Cache-Control"]


def test_only_pages_with_figures_load_plotly_at_once(client) -> None:
    """Every page loads plotly.js at once, except the list of runs and the timeline, which have no figures."""
    coming = {page.name: 'id="holotrace-plotly"' in client.get(f"/?view={page.name}").text for page in PAGES}
    assert [name for name, comes in coming.items() if not comes] == ["runs", "timeline"]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(300)
def test_the_first_page_loads_only_what_its_figure_needs(url, browser) -> None:
    """On a second visit, the figure is drawn before the scripts of tables load and before any callback runs."""
    with visit(browser, url) as seen:
        seen.settle(seen.page.main_frame, "Overview")
        seen.page.add_init_script(
            f"new MutationObserver(() => {{ if (({FIGURE})()) window.drawnAt ??= performance.now(); }})"
            ".observe(document, {childList: true, subtree: true});"
        )
        seen.page.goto(url)
        seen.page.wait_for_function("() => window.drawnAt", timeout=PATIENCE_MS)
        before = seen.page.evaluate(
            "() => performance.getEntriesByType('resource').filter(entry => entry.startTime < window.drawnAt).map(entry => entry.name)"
        )
        seen.expect(seen.page.main_frame, title="Overview", figures=2, tables=1)
        assert not [name for name in before if "_dash-update-component" in name]
        scripts = {re.split(r"[@.]", name.rpartition("/")[2])[0] for name in before if ".js" in name}
        assert scripts == BEFORE_THE_FIGURE
        assert not seen.troubles


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "referer", slow_except([None, "http://127.0.0.1/"], [None]), ids=["not at all", "without the query"]
)
def test_the_page_appears_without_referer(url, browser, referer) -> None:
    """The page appears even if the Referer was removed or shortened by a browser or proxy."""

    def cut(route) -> None:
        headers = {name: value for name, value in route.request.headers.items() if name != "referer"}
        route.continue_(headers={**headers, **({"referer": referer} if referer else {})})

    with visit(browser, "about:blank") as seen:
        seen.page.route("**/_dash-layout", cut)
        seen.page.goto(f"{url}?view=idle_time")
        seen.expect(seen.page.main_frame, title="Idle time", figures=1)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(300)
def test_a_run_selected_before_the_address_names_one_is_shown(tmp_path, browser) -> None:
    """If the address names no run, the page shows the first run until the user selects another."""
    for name in ("first", "second"):
        gpu_job().write(tmp_path / name)
    session = Session([tmp_path])
    with bound_server(session, Address(port=0, has_token=False)) as server:
        threading.Thread(target=server.run, daemon=True).start()
        with visit(browser, f"{server.url}?view=overview") as seen:
            seen.page.locator("#selectors input").first.click()
            seen.page.get_by_role("option", name="second").click()
            seen.page.wait_for_function("run => location.search.includes(run)", arg=session.runs[1].id)
            seen.page.locator(f'#nav a[href*="run={session.runs[1].id}"]').first.wait_for(timeout=PATIENCE_MS)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(300)
def test_a_figure_that_needs_all_of_plotly_gets_it(url, browser) -> None:
    """The modules page loads the full plotly.js for its icicle chart; pages before and after it draw their figures."""
    with visit(browser, url) as seen:
        asked: list[str] = []
        seen.page.on("request", lambda sent: asked.append(sent.url))
        frame = seen.page.main_frame
        for name, title, needs_all in (
            ("idle_time", "Idle time", False),
            ("modules", "Modules", True),
            ("kernels", "Kernels", True),
        ):
            frame.locator(f'#nav a[href*="view={name}&"]').click()
            seen.settle(frame, title)
            assert frame.locator("#page .main-svg").count()
            assert any("plotly.min.js" in address for address in asked) == needs_all
        assert not seen.troubles
