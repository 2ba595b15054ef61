"""Test caches and stores with simultaneous writers, killed processes and damaged files; check every answer.

    python scripts/store_trials.py race [--trials 40] [--processes 8] [--same] [--address local://{folder}/job.store]
    python scripts/store_trials.py kills [--trials 200]
    python scripts/store_trials.py damage [--trials 400]

race    processes write different ranks (with `--same`, the same ranks) to one store at the same time, while another process reads
kills   processes that open a trace through the cache, or ingest it, are killed at random times
damage  some bytes of one file in a cache or a store are changed; the size of the file stays the same

Prints the count of each outcome; the exit code is 1 if an answer was wrong, data was lost, or temporary files remained.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import holotrace
from holotrace.ingest.open_trace import open_trace
from holotrace.ingest.write_store import write_store
from holotrace.locations import is_temporary
from holotrace.schema import TABLES
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder

_PAGE_BYTES = 4_096
_QUERY = "SELECT rank, count(*), sum(duration_ns) FROM stored.events GROUP BY rank ORDER BY rank"
_FACTS = "SELECT rank, name, duration_ns, operator FROM kernels ORDER BY ALL"


def write_job(folder: Path, rank_count: int, events: int = 50) -> Path:
    """Write a different trace for each rank."""
    builder = TraceBuilder()
    for rank in range(rank_count):
        builder.rank(rank)
        for number in range(events):
            start = 100 * number + rank
            builder.operator(f"aten::op{rank}_{number % 7}", start_us=start, duration_us=20 + rank)
            builder.kernel(f"gemm{rank}_{number % 5}", start_us=start + 30, duration_us=9, launch_us=start + 3)
    builder.write(folder)
    return folder


def everything(trace: Trace) -> dict[int, Any]:
    """Return the tables, the header and the health of each rank."""
    return {
        rank: [
            {name: rank_trace.table(name).to_dict(as_series=False) for name in TABLES},
            rank_trace.header,
            rank_trace.health,
        ]
        for rank, rank_trace in trace.ranks.items()
    }


def answers(trace: Trace) -> object:
    """Return what `everything` returns for a job, and the results of two SQL queries."""
    return everything(trace), holotrace.sql(trace, _QUERY).rows(), holotrace.sql(trace, _FACTS).rows()


def _outcome(ask: Callable[[], object]) -> object:
    """Return the answer, or the error message."""
    try:
        return ask()
    except holotrace.HolotraceError as error:
        return f"error: {error}"


_start: dict[str, threading.Barrier] = {}
"""The barrier where a writing process waits for the others. Processes receive it when they start, because passing it
later would need a socket in the temporary folder, and the socket's path could be too long."""


def _wait_at(barrier: threading.Barrier) -> None:
    _start["barrier"] = barrier


def _ingest_together(traces: str, ranks: Sequence[int], store: str) -> object:
    _start["barrier"].wait(timeout=60)
    return _outcome(lambda: bool(write_store(open_trace(traces, ranks=ranks, cache=False), store)))


def race(trials: int, processes: int, *, same: bool = False, address: str = "{folder}/job.store") -> Counter[str]:
    """Make each process write two ranks to one store, all at the same time; return the count of each outcome."""
    seen: Counter[str] = Counter()
    context = multiprocessing.get_context("spawn")
    writers = context.Pool(processes, _wait_at, (context.Barrier(processes),))
    with tempfile.TemporaryDirectory() as name, writers as pool:
        traces = write_job(Path(name, "traces"), 2 * processes)
        expected = everything(open_trace(str(traces), cache=False))
        for trial in range(trials):
            folder = Path(name, str(trial))
            folder.mkdir()
            store = address.format(folder=folder)
            shares = [[0, 1] if same else [2 * process, 2 * process + 1] for process in range(processes)]
            written = pool.starmap_async(_ingest_together, [(str(traces), share, store) for share in shares], 1)
            while not written.ready():
                seen[f"read meanwhile: {_read_meanwhile(store, expected)}"] += 1
                time.sleep(0.01)
            done = [
                "refused" if "another holotrace ingest" in str(outcome) else str(outcome) for outcome in written.get()
            ]
            seen.update(f"written: {outcome}" for outcome in done)
            wanted = {rank: expected[rank] for share in shares for rank in share}
            outcome = _outcome(lambda: everything(open_trace(store)))  # noqa: B023 -- called here
            is_refused = _is_unfinished(outcome) and "refused" in done
            seen[f"store: {'unfinished, and a writer was refused' if is_refused else _verdict(outcome, wanted)}"] += 1
            seen["left behind"] += _left_behind(folder)
            shutil.rmtree(folder)
    return seen


def _read_meanwhile(store: str, expected: dict[int, Any]) -> str:
    outcome = _outcome(lambda: everything(open_trace(store)))
    if isinstance(outcome, dict):
        return "whole ranks" if all(outcome[rank] == expected[rank] for rank in outcome) else "OTHER RANKS"
    return "not there yet" if _is_unfinished(outcome) else f"OTHER {outcome}"


def _is_unfinished(outcome: object) -> bool:
    """Whether the outcome is an error about a missing or incomplete store."""
    signs = (
        "is unfinished",
        "is an empty folder",
        "contains no trace, only: _holotrace_store.json",
        "not a profiler trace",
        "does not exist",
        "store without ranks",
        ".json is missing",  # when two processes write the same rank: WebHDFS cannot replace files atomically
    )
    return any(sign in str(outcome) for sign in signs)


def _verdict(outcome: object, expected: object) -> str:
    if isinstance(outcome, str):
        return outcome
    return "whole" if outcome == expected else "WRONG"


_KILLED = """
import sys, holotrace
from holotrace.store.trace import Trace
holotrace.open_trace; holotrace.write_store; import polars
print("ready", flush=True)
sys.stdin.readline()
trace = holotrace.open_trace(sys.argv[1])
if len(sys.argv) > 2:
    holotrace.write_store(trace, sys.argv[2])
else:
    for rank_trace in trace.ranks.values():
        rank_trace.table("events")
print("done", flush=True)
"""


def kills(trials: int, events: int = 4_000, seed: int = 1) -> Counter[str]:
    """Kill processes that open or ingest a job, then open it again; return the count of each outcome."""
    seen: Counter[str] = Counter()
    chance = random.Random(seed)  # noqa: S311 -- no secret
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("cache", "tmp"):
            (folder / part).mkdir()
        here = {"HOLOTRACE_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder / "tmp")}
        traces, store = write_job(folder / "traces", 3, events), folder / "job.store"
        expected = everything(open_trace(str(traces), cache=False))
        longest_s = {kind: _run_and_kill(traces, kind, None, here) for kind in (None, store)}
        for trial in range(trials):
            kind = store if trial % 2 else None
            shutil.rmtree(folder / "cache" if kind is None else store, ignore_errors=True)
            ended = _run_and_kill(traces, kind, chance.uniform(0, 1.1 * longest_s[kind]), here)
            seen["ended before the kill" if ended else "killed"] += 1
            seen.update(_after_a_kill(traces, kind, folder, expected))
        _run_and_kill(traces, store, None, here)
        shutil.rmtree(folder / "cache")
        _run_and_kill(traces, None, None, here)
        seen["left behind"] += _left_behind(folder)
    return seen


def _run_and_kill(traces: Path, store: Path | None, after_s: float | None, here: dict[str, str]) -> float:
    """Run a process; return how many seconds its work took, or 0 if it was killed before the end.

    If `after_s` is given, the process is killed this many seconds after its work began.
    """
    command = [sys.executable, "-c", _KILLED, str(traces), *([str(store)] if store else [])]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env={**os.environ, **here}, **pipes) as process:  # noqa: S603 -- our own code
        process.stdout.readline()  # type: ignore[union-attr]
        start = time.perf_counter()
        process.stdin.write(b"go\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        if after_s is not None:
            time.sleep(after_s)
            process.kill()
        ended = process.stdout.readline() == b"done\n"  # type: ignore[union-attr]
        return (time.perf_counter() - start) * ended


def _after_a_kill(traces: Path, store: Path | None, folder: Path, expected: object) -> list[str]:
    if store is None:
        return [f"opened: {_verdict(everything(open_trace(str(traces), cache=folder / 'cache')), expected)}"]
    outcome = _outcome(lambda: everything(open_trace(store)))
    at_once = "not there yet" if _is_unfinished(outcome) else _verdict(outcome, expected)
    write_store(open_trace(str(traces), cache=False), store)
    return [f"store at once: {at_once}", f"store then: {_verdict(everything(open_trace(store)), expected)}"]


def _left_behind(folder: Path) -> int:
    return sum(is_temporary(path) or path.name.endswith(".tmp") for path in folder.rglob("*"))


def damage(trials: int, seed: int = 1) -> Counter[str]:
    """Change bytes, but not the size, of one file in a cache or a store; return the count of each outcome."""
    seen: Counter[str] = Counter()
    chance = random.Random(seed)  # noqa: S311 -- no secret
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        traces = write_job(folder / "traces", 2, 300)
        cache, store = folder / "cache", folder / "job.store"
        expected = answers(open_trace(str(traces), cache=cache))
        write_store(open_trace(str(traces)), store)
        if answers(open_trace(store)) != expected:
            seen["WRONG without damage"] += 1
        for trial in range(trials):
            place = store if trial % 2 else cache
            kept = folder / "kept"
            shutil.copytree(place, kept)
            file = chance.choice(sorted(path for path in place.rglob("*") if path.is_file()))
            _damage(file, chance)
            source, options = (store, {}) if trial % 2 else (str(traces), {"cache": cache})
            outcome = _outcome(lambda: answers(open_trace(source, **options)))  # noqa: B023 -- called here
            seen[f"{place.name}: {_named(outcome, expected, file)}"] += 1
            shutil.rmtree(place)
            kept.rename(place)
    return seen


def _named(outcome: object, expected: object, file: Path) -> str:
    if (
        isinstance(outcome, str)
        and file.name in outcome
        and "run holotrace ingest again" in outcome
        and "\n" not in outcome
    ):
        return "an error that names the file and the solution"
    return _verdict(outcome, expected)


def _damage(file: Path, chance: random.Random) -> None:
    """Change up to a page of bytes, without changing the size of the file."""
    content = bytearray(file.read_bytes())
    before = bytes(content)
    while content == before:
        at = chance.randrange(len(content))
        length = chance.choice([1, 1, 2, 8, 64, _PAGE_BYTES])
        end = min(at + length, len(content))
        how = chance.choice(["flip", "zero", "noise"])
        if how == "flip":
            content[at] ^= 1 << chance.randrange(8)
        else:
            content[at:end] = bytes(end - at) if how == "zero" else chance.randbytes(end - at)
    file.write_bytes(content)


def main() -> None:
    """Run the trials that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["race", "kills", "damage"])
    parser.add_argument("--trials", type=int)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--same", action="store_true")
    parser.add_argument("--address", default="{folder}/job.store")
    given = parser.parse_args()
    logging.getLogger("holotrace").setLevel(logging.ERROR)
    trials = given.trials or {"race": 40, "kills": 200, "damage": 400}[given.what]
    if given.what == "race":
        seen = race(trials, given.processes, same=given.same, address=given.address)
    else:
        seen = (kills if given.what == "kills" else damage)(trials)
    for what, count in sorted(seen.items()):
        print(f"{count:6,}  {what}")  # noqa: T201 -- the output of the script
    sys.exit(failed(seen))


def failed(seen: Counter[str]) -> bool:
    """Whether an answer was wrong, data was lost, or temporary files remained."""
    bad = ("WRONG", "OTHER", "error:")
    return seen["left behind"] > 0 or any(sign in what for what in seen for sign in bad)


if __name__ == "__main__":
    main()
