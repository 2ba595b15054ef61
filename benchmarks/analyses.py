"""Measure the time and memory of each analysis on a large trace, and compare with Holistic Trace Analysis (HTA).

    python benchmarks/analyses.py [--trace BIG.json.gz] [--peer PYTHON] [--rounds 3] [--only NAME ...]

Nearly all calls use the same code for both tools, because our `hta.trace_analysis` has HTA's methods. The peer (HTA)
loads a trace once and forks for each call, so no call profits from data that another call cached. A call is stopped
after `--limit` CPU seconds, or when it needs more than `--limit-gb` of address space. For holotrace, each call of each
round runs in a new process, with a filled cache:

    alone   the call alone; the columns that it reads are in memory, like HTA's frames after loading. Launches,
            call stacks and steps are not in memory; each call computes them from the columns. HTA does not compute
            launches in a call, because it links them while it loads
    first   the first call of a new process, including opening the trace and reading columns from the cache
    file    the time to read the trace for the first time, plus `first`; for HTA, the time to load it, plus the call

CPU time is the user and system time of all threads. Ratios compare CPU time, which, unlike wall time, hardly depends on
other work on the machine. Our times are medians over the rounds; HTA's times are from one run.

Memory is how much the call raises the peak resident memory of its process. Calls whose input the large trace lacks are
skipped unless an option names a suitable input: `--annotated`, a trace with annotations on the GPU; `--job`, a folder
with traces of several ranks, in which communication kernels are named as HTA's search for stragglers expects
(`ncclKernel…`); `--counters`, a trace with CUPTI counters. benchmarks/enlarge.py makes large traces from small
ones. open_and_answer.py describes `--peer`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_GIB = 1 << 30
_INPUTS = ("trace", "annotated", "job", "counters")


@dataclass(frozen=True)
class Case:
    """One analysis: `setup` runs first, then `call`, which is timed. HTA runs `peer_setup` and `peer_call` if they are given.

    The code can use `analyzer`, `trace` (path of the file), `folder` (path of an empty folder), `operator` (part of a name) and
    `unique()`, which returns a different string each time.
    """

    name: str
    call: str
    setup: str = ""
    peer_call: str = ""
    peer_setup: str = ""
    needs: str = "trace"

    def code(self, *, of_peer: bool) -> tuple[str, str]:
        """Return the code that prepares the call, and the call that is timed."""
        return (self.peer_setup or self.setup, self.peer_call or self.call) if of_peer else (self.setup, self.call)


_QUEUES = "queues = analyzer.get_queue_length_time_series(ranks=[0])"
_WITHOUT_OVERLAY = """
from hta.analyzers.cuda_kernel_analysis import CudaKernelAnalysis
CudaKernelAnalysis._overlay_frequent_patterns_with_trace = classmethod(lambda *_: {})
analyzer.t.write_raw_trace = lambda *_: None
"""
_SEQUENCES = "analyzer.get_frequent_cuda_kernel_sequences(operator_name=operator, output_dir=folder, rank=0)"
_DIFF_SETUP = """
from hta.trace_diff import LabeledTrace, TraceDiff
sides = LabeledTrace("before", analyzer.t), LabeledTrace("after", analyzer.t)
steps = analyzer.get_profiler_steps()
"""
_DIFF = "TraceDiff.compare_traces(*sides, control_iteration=steps, test_iteration=steps)"
_NODES = "nodes = [(1_000_000 + rf_id, rf_id) for rf_id in range(1, 1_000_000)]"  # node id, record function id
_PEER_EXECUTION_TRACE = f"""
from types import SimpleNamespace
from hta.common.execution_trace import correlate_execution_trace
{_NODES}
et = SimpleNamespace(nodes={{node: SimpleNamespace(rf_id=rf_id, name="aten::add") for node, rf_id in nodes}})
"""
_EXECUTION_TRACE = f"""
import json
from hta.common.execution_trace import correlate_execution_trace, load_execution_trace
{_NODES}
with open(folder + "/et.json", "w") as file:
    listed = [{{"id": node, "rf_id": rf_id, "name": "aten::add"}} for node, rf_id in nodes]
    json.dump({{"schema": "1.0.1", "nodes": listed}}, file)
et = load_execution_trace(folder + "/et.json")
analyzer.t.get_trace(0)
"""
_MEMORY = """
import gzip, json
from hta.memory_analysis import MemoryAnalysis
events = [[1_000 * at, 1, 512 if at % 2 else -512, at % 8] for at in range(2_000_000)]
with gzip.open(folder + "/memory.raw.json.gz", "wt", compresslevel=1) as file:
    json.dump(events, file)
"""

CASES = (
    Case("launch statistics", "analyzer.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)"),
    Case("queue length, series", "analyzer.get_queue_length_time_series(ranks=[0])"),
    Case("queue length, summary", "analyzer.get_queue_length_summary(ranks=[0])"),
    Case("queue length, summary of a series", "analyzer.get_queue_length_summary_from_time_series(queues)", _QUEUES),
    Case("time blocked on a full queue", "analyzer.get_time_spent_blocked_on_full_queue(queues, 10)", _QUEUES),
    Case("memory bandwidth, series", "analyzer.get_memory_bw_time_series(ranks=[0])"),
    Case("memory bandwidth, summary", "analyzer.get_memory_bw_summary(ranks=[0])"),
    Case("trace with counters", "analyzer.generate_trace_with_counters(ranks=[0], output_suffix=unique())"),
    Case(
        "kernel sequences",
        "holotrace.kernel_sequences(analyzer.t.trace, operator_name=operator)",
        "import holotrace",
        _SEQUENCES,
        _WITHOUT_OVERLAY,
    ),
    Case("kernel sequences, and the overlaid trace", _SEQUENCES),
    Case("operator kernels", "analyzer.get_aten_op_kernels_and_delay(ranks=[0])"),
    Case(
        "annotations, kernels",
        "analyzer.get_gpu_kernels_with_user_annotations(0)",
        needs="annotated",
    ),
    Case(
        "annotations, breakdown on the GPU",
        "analyzer.get_gpu_user_annotation_breakdown(visualize=False)",
        needs="annotated",
    ),
    Case(
        "annotations, breakdown on the CPU",
        "analyzer.get_gpu_user_annotation_breakdown(use_gpu_annotation=False, visualize=False)",
    ),
    Case(
        "call stacks",
        "analyzer.t.trace.ranks[0].derive(call_stacks)",
        "from holotrace.enrich.host.call_stack import call_stacks",
        "CallGraph(analyzer.t, ranks=[0])",
        "from hta.common.trace_call_graph import CallGraph",
    ),
    Case("stragglers", "analyzer.get_potential_stragglers()", needs="job"),
    Case("CUPTI counters", "analyzer.get_cupti_counter_data_with_operators(ranks=[0])", needs="counters"),
    Case("comparison", _DIFF, _DIFF_SETUP),
    Case(
        "raw memory timeline",
        "MemoryAnalysis(folder + '/memory.raw.json.gz').get_memory_timeline()",
        _MEMORY,
        "MemoryAnalysis(folder + '/memory.raw.json.gz')._process_raw_events()",
    ),
    Case(
        "validation",
        "validate(open_trace(trace))",
        "from holotrace.validation import validate\nfrom holotrace import open_trace",
        "validate_trace_format(trace)",
        "from hta.utils.validate_trace import validate_trace_format",
    ),
    Case("get_trace", "analyzer.t.get_trace(0)"),
    Case(
        "execution trace joined",
        "correlate_execution_trace(analyzer.t, 0, et)",
        _EXECUTION_TRACE,
        peer_setup=_PEER_EXECUTION_TRACE,
    ),
)


# -- functions that run in a measured process. They import `hta` when they are called, because HTA and holotrace each
# have a package of this name


def work(inputs: str, names: list[str], options: argparse.Namespace) -> None:
    """Load a trace, run the named cases, and print a line of JSON for each."""
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415

    loaded: list[Any] = []
    arguments = {"trace_dir": inputs} if Path(inputs).is_dir() else {"trace_files": {0: inputs}}

    def load() -> list[Any]:
        loaded.append(TraceAnalysis(**arguments))
        if not options.as_peer:  # holotrace reads the trace on first use
            _ = [rank_trace.health for rank_trace in loaded[0].t.trace.ranks.values()]
        return loaded

    opening = _measured(load)
    print(json.dumps({"name": "load", **opening}), flush=True)
    scope = {"analyzer": loaded[0], "trace": inputs, "operator": options.operator}
    for case in CASES:
        if case.name in names:
            answer = _in_a_copy(case, scope, options) if options.as_peer else _answered(case, scope, of_peer=False)
            print(json.dumps({"name": case.name, **answer}), flush=True)


def _answered(case: Case, known: dict[str, Any], *, of_peer: bool) -> dict[str, Any]:
    setup, call = case.code(of_peer=of_peer)
    with tempfile.TemporaryDirectory() as folder:
        scope = {**known, "folder": folder, "unique": lambda: f"_{os.getpid()}_{time.time_ns()}"}
        try:
            exec(setup, scope)  # noqa: S102 -- our own code
            first = _measured(lambda: eval(call, scope))  # noqa: S307 -- our own code
            return first if of_peer else {**first, "alone": _alone(lambda: eval(call, scope))}  # noqa: S307
        except Exception as error:  # noqa: BLE001 -- an exception is recorded as the result
            return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:100]}


def _alone(call: Callable[[], object]) -> dict[str, Any]:
    """Measure one of our calls again, with its event columns already in memory, but without derived data."""
    _keep_columns()
    _forget_derived()
    call()
    _forget_derived()
    return _measured(call)


def _keep_columns() -> None:
    """Keep every column of events in memory once it is read."""
    from holotrace.store.trace import RankTrace  # noqa: PLC0415

    read, kept = RankTrace.events_of, {}

    def events_of(rank_trace: Any, kinds: Any, columns: Any) -> Any:  # noqa: ANN401
        key = (rank_trace, tuple(kinds), tuple(columns))
        if key not in kept:
            kept[key] = read(rank_trace, key[1], columns)
        return kept[key]

    RankTrace.events_of = events_of  # type: ignore[method-assign]  # only in this process


def _forget_derived() -> None:
    from holotrace.store.trace import RankTrace  # noqa: PLC0415

    for candidate in gc.get_objects():
        if isinstance(candidate, RankTrace):
            candidate._derived.clear()  # noqa: SLF001 -- forget() would also drop the columns


def _in_a_copy(case: Case, scope: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Run a call in a fork of this process, with limits on CPU time and memory."""
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            most = int(options.limit_gb * _GIB)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            signal.setitimer(signal.ITIMER_PROF, options.limit)
            os.write(start, json.dumps(_answered(case, scope, of_peer=True)).encode())
        os._exit(0)
    os.close(start)
    with os.fdopen(end) as pipe:
        text = pipe.read()
    _, status, used = os.wait4(child, 0)
    was_late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF
    why = f"stopped after {options.limit} CPU s" if was_late else f"ended with status {status}"
    stopped = {"error": why, "cpu": used.ru_utime + used.ru_stime}
    answer: dict[str, Any] = json.loads(text) if text else stopped
    return answer


def _measured(call: Callable[[], object]) -> dict[str, Any]:
    """Return the seconds of a call, the MB it adds to the memory of this process, and whether it returned None."""
    Path("/proc/self/clear_refs").write_text(
        "5", encoding="ascii"
    )  # reset the peak: https://docs.kernel.org/filesystems/proc.html
    before = _memory_mb("VmRSS")
    begin, begin_cpu = time.perf_counter(), _cpu_seconds()
    value = call()
    return {
        "seconds": time.perf_counter() - begin,
        "cpu": _cpu_seconds() - begin_cpu,
        "added_mb": _memory_mb("VmHWM") - before,
        "is_none": value is None,
    }


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and its finished children, over all threads."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _memory_mb(key: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{key}:"))


# -- starting the processes


_COLUMNS = (
    "analysis",
    *("alone, CPU s", "alone, s", "first, CPU s", "first, s", "adds, MB"),
    *("HTA, CPU s", "HTA, s", "HTA adds, MB"),
    *("HTA / alone", "by wall", "HTA / first", "HTA / file"),
)


def table(options: argparse.Namespace) -> Iterator[str]:
    """Run each analysis once in HTA and `rounds` times in holotrace; yield the lines of a Markdown table."""
    yield f"| {' | '.join(_COLUMNS)} |"
    yield f"|---|{'--:|' * (len(_COLUMNS) - 1)}"
    for needed in _INPUTS:
        chosen = [case.name for case in CASES if case.needs == needed and case.name in (options.only or [case.name])]
        inputs = getattr(options, needed)
        if not inputs or not chosen:
            continue
        peers = {line["name"]: line for line in _of_peer(inputs, chosen, options)}
        reading = next(iter(_run(sys.executable, inputs, chosen[:1], options)))  # fills the cache
        for name in chosen:
            rounds = [list(_run(sys.executable, inputs, [name], options)) for _ in range(options.rounds)]
            yield _row(name, reading, rounds, peers)
        yield f"| reading {Path(inputs).name} | | | {_two(reading)} | {_mb(reading)} | {_figures(peers.get('load'))} | | | | |"


def _of_peer(inputs: Path, names: list[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Run HTA, or read the output of earlier runs."""
    if options.peer_said:
        yield from (json.loads(line) for file in options.peer_said for line in file.read_text().splitlines())
    elif options.peer:
        yield from _run(options.peer, inputs, names, options)


def _run(python: str, inputs: Path, names: list[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = inputs.resolve()
        if path.is_file():  # link to it from an empty folder, because calls write copies beside the trace
            path = Path(folder, path.name)
            path.symlink_to(inputs.resolve())
        command = [python, __file__, "--trace", str(path), "--operator", options.operator, "--work"]
        command += [f"--limit={options.limit}", f"--limit-gb={options.limit_gb}", *(f"--only={name}" for name in names)]
        command += ["--as-peer"] if python == options.peer else []
        env = {**os.environ, "HOLOTRACE_CACHE_DIR": str(options.cache)}
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603
        assert process.stdout is not None  # noqa: S101 -- for the type checker
        for line in process.stdout:
            if line.startswith(b'{"name"'):  # other lines are HTA's own output
                print(python, line.decode(), end="", file=sys.stderr, flush=True)
                yield json.loads(line)


def _row(
    name: str, reading: dict[str, Any], rounds: list[list[dict[str, Any]]], peers: dict[str, dict[str, Any]]
) -> str:
    peer, load = peers.get(name), peers.get("load")
    errors = [calls[-1]["error"] for calls in rounds if "error" in calls[-1]]
    if errors:
        return f"| {name} | {errors[0]} | | | | | {_figures(peer)} | | | | |"
    alone = _median([calls[-1]["alone"] for calls in rounds])
    first = _median([_added(calls[0], calls[-1]) for calls in rounds])
    most = {"added_mb": max(calls[-1]["added_mb"] for calls in rounds)}
    ratios = (
        _ratio(peer, alone, "cpu"),
        _ratio(peer, alone, "seconds"),
        _ratio(peer, first, "cpu"),
        _ratio(_added(load, peer) if load and peer else None, _added(reading, first), "cpu"),
    )
    return f"| {name} | {_two(alone)} | {_two(first)} | {_mb(most)} | {_figures(peer)} | {' | '.join(ratios)} |"


def _median(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: statistics.median(measured[key] for measured in rounds) for key in ("cpu", "seconds")}


def _added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    sums = {key: one[key] + other[key] for key in ("cpu", "seconds") if key in one and key in other}
    return {**other, **sums}


def _ratio(peer: dict[str, Any] | None, ours: dict[str, Any], key: str) -> str:
    """Return how many times longer the peer takes; a lower bound if it was stopped."""
    if not peer or key not in peer:
        return ""
    return f"{'> ' if 'error' in peer else ''}{peer[key] / ours[key]:,.{0 if peer[key] > 10 * ours[key] else 1}f}"


def _two(figures: dict[str, Any]) -> str:
    return f"{figures['cpu']:.3g} | {figures['seconds']:.3g}"


def _mb(figures: dict[str, Any]) -> str:
    return f"{figures['added_mb']:,.0f}"


def _figures(peer: dict[str, Any] | None) -> str:
    if not peer:
        return " | | "
    if "error" in peer:
        return f"{peer['cpu']:.3g} | {peer['error']} | " if "cpu" in peer else f"{peer['error']} | | "
    return f"{_two(peer)}{' (None)' if peer['is_none'] else ''} | {_mb(peer)}"


def main() -> None:
    """Parse the options; start the measurements, or, in a process that was started to be measured, run its calls."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in _INPUTS:
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument(
        "--operator",
        default="CompiledFunction",
        help="part of the names of the operators whose kernel sequences are measured",
    )
    parser.add_argument("--peer")
    parser.add_argument(
        "--peer-said", type=Path, action="append", help="a file with the lines that HTA printed in an earlier run"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=900)
    parser.add_argument("--limit-gb", type=float, default=16)
    parser.add_argument("--only", action="append")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--as-peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(str(options.trace), options.only, options)
        return
    with tempfile.TemporaryDirectory() as folder:
        options.cache = Path(folder, "cache")
        if options.trace is None:
            from open_and_answer import synthetic_trace  # noqa: PLC0415

            options.trace, options.operator = synthetic_trace(Path(folder)), "aten::linear"
        for line in table(options):
            print(line, flush=True)


if __name__ == "__main__":
    main()
