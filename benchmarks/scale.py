"""Measure how much CPU time, wall time and memory of the main process it takes to analyse many ranks.

    python benchmarks/scale.py --real TRACE.json.gz [--ranks 64] [--workers 2]
    python benchmarks/scale.py --synthetic [--ranks 2048] [--workers 2] [--questions collectives,stragglers]

`--real` makes a job from copies of one trace, each with its own rank, and runs the cross-rank analyses, reading each
rank once. The baseline is one rank in one process with one thread; jobs of growing size then run in worker processes.
`--synthetic` does the same with a simulated job of thousands of small ranks, first with an empty and then with a filled
cache. Every row comes from a separate process. CPU seconds (user and system) include the workers and, except in the
baseline, the time for imports.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

JOB = """
import json, pickle, resource, sys, time
from contextlib import nullcontext
from dataclasses import replace
import holotrace
from holotrace.catalogue import analysis
from holotrace.store.plan import Plan, run_together

seconds_of, bytes_of = {}, {}

def decoded(rank_trace):
    return rank_trace.health.bytes_decoded

def measured(name, plan):
    def combined(partials):
        bytes_of[name] = max(len(pickle.dumps(partials[rank])) for rank in list(partials)[:8])
        began = time.perf_counter()
        result = plan.combine(partials)
        seconds_of[name] = round(time.perf_counter() - began, 2)
        return result
    return replace(plan, combine=combined)

def answered():
    plans = {name: measured(name, analysis(name).plan()) for name in NAMES}
    plans["decoded"] = Plan(decoded, lambda sizes: sum(sizes.values()))
    wall, busy = time.perf_counter(), time.process_time()
    with holotrace.processes(WORKERS) if WORKERS else nullcontext(holotrace.IN_PROCESS) as pool:
        trace = holotrace.open_trace(SOURCE, ranks=RANKS)
        opened = time.perf_counter() - wall
        size = run_together(trace, plans, pool).results["decoded"]
    seconds = time.perf_counter() - wall
    of_driver, of_workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({
        "ranks": len(trace.ranks), "json_mb": size / 1e6, "wall_s": seconds, "discovery_s": opened,
        "combining_s": sum(seconds_of.values()), **{f"combining_{name}_s": took for name, took in seconds_of.items()},
        "rank_kb": sum(bytes_of.values()) / 1e3,
        "processor_s": time.process_time() - busy + of_workers.ru_utime + of_workers.ru_stime,
        "driver_mb": of_driver.ru_maxrss / 1024, "worker_mb": of_workers.ru_maxrss / 1024,
    }))

if __name__ == "__main__":
    answered()
"""
NAMES = "temporal_breakdown,communication_overlap,stragglers"
_RANK = re.compile(r'"rank"\s*:\s*-?\d+')


def run(folder: Path, cache: Path, names: str, *, ranks: int, workers: int | None) -> dict[str, float]:
    """Run the analyses on the first `ranks` ranks of the job in `folder`; without workers, use one process and one thread."""
    script = cache / "job.py"
    settings = f"NAMES, SOURCE, WORKERS, RANKS = {names.split(',')!r}, {str(folder)!r}, {workers!r}, range({ranks})\n"
    script.write_text(settings + JOB)
    threads = {} if workers else {"POLARS_MAX_THREADS": "1", "HOLOTRACE_THREADS": "1"}
    environment = {**os.environ, "HOLOTRACE_CACHE_DIR": str(cache), **threads}
    printed = subprocess.run([sys.executable, script], env=environment, check=True, stdout=subprocess.PIPE)  # noqa: S603
    measured: dict[str, float] = json.loads(printed.stdout)
    return measured


def write_copies(source: Path, folder: Path, count: int) -> None:
    """Write the events of `source` to `count` files, one per rank; only the rank in their headers differs."""
    text = gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes()
    at = text.index(b'"traceEvents"')
    header, rest = text[:at].decode(), gzip.compress(text[at:], 6)
    if not _RANK.search(header):
        header = header.replace("{", '{"distributedInfo": {"rank": 0},', 1)
    for rank in range(count):
        of_rank = _RANK.sub(f'"rank": {rank}', header).encode()
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(of_rank, 6) + rest)


def measure_real(source: Path, names: str, ranks: int, workers: int) -> Iterator[dict[str, float]]:
    """Yield the baseline, then jobs of growing size, each with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        write_copies(source, Path(folder), ranks)
        for count, pool in ((1, None), *((count, workers) for count in (4, 16, 64, 256) if count <= ranks)):
            with tempfile.TemporaryDirectory() as cache:
                yield run(Path(folder), Path(cache), names, ranks=count, workers=pool)


def measure_synthetic(folder: Path, names: str, ranks: int, workers: int) -> Iterator[dict[str, float]]:
    """Run the analyses twice over a simulated job; only the second run finds a filled cache."""
    from holotrace.testing.synthetic import write_job  # noqa: PLC0415

    if not (folder / "truth.json").exists():
        write_job(folder, ranks=ranks, steps=3, layers=3)
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            yield run(folder, Path(cache), names, ranks=ranks, workers=workers)


def main() -> None:
    """Parse the options, measure, print a line of JSON for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--real", type=Path, metavar="TRACE", help="a trace that is copied for every rank")
    what.add_argument("--synthetic", nargs="?", type=Path, const=Path(), metavar="FOLDER", help="the folder of the job")
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--questions", default=NAMES, metavar="NAMES", help=f"analyses to run; by default {NAMES}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.real:
            measured = measure_real(options.real, options.questions, options.ranks or 64, options.workers)
        else:
            kept = Path(folder) if options.synthetic == Path() else options.synthetic
            measured = measure_synthetic(kept, options.questions, options.ranks or 2048, options.workers)
        baseline = None
        for row in measured:
            row["json_mb_per_processor_s"] = row["json_mb"] / row["processor_s"]
            baseline = baseline or row["json_mb_per_processor_s"]
            row["of_first"] = row["json_mb_per_processor_s"] / baseline
            print(json.dumps({name: round(value, 2) for name, value in row.items()}), flush=True)


if __name__ == "__main__":
    main()
