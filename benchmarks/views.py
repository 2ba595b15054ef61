"""How long do the views of PyTorch's TensorBoard plugin take on a large trace, each alone and all in one process?

    python benchmarks/views.py TRACE [--rounds 3]

One process a round: the trace is opened, its events are read, then every view is computed once, in the order of the
pages. Seconds of wall time and of the processor are printed with the largest resident memory by then; medians over the
rounds. Later views find tables that earlier ones derived, as they do in a report.
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
    "advice",
)
PROCESS = """
import json, resource, time
import holotrace
from holotrace.recommendations.advice import advice_from
trace = holotrace.open_trace({trace!r})
event_count = sum(rank_trace.health.event_count for rank_trace in trace.ranks.values())
computations = [(name, getattr(holotrace, name)) for name in {views!r}]  # imported before the clock runs
found, results = {{"events": event_count}}, {{}}
for name, compute in [*computations, ("advice", lambda trace: advice_from(trace, results))]:
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        results[name] = compute(trace)
    except holotrace.MissingDataError:
        pass
    seconds = (time.perf_counter() - wall, time.process_time() - cpu)
    found[name] = (*seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
print(json.dumps(found))
"""


def one_round(trace: str) -> dict[str, list[float]]:
    """Return wall seconds, processor seconds and peak MB of each view, in a process of its own."""
    code = PROCESS.format(trace=trace, views=VIEWS[:-1])
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603 -- ours
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("trace")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rounds = [one_round(asked.trace) for _ in range(asked.rounds)]
    print(f"{rounds[0]['events']:,} events; wall s, processor s, peak MB")
    totals = [[sum(each[view][place] for view in VIEWS) for each in rounds] for place in (0, 1)]
    for view in VIEWS:
        wall, cpu, peak = (statistics.median(each[view][place] for each in rounds) for place in range(3))
        print(f"{view:16} {wall:6.2f} {cpu:6.2f} {peak:7,.0f}")
    print(f"{'all':16} {statistics.median(totals[0]):6.2f} {statistics.median(totals[1]):6.2f}")


if __name__ == "__main__":
    main()
