"""Rules about hosts that launch work too slowly: many operators, Python between them, optimizers with many kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import (
    Intervals,
    concatenated,
    covered_before,
    covered_length,
    holding,
    intersection,
    intervals_of,
    union,
    union_of,
)
from holotrace.analyses.diagnosis.evidence.compilation import compilation
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, Place, RankCase, Rule, Said, in_line, who_waits
from holotrace.analyses.diagnosis.rules.needs import needs_device
from holotrace.enrich.critical_path.what_if import Remove
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.frames import OF_AUTOGRAD
from holotrace.enrich.host.source_lines import records_python
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.units import duration_text

_Times = npt.NDArray[np.int64]

_LONG_NS = 100_000
_IS_SHORT = pl.col("end_ns") - pl.col("start_ns") < _LONG_NS
"""Short intervals of Python code are overhead between operators; longer ones are separate work."""

_MUCH_PYTHON = 0.1
"""Python between operators is a separate finding if it takes at least this share of the step."""

FUNCTION_NS = 1_200
"""Nanoseconds that a profiler adds to each Python function that it records."""

_IN_OPERATORS, _IN_PYTHON = ("operator",), ("python", "host_idle")
_ADDED_NS = {
    _IN_OPERATORS: dict.fromkeys((EventKind.CPU_OP, *LAUNCH_KINDS), 3_000),
    _IN_PYTHON: {EventKind.PYTHON_FUNCTION: FUNCTION_NS},
}
"""Nanoseconds that a profiler adds to each host event, by kind of event, if it records Python functions. Each outer key
lists causes of idle time. The time that is added to the events under this key prolongs idle time with these causes. The
estimate was tested on 24 jobs in examples/gpu whose devices idle even without the profiler: in half of these jobs, the
measured delay is 0.9 to 1.7 times the estimate."""

OPTIMIZER = r"^(Optimizer\.step#|\[pl\]\[.*\]optimizer_step)"
_LEAST_SHARE_ON_HOST = 0.05
"""By default, optimizers on the host update one tensor at a time, which is good enough if they take less than 5 % of the step."""
_FEW_KERNELS = 20
"""A multi-tensor optimizer launches about this many kernels for a group of parameters."""

_BREAKS = r"^Torch-Compiled Region: \d+/\d+"
_BACKWARD = rf"^{OF_AUTOGRAD}|run_backward"
"""The backward pass. If the optimizer is also compiled, the backward pass runs between two compiled regions, but this
gap between the regions is not a graph break."""
AFTER_BREAK = r"torch_dynamo_resume_in_"
"""Prefix of the name that torch.compile gives to the rest of a function, which runs after a graph break."""
_COMPILING = r"^dynamo$|dynamo_timed|convert_frame|compile_fx|backend_compile|compile_(inner|attempt)"
"""Events that run only while torch.compile compiles."""
_COMPILATION = r"^dynamo$|\(dynamo_timed\)$|torch/_dynamo/convert_frame\.py\(\d+\): (__call__|_?compile_inner)$"
"""Events that last for a whole compilation, including all Python that the compiler runs."""


def launch_bound(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the idle time in which the host runs operators and launches their work."""
    waits = pl.col("name").str.contains("(?i)synchroni[sz]e").fill_null(value=False)
    pieces = evidence.while_idle.filter((pl.col("cause") == "operator") & ~waits)
    kinds = [int(kind) for kind in (EventKind.CPU_OP, *LAUNCH_KINDS)]
    without_operators = Remove(pl.col("kind").is_in(kinds))
    for case in _unless_profiled(evidence, _IN_OPERATORS, _case(evidence, pieces, without_operators)):
        words = {**case.words, "computes": _computes_on_host(evidence, pieces, case.place.operator)}
        yield _with_little_python(evidence, replace(case, words=words), without_operators)


def _computes_on_host(evidence: RankEvidence, pieces: pl.DataFrame, operator: str | None) -> bool:
    """Return whether the operator computes on the CPU.

    Two conditions must be true: the operator launches no device work, and its intervals of at least 0.1 ms make up
    more than half of the total length of `pieces`.
    """
    time = pl.col("end_ns") - pl.col("start_ns")
    own = pl.col("name").str.strip_prefix(OF_AUTOGRAD) == operator
    long_ns, all_ns = pieces.select(time.filter(own & ~_IS_SHORT).sum().alias("long"), time.sum().alias("all")).row(0)
    if 2 * long_ns <= all_ns:
        return False
    activity = evidence.activity
    row = np.searchsorted(activity["start_ns"], evidence.work["launch_start_ns"].drop_nulls(), side="right") - 1
    launching = activity["name"].gather(row[row >= 0]).str.strip_prefix(OF_AUTOGRAD)
    return operator not in set(launching)


def _with_little_python(evidence: RankEvidence, case: Case, without_operators: Remove) -> Case:
    """Add the time of Python between operators to a case, if this time is too short for a separate finding.

    One fix saves both: with a CUDA graph, neither the operators nor the Python between them run again.
    """
    overhead = next(python_overhead(evidence), None)
    if overhead is None or overhead.value >= _MUCH_PYTHON:
        return case
    without_python = Remove(pl.col("kind") == int(EventKind.PYTHON_FUNCTION))
    explained = union(*concatenated([case.explained, overhead.explained]))
    return replace(case, explained=explained, change=(without_operators, without_python))


def python_overhead(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the short intervals (below 0.1 ms) in which the device is idle because of Python code."""
    pieces = evidence.while_idle.filter(pl.col("cause").is_in(_IN_PYTHON) & _IS_SHORT)
    yield from _unless_profiled(evidence, _IN_PYTHON, _case(evidence, pieces, None))


def _unless_profiled(evidence: RankEvidence, causes: Sequence[str], cases: Iterator[Case]) -> Iterator[Case]:
    """Reduce each case's `value` by the profiler's share of the idle time; leave `explained` unchanged."""
    left = 1 - _share_of_profiler(evidence, causes)
    for case in cases:
        yield replace(case, value=case.value * left)


def _share_of_profiler(evidence: RankEvidence, causes: Sequence[str]) -> float:
    """Estimate what fraction of the idle time with these causes is due to the profiler.

    The profiler's overhead in operators lengthens the idle time that operators cause; its overhead in Python lengthens
    the idle time that Python causes. Overhead in operators that exceeds the idle time that operators cause still delays
    the host. This excess therefore counts as overhead in Python. Likewise, excess overhead in Python counts as overhead
    in operators.
    """
    idle_ns, added_ns = _idle_ns(evidence, causes), _added_ns(evidence, causes)
    others = [(_added_ns(evidence, other), _idle_ns(evidence, other)) for other in _ADDED_NS if other != causes]
    beyond_ns = sum(max(0, added - idle) for added, idle in others)
    return min(1.0, (added_ns + beyond_ns) / idle_ns) if idle_ns else 0.0


def _added_ns(evidence: RankEvidence, causes: Sequence[str]) -> int:
    """Estimate the time that the profiler adds to the events listed in `_ADDED_NS` under these causes of idle time.

    The estimate is 0 if no Python functions were recorded.
    """
    if not records_python(evidence.rank_trace):
        return 0
    return sum(ns * evidence.event_counts.get(int(kind), 0) for kind, ns in _ADDED_NS[tuple(causes)].items())


def _idle_ns(evidence: RankEvidence, causes: Sequence[str]) -> int:
    return covered_length(*union_of(evidence.while_idle.filter(pl.col("cause").is_in(causes))))


def slow_recording(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the idle time that recording Python functions adds.

    Added time is assumed to be the same fraction of all idle intervals that have the same cause. An interval longer
    than 0.1 ms counts as 0.1 ms, because the profiler hardly lengthens what the host does in such a long interval.
    """
    short_ns = pl.min_horizontal(pl.col("end_ns") - pl.col("start_ns"), pl.lit(_LONG_NS))
    pieces = evidence.while_idle.with_columns(short_ns.alias("short_ns"))
    shares = {}
    for causes in _ADDED_NS:
        short = int(pieces.filter(pl.col("cause").is_in(causes))["short_ns"].sum())
        shares.update(dict.fromkeys(causes, min(1.0, _added_ns(evidence, causes) / max(1, short))))
    share = pl.col("cause").replace_strict(shares, default=0.0, return_dtype=pl.Float64)
    added = pieces.with_columns((pl.col("start_ns") + (pl.col("short_ns") * share).cast(pl.Int64)).alias("end_ns"))
    for case in _case(evidence, added.filter(pl.col("end_ns") > pl.col("start_ns")), None):
        yield replace(case, is_estimate=True)


def compiling(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the time in steady steps during which a device idles while torch.compile compiles."""
    named = evidence.while_idle.filter(pl.col("name").str.contains(_COMPILING).fill_null(value=False))
    compilations = intersection(union_of(named_ranges(evidence, _COMPILATION)), evidence.step_windows)
    inside = evidence.within(evidence.while_idle, compilations)
    for case in _case(evidence, pl.concat([named, inside]).unique(maintain_order=True), None):
        yield replace(case, count=len(compilations[0]) or case.count)


def optimizer_not_fused(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case if the optimizer launches more kernels than a fused optimizer would."""
    ranges = named_ranges(evidence, OPTIMIZER)
    times = intersection(union_of(ranges), evidence.step_windows)
    if not evidence.has_device_work:
        if evidence.computes_on_host:
            yield from _updates_on_host(evidence, ranges, times)
        return
    is_inside = holding(times, evidence.work["launch_start_ns"].fill_null(-1).to_numpy()) >= 0
    launched = evidence.work.filter(pl.Series(is_inside))
    steps = max(1, len(times[0]))
    if launched.is_empty():
        return
    first = launched.row(0, named=True)
    host = evidence.activity_at(first["launch_start_ns"])
    name = evidence.rank_trace.texts(ranges["name"])[0]
    yield Case(
        union(*concatenated([intersection(evidence.idle, times), union_of(launched)])),
        value=len(launched) / steps,
        saved_fraction=max(0.0, 1 - _FEW_KERNELS * steps / len(launched)),
        count=len(launched),
        place=Place(
            operator=name,
            source_line=host.get("frame"),
            event_index=first["launch_index"],
            at_ns=first["launch_start_ns"],
        ),
        words={"count": len(launched) / steps, "name": name, "is_idle": True},
    )


def _updates_on_host(evidence: RankEvidence, ranges: pl.DataFrame, times: Intervals) -> Iterator[Case]:
    """Yield a case if an optimizer on the host runs many operators and takes at least 5 % of the step."""
    share = evidence.share(times)
    if share < _LEAST_SHARE_ON_HOST:
        return
    within = evidence.within(evidence.activity.filter(pl.col("cause") == "operator"), times)
    own = within.unique("event_index", keep="first", maintain_order=True)
    events = evidence.rank_trace.table("events", ["event_index", "name"]).rename({"name": "own_name"})
    named = own.join(events, on="event_index", how="left", maintain_order="left")
    called = named.filter(evidence.rank_trace.texts(named["own_name"]) == named["name"])
    if called.is_empty():
        return
    first, per_update = called.row(0, named=True), len(called) / max(1, len(times[0]))
    name = evidence.rank_trace.texts(ranges["name"])[0]
    yield Case(
        times,
        value=per_update,
        saved_fraction=max(0.0, 1 - _FEW_KERNELS / per_update),
        count=len(called),
        place=Place(
            operator=name, source_line=first["frame"], event_index=first["event_index"], at_ns=first["start_ns"]
        ),
        words={"count": per_update, "name": name, "is_idle": False},
    )


def graph_breaks(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the idle time between the compiled regions of a step, if each step runs several regions.

    The idle time after the last region of a step is included only if it is in a function that resumes after a graph
    break, as its name shows (`AFTER_BREAK`). The idle time within a region is included if it is caused by graph breaks
    before the region (see `_between`).
    """
    regions = named_ranges(evidence, _BREAKS)
    names = evidence.rank_trace.texts(regions["name"])
    frames = names.str.extract(r": (\d+)/")
    times = intersection(union_of(regions), evidence.step_windows)
    count = frames.n_unique()
    if len(times[0]) < 2 * evidence.step_count or count < 2:  # noqa: PLR2004 -- one region has no break
        return
    outside = evidence.while_idle.filter(pl.col("cause").is_in(["operator", "python", "host_idle"]))
    if not evidence.has_device_work:
        outside = outside.filter(~pl.col("name").str.contains(_BACKWARD).fill_null(value=False))
    between = evidence.within(outside, _between(evidence, times))
    after = outside.filter(pl.col("name").str.contains(AFTER_BREAK).fill_null(value=False))
    yield from _case(evidence, pl.concat([between, after]).unique(maintain_order=True), None, count=count)


def _between(evidence: RankEvidence, regions: Intervals) -> Intervals:
    """Return the graph breaks (the times between the regions of a step), and the idle time that they cause later.

    While the devices have queued work, a graph break delays the host, but the devices stay busy. The devices become
    idle later, when the queue is empty. The breaks therefore also cause idle time within the following regions. This
    idle time is at most as long as the busy time of the devices during the breaks.
    """
    step = holding(intervals_of(evidence.steady), regions[0])
    same = np.flatnonzero((step[1:] == step[:-1]) & (step[1:] >= 0))
    begins, ends, until = regions[1][same], regions[0][same + 1], regions[1][same + 1]
    before_ns = [covered_before(evidence.idle, times) for times in (begins, ends, until)]
    leads_ns = _leads_ns(step[same], ends - begins - (before_ns[1] - before_ns[0]), before_ns[2] - before_ns[1])
    stops = np.minimum(until, _after_idle(evidence.idle, before_ns[1] + leads_ns))
    inside = intersection((ends, np.maximum(ends, stops)), evidence.idle)
    return union(*concatenated([(begins, ends), inside]))


def _leads_ns(step: _Times, busy_ns: _Times, idle_ns: _Times) -> _Times:
    """Return how far ahead of the device the host would be at the start of each region if no graph breaks occurred.

    Args:
        step: the step of each region.
        busy_ns: how long the devices were busy during the break before the region.
        idle_ns: how long the devices are idle within the region; the host's lead becomes shorter by this time.
    """
    leads, lead_ns = np.zeros(len(step), np.int64), 0
    for row, gained_ns in enumerate(busy_ns):
        lead_ns = gained_ns + (lead_ns if row and step[row] == step[row - 1] else 0)
        leads[row] = lead_ns
        lead_ns = max(0, lead_ns - idle_ns[row])
    return leads


def _after_idle(idle: Intervals, length_ns: _Times) -> _Times:
    """Return, for each length in `length_ns`, the time when the total of the idle time so far reaches this length.

    If the total never reaches a length, the end of the last idle interval is returned for this length.
    """
    starts, ends = idle
    if not len(starts):
        return np.zeros_like(length_ns)
    before = np.cumsum(ends - starts) - (ends - starts)
    gap = np.searchsorted(before, length_ns, side="right") - 1
    times: _Times = np.minimum(ends[gap], starts[gap] + length_ns - before[gap])
    return times


def named_ranges(evidence: RankEvidence, pattern: str) -> pl.DataFrame:
    """Return the operators, annotations and Python functions whose names match `pattern`.

    The columns are event_index, name, start_ns and end_ns.
    """
    kinds = (EventKind.CPU_OP, EventKind.USER_ANNOTATION, EventKind.PYTHON_FUNCTION)
    names = names_matching(evidence.rank_trace, pattern)
    return event_ranges(evidence.rank_trace, kinds, ["event_index", "name", "start_ns", "end_ns"], names=names)


def _case(evidence: RankEvidence, pieces: pl.DataFrame, change: Remove | None, *, count: int = 0) -> Iterator[Case]:
    if pieces.is_empty():
        return
    explained = union_of(pieces)
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns")
    sums = pieces.group_by("name", "module", "frame", maintain_order=True).agg(
        time, pl.col("event_index").first(), pl.col("start_ns").first()
    )
    most = sums.sort("time_ns", descending=True, maintain_order=True).row(0, named=True)
    operator = most["name"] and most["name"].removeprefix(OF_AUTOGRAD)
    place = Place(most["module"], operator, None, most["frame"], most["event_index"], most["start_ns"])
    kernels = len(evidence.work) / evidence.step_count
    words = {
        "kernels": kernels,
        "kernel_ns": _mean_kernel_ns(evidence),
        "regions": count,
        "has_graphs": evidence.has_graph_launches,
        "compilation": compilation(evidence),
        "is_idle": evidence.has_device_work,
    }
    yield Case(explained, evidence.share(explained), count=len(pieces), place=place, change=change, words=words)


def _mean_kernel_ns(evidence: RankEvidence) -> float:
    mean = evidence.work["duration_ns"].mean()
    return float(mean) if isinstance(mean, int | float) else 0.0


_INTO_GRAPHS = (
    'Launch a step as one CUDA graph (torch.compile(mode="reduce-overhead") or torch.cuda.graph), or fuse kernels with '
    "torch.compile."
)
_COMPILED_INTO_GRAPHS = (
    'torch.compile already runs: let it launch its kernels as CUDA graphs (mode="reduce-overhead"), and also compile code that '
    "is not compiled yet, such as the optimizer. Or do more work per launch: use larger batches."
)
_WITHOUT_COMPILE = (
    "Do more work per launch: use larger batches, an optimizer with foreach=True or fused=True, or torch.jit.script. Or update to "
    "PyTorch 2.0 or newer, and compile the model with torch.compile."
)
_MORE_IN_GRAPHS = (
    "Move more work into the CUDA graphs, such as copies of the inputs, the optimizer and sampling; or do more work per launch "
    "of a graph."
)


def _kernels(count: float) -> str:
    return "1 kernel or copy" if round(count) == 1 else f"{count:,.0f} kernels and copies"


def _say_launch_bound(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    if words["computes"]:
        return Said(
            f"the GPU waits while the CPU computes {cases[0].place.operator}{in_line(cases[0].place)}",
            'Compute this on the GPU (create the tensor with device="cuda", or move its inputs there first), or in the workers of '
            "the data loader.",
        )
    return Said(
        f"the GPU waits for the host to launch work ({_kernels(words['kernels'])} per step, "
        f"{duration_text(words['kernel_ns'])} each on average), longest for {cases[0].place.operator}{in_line(cases[0].place)}",
        _fewer_launches(words) or _INTO_GRAPHS,
    )


def _say_python(cases: Sequence[RankCase]) -> Said:
    line = cases[0].place.source_line
    where = f", mostly in {line}" if line else ""
    return Said(
        f"the GPU waits while Python runs between operators{where}",
        _fewer_launches(cases[0].words) or _WITHOUT_PYTHON,
    )


_WITHOUT_PYTHON = "Compile the model (torch.compile, with PyTorch 2.0 or newer), or launch the step as a CUDA graph; both run the step without Python."


def _fewer_launches(words: Mapping[str, Any]) -> str | None:
    """Return advice for jobs that already use CUDA graphs or torch.compile, or whose PyTorch lacks torch.compile.

    Return None for all other jobs.
    """
    if words["has_graphs"]:
        return _MORE_IN_GRAPHS
    return {"runs": _COMPILED_INTO_GRAPHS, "too_old": _WITHOUT_COMPILE}.get(words["compilation"])


def _say_recording(_: Sequence[RankCase]) -> Said:
    return Said(
        "the GPU waits because recording Python functions slows the host down (estimated from the number of events)",
        "Record once without with_stack to see the real times; the lines of code that this recording shows are still "
        "correct.",
    )


def _say_compiling(cases: Sequence[RankCase]) -> Said:
    return Said(
        f"{who_waits(cases[0])} while torch.compile compiles again{in_line(cases[0].place)}",
        "Find the reason with TORCH_LOGS=recompiles. Pad inputs to a few lengths, mark changing dimensions with "
        "torch._dynamo.mark_dynamic, or compile with dynamic=True.",
    )


def _say_breaks(cases: Sequence[RankCase]) -> Said:
    return Said(
        f"{who_waits(cases[0])} between compiled regions, because graph breaks split the step into {cases[0].words['regions']} regions"
        f"{in_line(cases[0].place)}",
        "Find the breaks with TORCH_LOGS=graph_breaks or fullgraph=True; printing, .item() and unsupported calls cause them.",
    )


_FUSED_ON_HOST = "Pass fused=True to the optimizer (Adam, AdamW, SGD, Adagrad); on a CPU, foreach=True still updates one tensor at a time."


def _say_optimizer(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"the optimizer {'launches' if words['is_idle'] else 'runs'} {words['count']:,.0f} "
        f"{'kernels' if words['is_idle'] else 'operators'} per step ({words['name']}){in_line(cases[0].place)}",
        "Pass fused=True (or foreach=True) to the optimizer." if words["is_idle"] else _FUSED_ON_HOST,
    )


_GUIDE = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"


def unexplained_idle(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the long idle intervals in which no event of the host was recorded."""
    waits = pl.col("name").str.starts_with("<built-in ").fill_null(value=False)
    long = evidence.while_idle.filter((pl.col("cause") == "host_idle") & ~waits & ~_IS_SHORT)
    yield from _case(evidence, long, None)


def _say_unexplained(_: Sequence[RankCase]) -> Said:
    return Said(
        "the GPU waits, and no event shows what the host does",
        "Record with_stack=True to see Python functions. If no function runs in the gap, look for another process on this rank's cores.",
    )


RULES = (
    Rule(
        "unexplained_idle",
        "idle time in which no host event was recorded for 0.1 ms or more",
        threshold=0.10,
        unit=OF_THE_STEP,
        reason="Every step has a few short gaps without events, which take less than a tenth of the step.",
        source=_GUIDE,
        check=unexplained_idle,
        say=_say_unexplained,
        precedence=3,
        needs=needs_device,
        confidence="low",
    ),
    Rule(
        "slow_recording",
        "idle time added by recording Python functions: 3 µs per operator and runtime call, 1.2 µs per Python function",
        threshold=0.10,
        unit=OF_THE_STEP,
        reason="If recording adds less than a tenth of the step, the recorded times are close to those without the "
        "profiler.",
        source="docs/reference/analyses/trust.md",
        check=slow_recording,
        say=_say_recording,
        precedence=2,
        needs=needs_device,
        confidence="low",
    ),
    Rule(
        "optimizer_not_fused",
        "an optimizer that updates one tensor at a time",
        threshold=100,
        unit="kernels (on a CPU: operators) per step of the optimizer",
        reason="A multi-tensor optimizer launches about 20 kernels for a group of parameters. If an optimizer launches "
        "100 kernels, it updates one tensor at a time. On a CPU, this is the default of optimizers, so they are "
        "reported only if they also take 5 % of the step.",
        source="https://docs.pytorch.org/docs/stable/optim.html#algorithms",
        check=optimizer_not_fused,
        say=_say_optimizer,
        precedence=0,
    ),
    Rule(
        "recompilation",
        "idle time in steady steps in which torch.compile compiles code",
        threshold=0.02,
        unit=OF_THE_STEP,
        reason="Once a step is compiled, it does not need to be compiled again.",
        source="https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html",
        check=compiling,
        say=_say_compiling,
        precedence=0,
    ),
    Rule(
        "graph_breaks",
        "idle time between the compiled regions of a step",
        threshold=0.05,
        unit=OF_THE_STEP,
        reason="If this time is less than 5 % of a step, removing graph breaks saves little.",
        source="https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html",
        check=graph_breaks,
        say=_say_breaks,
        precedence=1,
        confidence="medium",
    ),
    Rule(
        "launch_bound",
        "idle time in which the host runs operators and launches their work",
        threshold=0.10,
        unit=OF_THE_STEP,
        reason="Every step begins and ends with a few idle microseconds, which are less than a tenth of the step. Time added by "
        "recording Python functions (3 µs per operator and runtime call, 1.2 µs per Python function) is excluded.",
        source="https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",
        check=launch_bound,
        say=_say_launch_bound,
        precedence=3,
        needs=needs_device,
    ),
    Rule(
        "python_overhead",
        "idle time in which Python runs between operators, for less than 0.1 ms each time",
        threshold=_MUCH_PYTHON,
        unit=OF_THE_STEP,
        reason="Every step runs a little Python between operators; normally, this takes less than a tenth of the step.",
        source=_GUIDE,
        check=python_overhead,
        say=_say_python,
        precedence=3,
        needs=needs_device,
        confidence="medium",
    ),
)
