"""Measure `wait_causes` and the critical path across ranks on a simulated job of many ranks.

    python benchmarks/waiting.py [--ranks 512] [--workers 2] [--folder FOLDER]

The job combines data, tensor and pipeline parallelism, with 2,500 events and 250 communication calls per rank. Each analysis
runs twice, in a new process with workers: first with an empty cache, then with a filled one. Each line shows wall time, the CPU
seconds of the process and its workers, and the peak memory of the process and of a worker.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

JOB = """
import json, resource, time
import holotrace

if __name__ == "__main__":
    begin = time.perf_counter()
    with holotrace.processes(WORKERS) as pool:
        trace = holotrace.open_trace(SOURCE)
        result = getattr(holotrace, NAME)(trace, executor=pool, **OPTIONS)
    seconds = time.perf_counter() - begin
    top, workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({
        "wall_s": seconds,
        "cpu_s": sum(usage.ru_utime + usage.ru_stime for usage in (top, workers)),
        "top_mb": top.ru_maxrss / 1024,
        "worker_mb": workers.ru_maxrss / 1024,
    }))
"""
QUESTIONS = {"wait_causes": {}, "critical_path": {"across_ranks": True}}


def main() -> None:
    """Simulate the job, measure each analysis twice, and print a line of JSON for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=512)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="the folder of the job; created if it does not exist")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "job"
        if not folder.exists():
            write_elsewhere(folder, options.ranks)
        for name, arguments in QUESTIONS.items():
            with tempfile.TemporaryDirectory() as cache:
                for run in ("empty cache", "filled cache"):
                    measured = measure(folder, Path(cache), options.workers, name, arguments)
                    rounded = {key: round(value, 1) for key, value in measured.items()}
                    print(json.dumps({"question": name, "run": run, "ranks": options.ranks, **rounded}), flush=True)


def write_elsewhere(folder: Path, ranks: int) -> None:
    """Simulate the job in a separate process, so that its memory is not counted as memory of the analysis.

    On Linux, a new process inherits the peak memory of the process that started it:
    https://man7.org/linux/man-pages/man2/getrusage.2.html
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        other.submit(write, folder, ranks).result()


def write(folder: Path, ranks: int) -> None:
    """Simulate a job with 8 ranks per host, groups of 4 tensor-parallel ranks, 8 pipeline stages, and one slow kernel."""
    from holotrace.testing.planted.job import PlantedJob  # noqa: PLC0415
    from holotrace.testing.planted.options import Cause, PlantedOptions  # noqa: PLC0415

    job = PlantedOptions(
        data=ranks // 32,
        tensor=4,
        pipeline=8,
        microbatches=16,
        steps=2,
        clock_offset_ns=1_000_000,
        clock_drift_ppb=10_000,
        causes=(Cause("slow_kernel", 5, 8_000_000),),
    )
    PlantedJob(job).write(folder)


def measure(folder: Path, cache: Path, workers: int, name: str, arguments: dict[str, object]) -> dict[str, float]:
    """Run one analysis in a separate process."""
    script = cache / "job.py"
    settings = f"SOURCE, WORKERS, NAME, OPTIONS = {str(folder)!r}, {workers!r}, {name!r}, {arguments!r}\n"
    script.write_text(settings + JOB)
    environment = {**os.environ, "HOLOTRACE_CACHE_DIR": str(cache)}
    printed = subprocess.run([sys.executable, script], env=environment, check=True, stdout=subprocess.PIPE)  # noqa: S603
    measured: dict[str, float] = json.loads(printed.stdout)
    return measured


if __name__ == "__main__":
    main()
