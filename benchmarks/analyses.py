"""How long does each analysis take on a large trace, and how much memory; against Holistic Trace Analysis in the same run.

    python benchmarks/analyses.py [--trace BIG.json.gz] [--peer PYTHON] [--rounds 3] [--only NAME ...]

Nearly all calls are the same text on both sides, as `hta.trace_analysis` has HTA's methods. The peer loads a trace once
and answers each call in a copy of its process (fork), so that no call finds what another left in the frames; a call that
takes more than `--limit` seconds or `--limit-gb` of address space is stopped. Of ours each call has a process of its own,
against a filled cache:

    first   the call in a new process: it opens the trace and reads from the cache what it needs
    again   the same call once more: what the first one read and linked is in memory, as HTA's frames are

Memory is what the call adds to the largest resident memory of its process, as the system counts it. Some calls need
something else than the large trace, and are left out without it: `--annotated`, a trace with annotations on the GPU;
`--job`, a folder of ranks on which HTA's search for stragglers works (kernels called `ncclKernel…`); `--counters`, a
trace with CUPTI counters; benchmarks/enlarge.py makes them large. The peer is that of open_and_answer.py.
"""

from __future__ import annotations

import argparse
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
    """One analysis: `call` is timed, `setup` before it is not; `peer_…` where HTA's code is another.

    Names in their scope: `analyzer`, `trace` (path of the file), `folder` (an empty one), `operator`, `unique` (a text).
    """

    name: str
    call: str
    setup: str = ""
    peer_call: str = ""
    peer_setup: str = ""
    needs: str = "trace"

    def code(self, *, of_peer: bool) -> tuple[str, str]:
        """Return what to prepare and what to time."""
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
_NODES = "nodes = [(1_000_000 + each, each) for each in range(1_000_000)]"  # id of the node, record function id
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
        "hta.kernel_sequences(analyzer.t.trace, operator_name=operator)",
        "import hta",
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
        "from hta.enrich.call_stack import call_stacks",
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
        "from hta.validation import validate\nfrom hta import open_trace",
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


# -- within a process, ours or the peer's: nothing is imported before it is known which `hta` is meant


def work(inputs: str, names: list[str], options: argparse.Namespace) -> None:
    """Load a trace, answer the cases of these names, and print a line of JSON for each."""
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415

    loaded: list[Any] = []
    arguments = {"trace_dir": inputs} if Path(inputs).is_dir() else {"trace_files": {0: inputs}}
    print(
        json.dumps({"name": "load", **_measured(lambda: loaded.append(TraceAnalysis(**arguments)) or loaded)}),
        flush=True,
    )
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
            again = None if of_peer else _measured(lambda: eval(call, scope))["seconds"]  # noqa: S307
        except Exception as error:  # noqa: BLE001 -- what a call raises is its result here
            return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:100]}
    return {**first, "again": again}


def _in_a_copy(case: Case, scope: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Answer in a fork of this process, for at most so long and with at most so much memory."""
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            most = int(options.limit_gb * _GIB)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            signal.alarm(options.limit)
            os.write(start, json.dumps(_answered(case, scope, of_peer=True)).encode())
        os._exit(0)
    os.close(start)
    with os.fdopen(end) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    answer: dict[str, Any] = json.loads(text or f'{{"error": "stopped after {options.limit} s"}}')
    return answer


def _measured(call: Callable[[], object]) -> dict[str, Any]:
    """Return the seconds of a call, how many MB it adds to the memory of this process, and whether it gave None."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the largest memory counts from here
    before = _memory_mb("VmRSS")
    begin = time.perf_counter()
    value = call()
    return {
        "seconds": time.perf_counter() - begin,
        "added_mb": _memory_mb("VmHWM") - before,
        "is_none": value is None,
    }


def _memory_mb(key: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{key}:"))


# -- around the processes


def table(options: argparse.Namespace) -> Iterator[str]:
    """Run the peer once and ours `rounds` times; yield the lines of a table in Markdown."""
    yield "| analysis | first, s | again, s | adds, MB | HTA, s | adds, MB | HTA / first | HTA / again |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for needed in _INPUTS:
        chosen = [case.name for case in CASES if case.needs == needed and case.name in (options.only or [case.name])]
        inputs = getattr(options, needed)
        if not inputs or not chosen:
            continue
        peers = {line["name"]: line for line in _run(options.peer, inputs, chosen, options)} if options.peer else {}
        if "load" in peers:
            yield f"| (HTA loads {Path(inputs).name}) | | | | {_figures(peers['load'])} | | |"
        list(_run(sys.executable, inputs, chosen[:1], options))  # fills the cache
        for name in chosen:
            rounds = [list(_run(sys.executable, inputs, [name], options))[-1] for _ in range(options.rounds)]
            yield _row(name, rounds, peers.get(name))


def _run(python: str, inputs: Path, names: list[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = inputs.resolve()
        if path.is_file():  # through a link, because copies are written beside it
            path = Path(folder, path.name)
            path.symlink_to(inputs.resolve())
        command = [python, __file__, "--trace", str(path), "--operator", options.operator, "--work"]
        command += [f"--limit={options.limit}", f"--limit-gb={options.limit_gb}", *(f"--only={name}" for name in names)]
        command += ["--as-peer"] if python == options.peer else []
        env = {**os.environ, "HTA_CACHE_DIR": str(options.cache)}
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603
        assert process.stdout is not None  # noqa: S101 -- for the type checker
        for line in process.stdout:
            if line.startswith(b'{"name"'):  # HTA prints, too
                print(python, line.decode(), end="", file=sys.stderr, flush=True)
                yield json.loads(line)


def _row(name: str, rounds: list[dict[str, Any]], peer: dict[str, Any] | None) -> str:
    if any("error" in ours for ours in rounds):
        return f"| {name} | {rounds[0]['error']} | | | {_figures(peer)} | | |"
    first, again = (statistics.median(ours[key] for ours in rounds) for key in ("seconds", "again"))
    ours = f"{first:.2f} | {again:.3f} | {max(each['added_mb'] for each in rounds):,.0f}"
    least = _least_seconds(peer)
    ratios = [
        f"{peer['seconds'] / each:,.1f}" if peer and "seconds" in peer else least(each) for each in (first, again)
    ]
    return f"| {name} | {ours} | {_figures(peer)} | {' | '.join(ratios)} |"


def _least_seconds(peer: dict[str, Any] | None) -> Callable[[float], str]:
    """Return how to say the least ratio of a call that was stopped."""
    words = (peer or {}).get("error", "").split("stopped after ")
    return lambda ours: f"> {int(words[1].split()[0]) / ours:,.0f}" if len(words) > 1 else ""


def _figures(peer: dict[str, Any] | None) -> str:
    if not peer:
        return " | "
    if "error" in peer:
        return f"{peer['error']} | "
    return f"{peer['seconds']:.2f}{' (None)' if peer['is_none'] else ''} | {peer['added_mb']:,.0f}"


def main() -> None:
    """Parse the options; measure, or be one of the measured processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in _INPUTS:
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--operator", default="CompiledFunction", help="whose kernel sequences; a part of its name")
    parser.add_argument("--peer")
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
