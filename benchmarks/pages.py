"""Measure how long the pages of `holotrace serve` take in a real browser, and how much memory the server uses.

Starts the server as users do, and opens its pages in chromium, or in the browser that HOLOTRACE_CHROMIUM names:

    python benchmarks/pages.py TRACE [--runs 3] [--walk]

cold      a new server process with an empty cache, and a new browser profile
reopened  a new server process whose cache has the trace, and a new browser profile
warm      the second visit, with the same server and browser
third     the third visit, as in daily use: browsers keep compiled scripts that they have loaded twice

Each browser profile is on disk, like a user's profile.

Times are measured from the request to the first figure, and from the request to the complete page. For `cold` and
`reopened`, the measurement begins when the server prints its address; the column `start` shows how long the server took
to do so. On a busy machine, compare the CPU seconds until the first figure instead. The table shows those of the
server (counted from its start) and those of all browser processes together.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import BrowserContext, Playwright, sync_playwright

from holotrace.testing.chromium import MISSING, chromium_path

PATIENCE_MS = 300_000
_FIGURE = "() => document.querySelector('#page .dash-graph .main-svg')"
_WHOLE = """() => document.querySelector('#page h1')
  && !document.querySelector('#page .mantine-Loader-root, #selectors .mantine-Loader-root, #page .holotrace-awaited')
  && [...document.querySelectorAll('#page .dash-graph')].every(part => part.querySelector('.main-svg'))
  && [...document.querySelectorAll('#page .ag-root-wrapper')].every(part => part.querySelector('.ag-row'))
  && [...document.querySelectorAll('#page .ag-row')].every(each => each.innerText.trim())"""


class Server(NamedTuple):
    """A running server."""

    url: str
    pid: int
    start_s: float

    def cpu_s(self) -> float:
        """Return the CPU seconds that the server has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self) -> float:
        """Return the peak memory of the server, including mapped files."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1_024  # type: ignore[index]  # every process has it on Linux


class Seen(NamedTuple):
    """How soon a page showed its first figure and was complete, and the CPU time spent until the first figure."""

    figure_s: float
    whole_s: float
    server_cpu_s: float
    browser_cpu_s: float


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--walk", action="store_true", help="then open every page, and print its times and memory")
    options = parser.parse_args()
    print(f"load of this machine at the beginning: {os.getloadavg()[0]:.1f}")
    print("| page | start, s | first figure, s | whole page, s | server, CPU s | browser, CPU s | server peak, MB |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as cache:
        rows: dict[str, list[tuple[float, ...]]] = {"cold": [], "reopened": [], "warm": [], "third": []}
        for _ in range(options.runs):
            shutil.rmtree(cache, ignore_errors=True)
            for name in ("cold", "reopened"):
                with served(options.trace, cache) as server, _profile(playwright) as context:
                    first = _open_page(context, server, is_first=True)
                    rows[name].append((server.start_s, *first, server.peak_mb()))
                    for again in ("warm", "third") if name == "reopened" else ():
                        rows[again].append((0.0, *_open_page(context, server), server.peak_mb()))
        for name, measured in rows.items():
            medians = [statistics.median(column) for column in zip(*measured, strict=True)]
            print(f"| {name} | " + " | ".join(f"{median:.2f}" for median in medians[:-1]) + f" | {medians[-1]:.0f} |")
        if options.walk:
            _walk(options.trace, cache, playwright)


@contextmanager
def _profile(playwright: Playwright) -> Iterator[BrowserContext]:
    """Start a browser with a new profile on disk."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options: dict[str, Any] = {"executable_path": _chromium(), "args": ["--no-sandbox"]}
        context = playwright.chromium.launch_persistent_context(folder, **options)
        yield context
        context.close()


def _walk(trace: str, cache: str, playwright: Playwright) -> None:
    """Open every page, from a server that already has the trace in its cache."""
    print("\n| page | shown after, s | server CPU, s | server peak, MB |\n|---|--:|--:|--:|")
    with served(trace, cache) as server, _profile(playwright) as context:
        page = context.pages[0]
        page.goto(server.url, timeout=PATIENCE_MS)
        for link in page.locator("#nav a").all():
            before_s, begin = server.cpu_s(), time.perf_counter()
            title = link.inner_text()
            link.click()
            page.wait_for_function(
                "title => document.querySelector('#page h1')?.innerText === title", arg=title, timeout=PATIENCE_MS
            )
            page.wait_for_function(_WHOLE, timeout=PATIENCE_MS)
            shown_s = time.perf_counter() - begin
            print(f"| {title} | {shown_s:.2f} | {server.cpu_s() - before_s:.2f} | {server.peak_mb():.0f} |", flush=True)


def _open_page(context: BrowserContext, server: Server, *, is_first: bool = False) -> Seen:
    page = context.new_page()
    begin, browser_s = time.perf_counter(), _browser_cpu_s(context)
    server_s = 0.0 if is_first else server.cpu_s()  # the first page also waits for the server to start
    page.goto(server.url, timeout=PATIENCE_MS, wait_until="commit")
    page.wait_for_function(_FIGURE, timeout=PATIENCE_MS)
    figure_s = time.perf_counter() - begin
    cpu_s = server.cpu_s() - server_s, _browser_cpu_s(context) - browser_s
    page.wait_for_function(_WHOLE, timeout=PATIENCE_MS)
    seen = Seen(figure_s, time.perf_counter() - begin, *cpu_s)
    page.close()
    return seen


def _browser_cpu_s(context: BrowserContext) -> float:
    """Return the CPU seconds of all browser processes."""
    assert context.browser is not None  # noqa: S101 -- only a context of `launch_persistent_context` has none
    told = context.browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    return sum(process["cpuTime"] for process in told["processInfo"])


@contextmanager
def served(trace: str, cache: str) -> Iterator[Server]:
    """Start `holotrace serve`, as users do."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "holotrace", "serve", trace, "--port", "0", "--no-token"]
    environ = {**os.environ, "HOLOTRACE_CACHE_DIR": cache, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:  # noqa: S603 -- holotrace
        try:
            assert process.stdout is not None  # noqa: S101 -- a pipe, two lines above
            url = next(match[0] for line in process.stdout if (match := re.search(r"http://\S+", line)))
            yield Server(url, process.pid, time.perf_counter() - begin)
        finally:
            process.terminate()


def _chromium() -> str:
    path = chromium_path()
    if path is None:
        raise SystemExit(MISSING)
    return path


if __name__ == "__main__":
    main()
