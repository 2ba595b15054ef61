"""Record a small multi-rank PyTorch job on the CPU, with or without a planted cause of waiting.

    python examples/planted_causes/record.py SCENARIO FOLDER

writes one trace per rank to FOLDER, and truth.json, which says where the cause ran and for how long, measured without
the profiler. Needs PyTorch (2.15 was used), but no GPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import torch.distributed as dist
from recording import process_group, recorded_steps
from scenarios import SCENARIOS
from torch import multiprocessing
from truth import one_rank, write_truth


def main() -> None:
    """Start one process per rank and wait for them."""
    parser = argparse.ArgumentParser(description="Record a small job with a planted cause of waiting.")
    parser.add_argument("scenario", choices=SCENARIOS, metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder for the trace files")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as meeting:
        multiprocessing.spawn(
            record_rank,
            (options.scenario, options.folder, f"{meeting}/ranks"),
            nprocs=SCENARIOS[options.scenario].ranks,
        )


def record_rank(rank: int, name: str, folder: Path, meeting: str) -> None:
    """Run the job on one rank; rank 0 writes `truth.json` for all ranks."""
    scenario = SCENARIOS[name]
    planted = scenario.planted(rank)
    with process_group(rank, scenario.ranks, meeting):
        scenario.job(recorded_steps(folder / f"rank{rank}.json.gz", planted), planted)
        ranks = [None] * scenario.ranks
        dist.all_gather_object(ranks, one_rank(planted))
        if rank == 0:
            write_truth(folder / "truth.json", name, scenario, ranks)


if __name__ == "__main__":
    main()
