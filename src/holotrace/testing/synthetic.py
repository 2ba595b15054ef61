"""Simulate a multi-rank GPU training job in which every number is known.

    python -m holotrace.testing.synthetic FOLDER --ranks 8

writes one trace file per rank, with the name and layout that torch's `tensorboard_trace_handler` gives its files. It
also writes `truth.json`, which `holotrace.open_trace` ignores. One rank is slow, and all other ranks wait for it in
every all-reduce. The hosts' clocks differ.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from holotrace.errors import InvalidOptionError
from holotrace.testing.job_events import RankFile
from holotrace.testing.job_plan import JobOptions, JobPlan, RankPlan, plan_job
from holotrace.testing.job_truth import JobTruth, job_truth
from holotrace.units import counted

TRUTH_FILE = "truth.json"
"""Name of the file that contains the truth about the job."""

_COMPRESSION_LEVEL = 4


def write_job(  # noqa: PLR0913 -- one option per property of the job
    folder: str | Path,
    *,
    ranks: int = 8,
    steps: int = 4,
    layers: int = 6,
    straggler_rank: int | None = -1,
    straggler_delay_us: int = 1_500,
    ranks_per_host: int = 4,
    clock_offset_us: int = 250,
    clock_drift_ppm: int = 20,
    seed: int = 0,
) -> JobTruth:
    """Write the trace files of a job and the truth about it; equal options give equal files.

    Args:
        folder: created if necessary.
        ranks: processes, each with its own device.
        steps: recorded training steps; a step of six layers takes about 14 ms.
        layers: layers of the model; each rank has about 100 events per layer and step.
        straggler_rank: the slow rank, counted from the end if negative; None if no rank is slow.
        straggler_delay_us: how much longer the slow rank's forward and backward passes take in each step.
        ranks_per_host: ranks that share a host, and therefore a clock.
        clock_offset_us: how far the clocks of all hosts except the first may be off, in either direction.
        clock_drift_ppm: how much too fast or too slow these clocks may run, in parts per million.
        seed: seed of the random numbers for the clocks and for small variations of all durations.

    Returns:
        The content of `truth.json`.

    Raises:
        InvalidOptionError: an option is invalid, or the folder contains files that may be recorded traces.

    >>> import tempfile
    >>> from holotrace.testing import write_job
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     truth = write_job(folder, ranks=2, steps=1)
    >>> truth.straggler_rank
    1
    """
    if straggler_rank is not None and straggler_rank < 0:
        straggler_rank += ranks
    options = JobOptions(
        ranks=ranks,
        steps=steps,
        layers=layers,
        straggler_rank=straggler_rank,
        straggler_delay_ns=1_000 * straggler_delay_us,
        ranks_per_host=ranks_per_host,
        clock_offset_ns=1_000 * clock_offset_us,
        clock_drift_ppb=1_000 * clock_drift_ppm,
        seed=seed,
    )
    _expect_own(Path(folder))
    return _write(Path(folder), plan_job(options))


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate a job with options from the command line, and print a summary."""
    parser = _parser()
    options = vars(parser.parse_args(arguments))
    try:
        truth = write_job(**options)
    except InvalidOptionError as error:
        parser.error(str(error))
    sys.stdout.write(_summary(options["folder"], truth))
    return 0


def _expect_own(folder: Path) -> None:
    """Raise an error if the folder may contain recorded traces, which the files of the job could overwrite."""
    if any(folder.glob("*.json*")) and not (folder / TRUTH_FILE).exists():
        message = f"{folder} contains files that may be recorded traces; choose another folder for the simulated job"
        raise InvalidOptionError(message)


def _write(folder: Path, plan: JobPlan) -> JobTruth:
    folder.mkdir(parents=True, exist_ok=True)
    files = [_write_rank(folder, plan.options, rank_plan) for rank_plan in plan.ranks]
    truth = job_truth(plan, files)
    (folder / TRUTH_FILE).write_text(json.dumps(truth.to_dict(), indent=1) + "\n")
    return truth


def _write_rank(folder: Path, options: JobOptions, rank_plan: RankPlan) -> tuple[str, str]:
    """Write the file of a rank; return the rank's host and the name of the file."""
    file = RankFile(options, rank_plan)
    # Without a time in the gzip header, equal content gives equal files.
    (folder / file.name).write_bytes(gzip.compress(file.content(), _COMPRESSION_LEVEL, mtime=0))
    return file.host, file.name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m holotrace.testing.synthetic", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder to write to; created if necessary")
    parser.add_argument("--ranks", type=int, default=8, help="processes, each with its own GPU (%(default)s)")
    parser.add_argument("--steps", type=int, default=4, help="recorded training steps (%(default)s)")
    parser.add_argument("--layers", type=int, default=6, help="layers of the model (%(default)s)")
    parser.add_argument(
        "--straggler-rank", type=int, default=-1, help="the slow rank; -1 is the last one (%(default)s)"
    )
    parser.add_argument(
        "--straggler-delay-us", type=int, default=1_500, help="delay of the slow rank in each step (%(default)s)"
    )
    parser.add_argument("--ranks-per-host", type=int, default=4, help="ranks that share a clock (%(default)s)")
    parser.add_argument("--clock-offset-us", type=int, default=250, help="largest offset of a clock (%(default)s)")
    parser.add_argument("--clock-drift-ppm", type=int, default=20, help="largest drift of a clock (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of small variations (%(default)s)")
    return parser


def _summary(folder: Path, truth: JobTruth) -> str:
    size_mb = sum((folder / rank.file).stat().st_size for rank in truth.ranks) / 1e6
    step_count = len(truth.ranks[0].steps)
    return (
        f"{folder}: {counted(len(truth.ranks), 'rank')}, {counted(step_count, 'step')}, {size_mb:.1f} MB of trace files\n"
        f"Rank {truth.straggler_rank} computes {truth.straggler_delay_ns / 1e6:g} ms longer in every step.\n"
        f"The truth about the job is in {folder / TRUTH_FILE}.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
