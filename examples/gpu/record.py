"""Record small jobs on one GPU with the PyTorch profiler.

    python examples/gpu/record.py FOLDER [SCENARIO ...]

writes FOLDER/SCENARIO/rank0.pt.trace.json.gz, and beside it a file with the job's step time without the profiler. Without
scenario names, the script records every scenario. The traces in `traces/` were recorded with PyTorch 2.11 on an H100.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

import distributed
import inference
import kernels
import torch
import training
from recording import record


def main() -> None:
    """Record the scenarios that the command line names."""
    known = {**training.scenarios(), **kernels.scenarios(), **inference.scenarios()}
    others = [*distributed.JOBS, "generation-capture", "memory_snapshot"]
    parser = argparse.ArgumentParser(description="Record small jobs on one GPU.")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join([*known, *others]))
    arguments = parser.parse_args()
    failed = []
    for name in arguments.scenarios or [*known, *others]:
        torch._dynamo.reset()  # noqa: SLF001 -- older versions of PyTorch lack torch.compiler.reset
        try:
            if name in known:
                record(known[name](), arguments.folder / name)
            else:
                record_other(name, arguments.folder)
        except Exception:  # noqa: BLE001 -- record the other scenarios anyway
            traceback.print_exc()
            failed.append(name)
        print(name, "failed" if name in failed else "recorded", flush=True)
    sys.exit(bool(failed))


def record_other(name: str, folder: Path) -> None:
    """Record a scenario that runs two processes, captures a CUDA graph, or takes a memory snapshot."""
    if name == "generation-capture":
        inference.record_capture(folder / "generation-graphs" / "capture_traces")
    elif name == "memory_snapshot":
        record_memory_snapshot(folder / name)
    else:
        distributed.record_jobs(folder, [name])


def record_memory_snapshot(folder: Path) -> None:
    """Write a snapshot of up to 20,000 allocations and frees of a training job, with stacks, beside the job's trace."""
    torch.cuda.memory._record_memory_history(max_entries=20_000)  # noqa: SLF001 -- the documented way
    record(training.training(training.Job(training.SMALL), profile_memory=True, with_stack=False), folder)
    torch.cuda.memory._dump_snapshot(str(folder / "snapshot.pickle"))  # noqa: SLF001
    torch.cuda.memory._record_memory_history(enabled=None)  # noqa: SLF001


if __name__ == "__main__":
    main()
