"""Compare the estimated clocks of simulated jobs with the true clocks, and measure how long the estimate takes.

    python benchmarks/clocks.py [--seeds 1000] [--speed]

Each seed is a job of 2 to 64 hosts with offsets of up to 5 s, drifts of up to 100 ppm, slow hosts, late recordings,
missing calls, and groups across hosts. Each estimate has an interval: the estimated value plus or minus a half-width.
For each topology and number of hosts, the table shows the percentage of intervals that contain the true value, and the
median half-width. The last column shows the smallest uncertainty that any single call leaves: the shortest time, over
all calls across hosts, from the last rank's start to the first rank's end. In a chain, only neighbouring hosts share
calls, so half-widths add up along the chain.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers" / "truths"))

from clock_truth import Comparison, compared
from holotrace.enrich.across_ranks.clocks.clocks import clocks
from holotrace.testing.job_calls import CallsOptions, simulated_calls

LARGE_JOBS = {
    "8 ranks on 2 hosts, 30,000 calls each": CallsOptions(hosts=2, ranks_per_host=4, operations=30_000),
    "2,048 ranks on 256 hosts, 500 calls each": CallsOptions(hosts=256, ranks_per_host=8, operations=500),
}


def main() -> int:
    """Print the tables; the exit code is 1 if a true offset or drift is outside its interval."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--speed", action="store_true", help="measure large jobs, too")
    options = parser.parse_args()
    outside = print_seeds(options.seeds)
    if options.speed:
        print_speed()
    return int(bool(outside))


def print_seeds(count: int) -> list[str]:
    """Print the table of all seeds; return a text for each true offset or drift outside its interval."""
    by_group: dict[tuple[str, int], list[Comparison]] = defaultdict(list)
    for seed in range(count):
        drawn = CallsOptions.drawn(seed)
        by_group[drawn.topology, drawn.hosts].append(compared(drawn))
    print("groups  hosts   jobs  offsets  inside  unknown  half-width µs  shortest call µs")
    for (topology, hosts), comparisons in sorted(by_group.items()):
        print(f"{topology:<6} {hosts:>6} {_row(comparisons)}")
    every = [comparison for comparisons in by_group.values() for comparison in comparisons]
    print(f"all           {_row(every)}")
    return [text for comparison in every for text in comparison.outside]


def _row(comparisons: list[Comparison]) -> str:
    half_widths = [width for comparison in comparisons for width in comparison.half_width_ns]
    wrong = sum(len(comparison.outside) for comparison in comparisons)
    inside = 100 * (1 - wrong / max(1, len(half_widths)))
    unknown = sum(comparison.unknown_count for comparison in comparisons)
    shortest = median(comparison.shortest_ns for comparison in comparisons)
    return (
        f"{len(comparisons):>6} {len(half_widths):>8} {inside:>5.1f} % {unknown:>8} "
        f"{median(half_widths or [0]) / 1e3:>14.1f} {shortest / 1e3:>17.1f}"
    )


def print_speed() -> None:
    """Print how long it takes to fit the clocks of large jobs."""
    for name, options in LARGE_JOBS.items():
        job = simulated_calls(options)
        begin = time.perf_counter()
        clocks(job.calls, job.hosts)
        print(f"{name}: {time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    sys.exit(main())
