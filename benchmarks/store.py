"""Measure a store: ingesting a trace, answering a question from the store, and SQL.

    python benchmarks/store.py TRACE [--rounds 3]

Every number covers a whole process: peak resident memory, and CPU seconds (user and system, of all threads), which other work
on the machine hardly affects. Processes alternate; the output has the medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

IMPORT = "import holotrace, polars; holotrace.open_trace; holotrace.temporal_breakdown"
READ = "import holotrace; holotrace.open_trace({trace!r}).ranks.popitem()[1].health"
ANSWER = "import holotrace; holotrace.temporal_breakdown(holotrace.open_trace({trace!r}))"
INGEST = "import holotrace; holotrace.write_store(holotrace.open_trace({trace!r}), {store!r})"
SQL = "import holotrace; holotrace.sql(holotrace.open_trace({trace!r}), {query!r})"
QUERIES = {
    "count events by kind": "SELECT kind, count(*), sum(duration_ns) FROM events GROUP BY kind",
    "longest kernels": "SELECT name, sum(duration_ns) AS ns FROM kernels GROUP BY name ORDER BY ns DESC LIMIT 10",
    "operators": "SELECT name, sum(host_self_ns) AS ns FROM operators GROUP BY name ORDER BY ns DESC LIMIT 10",
}


def run(code: str, cache: Path) -> tuple[float, float]:
    """Run `code` in a new process; return its CPU seconds and its peak memory in MB."""
    process = subprocess.Popen(  # noqa: S603 -- our own code
        [sys.executable, "-c", code], env={**os.environ, "HOLOTRACE_CACHE_DIR": str(cache)}
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {code}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(trace: str, rounds: int, folder: Path) -> dict[str, object]:
    """Return the sizes of the files, and the median CPU time and peak memory of each measured action."""
    cache, empty, store = folder / "cache", folder / "empty", folder / "job.store"
    measured: dict[str, list[tuple[float, float]]] = {}

    def add(name: str, code: str, used: Path = cache) -> None:
        measured.setdefault(name, []).append(run(code, used))

    for _ in range(rounds):
        for path in (cache, empty, store):
            shutil.rmtree(path, ignore_errors=True)
        add("import alone", IMPORT)
        add("ingest", INGEST.format(trace=trace, store=str(store)), empty)
        add("read into the cache", READ.format(trace=trace))
        for name, source in (("cache", trace), ("store", str(store))):
            add(f"temporal breakdown from the {name}", ANSWER.format(trace=source))
            for question, query in QUERIES.items():
                add(f"SQL from the {name}: {question}", SQL.format(trace=source, query=query))
    medians = {
        name: [round(statistics.median(values), 2) for values in zip(*runs, strict=True)]
        for name, runs in measured.items()
    }
    return {
        "trace_bytes": Path(trace).stat().st_size,
        "store_bytes": sum(path.stat().st_size for path in store.rglob("*") if path.is_file()),
        "cache_bytes": sum(path.stat().st_size for path in cache.rglob("*") if path.is_file()),
        "cpu_s_and_peak_mb": medians,
    }


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(options.trace, options.rounds, Path(folder)), indent=2))


if __name__ == "__main__":
    main()
