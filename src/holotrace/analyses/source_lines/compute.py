"""Which lines of my code take the time, on the host and on the devices?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import polars as pl

from holotrace.analyses.source_lines.excess import EXCESS, RankTimes, excess
from holotrace.analyses.source_lines.line_sums import CALLEE_SUMS, LINE_SUMS, line_sums
from holotrace.enrich.host.source_lines import has_source_lines, records_python
from holotrace.enrich.job.findings import joined_findings
from holotrace.enrich.job.rank_tables import typed
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace
from holotrace.units import percent_text

_LINE = {"rank": pl.Int32, "file": pl.String, "line": pl.Int64, "function": pl.String}
_PER_LINE = {**_LINE, **LINE_SUMS, "callees": pl.String, "step_fraction": pl.Float64}
_PER_CALLEE = {**_LINE, "callee": pl.String, **CALLEE_SUMS}
_NOT_RECORDED = "no Python functions were recorded; record with with_stack=True to see which lines take the time"
_ONLY_OPERATORS = "only operators have call stacks, so time outside operators has no line"


@dataclass(frozen=True, eq=False, repr=False)
class SourceLines(Result):
    """The time of each line of the user's code, on the host and on the devices.

    A thread's time counts toward the innermost function on its stack that belongs to the user's Python code. PyTorch
    records only the first line of each function, so this line represents the function. Time and work whose
    line is unknown are in a row with null as file, line and function.

    per_line   one row per rank and line, sorted by rank, the longest host_self_ns first:

        rank                     int32
        file                     str      as recorded: without the folders of `sys.path`
        line                     int64    first line of the function; for a generator, the line at which it resumed
        function                 str
        call_count               int64    calls of the function; null if only operators have stacks
        host_self_ns             int64    time in which the line is the innermost user line of a thread, summed over the threads;
                                          the rows of a rank add up to the recorded time of its threads
        host_python_ns           int64    part of host_self_ns outside operators, runtime calls and waits: Python and built-in
                                          functions
        host_blocked_ns             int64    part of host_self_ns in which the thread waits for a device, another rank or another
                                          thread, but not for a data loader
        backward_host_self_ns    int64    part of host_self_ns in the backward pass of operators that the line called
        host_total_ns            int64    from call to return; recursive calls count once; null if only
                                          operators have stacks
        device_self_ns           int64    summed durations, even if they overlap, of the kernels, copies and memsets launched
                                          while the line was the innermost user line, or in the backward pass of operators
                                          that the line called
        device_self_busy_ns      int64    time in which at least one of these kernels, copies or memsets runs
        backward_device_self_ns  int64    part of device_self_ns in the backward pass
        device_total_ns          int64    summed durations of the kernels, copies and memsets launched by the line or by functions
                                          that it called; null if only operators have stacks
        device_idle_ns           int64    time in which a device is idle while the thread that will launch the device's next work
                                          runs this line; excludes the time after the launch call has returned
        callees                  str      the three longest-running functions and operators that the line called, joined by `; `
        step_fraction            float64  0..1, share of the steps' time in which the line is the innermost user line of a thread

    per_callee  one row per rank, line and callee of the line, in the order of per_line:

        rank, file, line, function
        callee          str    operator, function or module that the line called directly; in the backward pass,
                               the outermost autograd function; null for time in the line itself
        call_count      int64  null if `callee` is null
        host_self_ns, host_blocked_ns, device_self_ns  int64  as above; the rows of a line add up to the line's times

    excess     callees that take longer on one rank than on the median rank, the largest excess first:

        rank, file, line, function, callee
        own_ns_per_step      int64  host_self_ns - host_blocked_ns in the steps, divided by the number of steps
        typical_ns_per_step  int64  own_ns_per_step of the median rank; if there are two middle ranks, the
                                    smaller of their values
        excess_ns_per_step   int64  own_ns_per_step - typical_ns_per_step, always positive
        excess_fraction      float64  excess_ns_per_step as a share of the rank's mean step

    findings   missing data, and device time without a line

    Device columns are null on ranks without device work.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> trace = TraceBuilder().python("train.py(3): main", start_us=0, duration_us=50)
    >>> trace = trace.python("<built-in function sleep>", start_us=10, duration_us=30).build()
    >>> holotrace.source_lines(trace).answer
    '100.0 % of the host time (50 µs) comes from train.py(3): main, more than from any other line.'
    """

    per_line: pl.DataFrame
    per_callee: pl.DataFrame
    excess: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_line: pl.DataFrame
    per_callee: pl.DataFrame
    times: RankTimes | None
    findings: tuple[str, ...]


def source_lines(
    trace: Trace, *, libraries: Sequence[str] | None = None, executor: Executor = IN_PROCESS
) -> SourceLines:
    """Divide host time and device time among the lines of the user's code.

    Frames of PyTorch, installed libraries, generated files and Python itself are not user code, and neither are built-in
    functions and modules; see `holotrace.enrich.host.frames`. Work of the backward pass counts toward the line of the
    forward operator.

    Args:
        trace: the job, recorded with `with_stack=True`.
        libraries: files whose recorded names begin with one of these texts, such as `mylib`, are not user code either.
        executor: processes each rank.

    Source: docs/reference/analyses/source_lines.md explains the definitions.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> trace = TraceBuilder().python("train.py(3): main", start_us=0, duration_us=50)
    >>> trace = trace.python("<built-in function sleep>", start_us=10, duration_us=30).build()
    >>> holotrace.source_lines(trace).per_line.select("file", "line", "function", "host_self_ns", "callees").rows()
    [('train.py', 3, 'main', 50000, '<built-in function sleep>')]
    """
    return plan(libraries=libraries).run(trace, executor)


def plan(*, libraries: Sequence[str] | None = None) -> Plan[_Partial, SourceLines]:
    """Return the two functions of `source_lines`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(partial(_one_rank, libraries=tuple(libraries or ())), _combine)


def _one_rank(rank_trace: RankTrace, *, libraries: tuple[str, ...]) -> _Partial:
    if not has_source_lines(rank_trace):
        return _Partial(pl.DataFrame(schema=_PER_LINE), pl.DataFrame(schema=_PER_CALLEE), None, (_NOT_RECORDED,))
    sums = line_sums(rank_trace, libraries)
    rank = pl.lit(rank_trace.rank, pl.Int32).alias("rank")
    per_line = typed(sums.per_line.with_columns(rank), _PER_LINE)
    per_callee = typed(sums.per_callee.with_columns(rank), _PER_CALLEE)
    return _Partial(per_line, per_callee, sums.times, tuple(_findings(rank_trace, per_line)))


def _findings(rank_trace: RankTrace, per_line: pl.DataFrame) -> Iterator[str]:
    if not records_python(rank_trace):
        yield _ONLY_OPERATORS
    of_all = int(per_line["device_self_ns"].sum())
    unknown = int(per_line.filter(pl.col("file").is_null())["device_self_ns"].sum())
    if unknown:
        yield f"{percent_text(unknown / of_all)} of the device time has no line, because no user code launched the work, or its launch is unknown"


def _combine(partials: dict[int, _Partial]) -> SourceLines:
    times = {rank: of_rank.times for rank, of_rank in partials.items() if of_rank.times is not None}
    return SourceLines(
        pl.concat([of_rank.per_line for of_rank in partials.values()]),
        pl.concat([of_rank.per_callee for of_rank in partials.values()]),
        typed(excess(times), EXCESS),
        joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()}),
    )
