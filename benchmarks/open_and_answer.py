"""Measure the time to open a large trace and answer a first question, and compare with Holistic Trace Analysis in the same run.

    python benchmarks/open_and_answer.py [--trace BIG.json.gz] [--peer PYTHON] [--rounds 3]

Every number covers a whole process, measured from outside: seconds from start to end, and peak resident memory. For
the `facade` rows, the peer's script is run with our code: it loads the trace, then calls `get_temporal_breakdown`.
`--peer` names a Python with `traceinsight==0.6.1` and `pandas<3`; the peer runs only once, because it takes minutes.
Without `--trace`, the trace comes from a synthetic job and has about 70 MB; benchmarks/enlarge.py makes larger traces.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

OPEN = """
import holotrace
health = holotrace.open_trace({trace!r}).ranks.popitem()[1].health
print(health.bytes_decoded)
"""
ANSWER = """
import holotrace, time
trace, answer = holotrace.open_trace({trace!r}), holotrace.temporal_breakdown
assert all(rank_trace.health.event_count for rank_trace in trace.ranks.values())  # opened
seconds = []
for _ in range(2):
    start = time.perf_counter()
    answer(trace)
    seconds.append(time.perf_counter() - start)
print(*seconds)
"""
IMPORT_ALONE = "import holotrace, polars; holotrace.open_trace; holotrace.temporal_breakdown"
FACADE = """
import time
from hta.trace_analysis import TraceAnalysis
start = time.perf_counter()
analyzer = TraceAnalysis(trace_files={{0: {trace!r}}})
loaded = time.perf_counter()
analyzer.get_temporal_breakdown(visualize=False)
print(loaded - start, time.perf_counter() - loaded)
"""


@dataclass(frozen=True)
class Run:
    """The measurements of a finished process."""

    seconds: float
    peak_mb: float
    printed: list[float]


def run(python: str, code: str, cache: Path) -> Run:
    """Run `code` in a new process, and return its time and memory as the system reports them."""
    start = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603 -- our own code
        [python, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOLOTRACE_CACHE_DIR": str(cache)},
    )
    assert process.stdout is not None  # noqa: S101 -- for the type checker
    printed = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{python} failed on:\n{code}")
    numbers = printed.splitlines()[-1].split() if printed.strip() else []
    return Run(time.perf_counter() - start, usage.ru_maxrss / 1024, [float(number) for number in numbers])


def measure(trace: Path, peer: str | None, rounds: int) -> dict[str, object]:
    """Run each measurement `rounds` times, alternating, and return the medians."""
    seconds: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    decoded = 0.0

    def note(name: str, finished: Run) -> Run:
        seconds.setdefault(name, []).append(finished.seconds)
        memory.setdefault(name, []).append(finished.peak_mb)
        return finished

    for number in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            decoded = note("open, first time", run(sys.executable, OPEN.format(trace=str(trace)), Path(cache))).printed[
                0
            ]
            run(sys.executable, ANSWER.format(trace=str(trace)), Path(cache))
            answered = note("open again and answer", run(sys.executable, ANSWER.format(trace=str(trace)), Path(cache)))
            for name, value in zip(
                ("analysis alone, first call", "analysis alone, again"), answered.printed, strict=True
            ):
                seconds.setdefault(name, []).append(value)
            note("imports alone", run(sys.executable, IMPORT_ALONE, Path(cache)))
        with tempfile.TemporaryDirectory() as cache:
            for name in ("facade, first time", "facade, again"):
                note(name, run(sys.executable, FACADE.format(trace=str(trace)), Path(cache)))
            if peer and number == 0:  # only in the first round, because the peer takes minutes
                theirs = note("peer: load and answer", run(peer, FACADE.format(trace=str(trace)), Path(cache)))
                seconds["peer: load"], seconds["peer: analysis alone"] = [theirs.printed[0]], [theirs.printed[1]]
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    figures: dict[str, object] = {
        "trace": trace.name,
        "json_gb": decoded / 1e9,
        "seconds": medians,
        "peak_mb": {name: statistics.median(values) for name, values in memory.items()},
        "json_gb_per_s, first time": decoded / 1e9 / medians["open, first time"],
    }
    if peer:
        for name in ("facade, first time", "facade, again"):
            figures[f"peer / {name}"] = medians["peer: load and answer"] / medians[name]
        figures["peer's load / open, first time"] = medians["peer: load"] / medians["open, first time"]
        for call in ("first call", "again"):
            figures[f"peer's analysis / {call}"] = medians["peer: analysis alone"] / medians[f"analysis alone, {call}"]
    return figures


def synthetic_trace(folder: Path) -> Path:
    """Make a trace from a synthetic job."""
    from enlarge import enlarge  # noqa: PLC0415

    from holotrace.testing.synthetic import write_job  # noqa: PLC0415

    write_job(folder / "job", ranks=1, straggler_rank=None)
    (small,) = (folder / "job").glob("*.json.gz")
    enlarge(small, folder / "large.json.gz", 50)
    return folder / "large.json.gz"


def main() -> None:
    """Parse the options, measure, print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--peer")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = options.trace or synthetic_trace(Path(folder))
        print(json.dumps(measure(trace.resolve(), options.peer, options.rounds), indent=2))


if __name__ == "__main__":
    main()
