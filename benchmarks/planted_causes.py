"""Compare the causes that `wait_causes` names with the causes planted in simulated jobs.

    python benchmarks/planted_causes.py [--seeds 500] [--first 0] [--most-ranks 512] [--workers 2] [--minutes 120]

Each seed gives a job of 8 to 512 ranks with one to three planted causes. The jobs combine data, tensor and pipeline
parallelism, on GPUs with NCCL or on CPUs with gloo. Each job runs on one host, or on several hosts whose clocks differ
and drift. About 40 % of the recordings are incomplete: a missing rank, missing sends or launches, or a file without
its beginning. The columns of the table:

    right       number of causes whose reported cost differs from the true cost by no more than the allowed error: the
                reported errors, the waits of unknown cause, the waits that were not recorded, and a small tolerance
    planted ms  how long other ranks wait because of the planted delays, from simulations with and without the delays
    charged ms  the cost as `wait_causes` defines it, computed from the simulation
    named ms    the cost that `wait_causes` reports
    error ms    the error that `wait_causes` reports
    unknown ms  the waiting time for which `wait_causes` found no cause
    first       how often the planted cause is the largest cause on its rank
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers" / "truths"))

from holotrace.testing.planted.options import PlantedOptions
from planted_truth import Comparison, Named, compared


def main() -> int:
    """Print the table; return exit code 1 if a cause was not named or its cost is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--most-ranks", type=int, default=512)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--minutes", type=float, default=120, help="stop after this many minutes, and print the results so far"
    )
    options = parser.parse_args()
    begin, jobs, wrong = time.perf_counter(), [], []
    seeds = range(options.first, options.first + options.seeds)
    with ProcessPoolExecutor(options.workers) as pool:
        for seed, job in zip(seeds, pool.map(_compared, seeds, [options.most_ranks] * len(seeds)), strict=True):
            jobs.append(job)
            wrong += _wrong(seed, job)
            if time.perf_counter() - begin > 60 * options.minutes:
                pool.shutdown(cancel_futures=True)
                break
    print("\n".join([*_lines(jobs), *wrong]))
    cause_count = sum(len(job.causes) for job in jobs)
    print(f"{len(jobs)} jobs in {time.perf_counter() - begin:.0f} s; {len(wrong)} of {cause_count} causes are wrong")
    return int(bool(wrong))


def _compared(seed: int, most_ranks: int) -> Comparison:
    return compared(PlantedOptions.drawn(seed, most_ranks=most_ranks))


def _lines(jobs: list[Comparison]) -> Iterator[str]:
    """Yield the rows of the table, grouped by kind and size of the job, by missing data, and by kind of cause."""
    yield f"{'':<34} causes  right  planted ms  charged ms    named ms    error ms  unknown ms  first"
    groups = defaultdict(list)
    for job in jobs:
        for named in job.causes:
            for group in _groups(job.options, named):
                groups[group].append((job, named))
    for group in sorted(groups):
        yield f"{group:<34} {_row(groups[group])}"


def _groups(options: PlantedOptions, named: Named) -> Iterator[str]:
    shape = "pipeline" if options.pipeline > 1 else "tensor" if options.tensor > 1 else "data"
    yield f"1 {options.backend}, {shape} parallel"
    yield f"2 {options.ranks:>3} ranks"
    yield f"3 {len(options.causes)} causes at once"
    yield f"4 recording: {options.damage}"
    yield f"5 {'one host' if options.ranks_per_host >= options.ranks else 'several hosts'}"
    yield f"6 {named.cause.kind}"
    yield "all"


def _row(rows: list[tuple[Comparison, Named]]) -> str:
    named = [named for _, named in rows]
    right = sum(one.is_right for one in named)
    columns = ("planted_ns", "charged_ns", "named_ns", "printed_ns")
    sums = [sum(getattr(one, name) for one in named) / 1e6 for name in columns]
    unknown = sum({id(job): job.unknown_ns for job, _ in rows}.values()) / 1e6
    first = sum(one.place == 1 for one in named)
    return f"{len(named):>6} {right:>6} " + " ".join(f"{value:>11,.1f}" for value in (*sums, unknown)) + f" {first:>6}"


def _wrong(seed: int, job: Comparison) -> Iterator[str]:
    """Yield a line for each cause with a wrong cost, and for each job whose costs do not add up."""
    if job.summed_ns != job.recorded_ns:
        yield f"seed {seed}: the costs add up to {job.summed_ns} ns instead of {job.recorded_ns} ns"
    for one in job.causes:
        if not one.is_right:
            options = job.options
            axes = f"{options.backend} {options.data}x{options.tensor}x{options.pipeline}"
            times = (one.planted_ns, one.charged_ns, one.named_ns, one.printed_ns, one.unsure_ns)
            planted, charged, named, error, unknown = (f"{ns / 1e6:.3f}" for ns in times)
            yield (
                f"seed {seed} ({axes}, {options.damage}): {one.cause.kind} on rank {one.cause.rank}: planted {planted}, "
                f"charged {charged}, named {named} ± {error} ms, unknown or not recorded {unknown} ms"
            )


if __name__ == "__main__":
    sys.exit(main())
