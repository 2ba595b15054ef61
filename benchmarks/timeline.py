"""Measure how soon the timeline draws a large trace, and how long each zoom takes.

    python benchmarks/timeline.py big.json.gz [--zooms 300] [--browser]

Starts `holotrace serve` with a filled cache, and sends the browser's requests over HTTP. The first requests show the
whole recording, on a new server. Later requests zoom and pan: half to random windows, half to windows near the previous
one. With `--browser`, a real browser (playwright and chromium) opens the page as well. The output is JSON with wall
seconds, the load of the machine, and the CPU seconds of the server.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import holotrace
from holotrace.testing.chromium import chromium_path
from holotrace.web.session.runs import runs_under

PIXELS = 1_800
"""A page 1,440 pixels wide shows a view of 1,200 pixels; it requests a further quarter of the view on each side."""

SHORTEST_NS = 2_000
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Server:
    """Runs `holotrace serve` in a separate process, and sends it the requests of a browser."""

    def __init__(self, process: subprocess.Popen[str], run: str, rank: int) -> None:
        """Wait until the server prints its address."""
        self.process, self.run, self.rank = process, run, rank
        lines = iter(process.stdout or ())
        self.url = next(match[0] for line in lines if (match := re.search(r"http://\S+", line)))

    def ask(self, name: str, **parameters: object) -> tuple[Any, int]:
        """Wait until the server's answer is ready; return the answer and the number of bytes that the server sent."""
        query = urlencode({"run": self.run, "rank": self.rank, **parameters})
        while True:
            request = Request(f"{self.url}timeline/{name}?{query}", headers={"Accept-Encoding": "gzip"})  # noqa: S310
            with urlopen(request) as response:  # noqa: S310
                body, status, coding = response.read(), response.status, response.headers.get("Content-Encoding")
            if status != 202:  # noqa: PLR2004 -- not ready yet
                return json.loads(gzip.decompress(body) if coding == "gzip" else body), len(body)
            time.sleep(0.01)

    def cpu_s(self) -> float:
        """Return the CPU seconds of the server so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND

    def resident_mb(self) -> int:
        """Return the resident memory of the server, without mapped files."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()
        return ((int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGESIZE")) >> 20


@contextmanager
def serving(trace: str) -> Iterator[Server]:
    """Start the server, and stop it at the end."""
    [run] = runs_under((trace,))
    rank = next(iter(holotrace.open_trace(trace).ranks))
    command = [sys.executable, "-m", "holotrace", "serve", trace, "--port", "0", "--no-token"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        yield Server(process, run.id, rank)
    finally:
        process.terminate()
        process.wait()


def first_draw(server: Server) -> dict[str, Any]:
    """Request the data of the first drawing: the rows, and the slices of the whole recording."""
    begun, cpu = time.perf_counter(), server.cpu_s()
    rows, sent = server.ask("rows")
    length = rows["length"]
    _, sent_for_slices = server.ask("slices", start=-length // 4, end=length + length // 4, pixels=PIXELS)
    return {
        "events": sum(row["events"] for row in rows["rows"]),
        "length_ns": length,
        "seconds": round(time.perf_counter() - begun, 2),
        "server_cpu_s": round(server.cpu_s() - cpu, 2),
        "kilobytes": (sent + sent_for_slices) >> 10,
    }


def zooms(server: Server, count: int, length: int) -> dict[str, Any]:
    """Request windows one after another."""
    rng = random.Random(1)  # noqa: S311 -- the same windows in every run
    seconds, sent, cpu, middle = [], [], server.cpu_s(), length / 2
    for number in range(count):
        width = max(SHORTEST_NS, round(length * 10 ** (-6 * rng.random())))
        middle = rng.random() * length if number % 2 else middle + (rng.random() - 0.5) * width
        start = round(min(max(middle - width / 2, 0), length - width))
        begun = time.perf_counter()
        _, size = server.ask("slices", start=start, end=start + width, pixels=PIXELS)
        seconds.append(time.perf_counter() - begun)
        sent.append(size)
    return {
        "count": count,
        "milliseconds": _percentiles([1_000 * value for value in seconds]),
        "kilobytes": _percentiles([size / 1_024 for size in sent]),
        "server_cpu_ms_each": round(1_000 * (server.cpu_s() - cpu) / count, 1),
    }


def in_browser(server: Server) -> dict[str, float]:
    """Open the page twice in a browser, and measure how soon something is drawn.

    On the second visit, the browser takes all scripts from its cache.
    """
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- only with --browser

    seconds = {}
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        page = started.new_page(viewport={"width": 1_440, "height": 1_000})
        for name in ("first_visit_s", "second_visit_s"):
            begun = time.perf_counter()
            page.goto(f"{server.url}?view=timeline")
            page.wait_for_selector('#timeline[data-drawn]:not([data-drawn="0"])', timeout=120_000)
            seconds[name] = round(time.perf_counter() - begun, 2)
        started.close()
    return seconds


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        f"p{part}": round(ordered[min(len(ordered) - 1, len(ordered) * part // 100)], 1) for part in (50, 90, 99, 100)
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--zooms", type=int, default=300)
    parser.add_argument("--browser", action="store_true")
    options = parser.parse_args()
    measured: dict[str, Any] = {"load": round(os.getloadavg()[0], 1)}
    with serving(options.trace) as server:
        measured["first_draw"] = first_draw(server)
        measured["zooms"] = zooms(server, options.zooms, measured["first_draw"]["length_ns"])
        measured["resident_mb"] = server.resident_mb()
        if options.browser:
            measured["browser, server warm"] = in_browser(server)
    if options.browser:
        with serving(options.trace) as server:
            measured["browser, server cold"] = in_browser(server)
    print(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
