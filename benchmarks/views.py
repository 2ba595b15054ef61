"""Measure the views of PyTorch's TensorBoard plugin on a large trace, all in one process.

    python benchmarks/views.py TRACE [--rounds 3]

Each round is one process: it opens the trace, reads its events, then computes every view once, in the order of the
pages. The output lists, for each view, its wall seconds, its CPU seconds and the peak resident memory after it, as
medians over the rounds. Later views reuse tables that earlier views derived, as in a report.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

VIEWS = (
    "step_time",
    "gpu_summary",
    "operators",
    "kernels",
    "modules",
    "memory_timeline",
    "operator_memory",
    "distributed",
)
PROCESS = """
import json, resource, time
import holotrace
trace = holotrace.open_trace({trace!r})
event_count = sum(rank_trace.health.event_count for rank_trace in trace.ranks.values())
computations = [(name, getattr(holotrace, name)) for name in {views!r}]  # imported before the clock runs
measured = {{"events": event_count}}
for name, compute in computations:
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        compute(trace)
    except holotrace.MissingDataError:
        pass
    seconds = (time.perf_counter() - wall, time.process_time() - cpu)
    measured[name] = (*seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
print(json.dumps(measured))
"""


def one_round(trace: str) -> dict[str, list[float]]:
    """Return wall seconds, CPU seconds and peak MB of each view, measured in a new process."""
    code = PROCESS.format(trace=trace, views=VIEWS)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603 -- ours
    measured: dict[str, list[float]] = json.loads(done.stdout)
    return measured


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("trace")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rounds = [one_round(asked.trace) for _ in range(asked.rounds)]
    print(f"{rounds[0]['events']:,} events; wall s, CPU s, peak MB")
    totals = [[sum(measured[view][place] for view in VIEWS) for measured in rounds] for place in (0, 1)]
    for view in VIEWS:
        wall, cpu, peak = (statistics.median(measured[view][place] for measured in rounds) for place in range(3))
        print(f"{view:16} {wall:6.2f} {cpu:6.2f} {peak:7,.0f}")
    print(f"{'all':16} {statistics.median(totals[0]):6.2f} {statistics.median(totals[1]):6.2f}")


if __name__ == "__main__":
    main()
