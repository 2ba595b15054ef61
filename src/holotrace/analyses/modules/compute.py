"""Which modules of the model take the time, forward and backward?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import polars as pl

from holotrace.algorithms.summary import sum_or_null
from holotrace.enrich.attribution import Attribution
from holotrace.enrich.compat import Compat, attribution_of
from holotrace.enrich.device.device_work import device_rows, missing_device_work
from holotrace.enrich.host.module_times import MODULE_TIMES, SUMMED_TIMES
from holotrace.enrich.host.modules import backward_passes
from holotrace.enrich.job.findings import joined_findings
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

_DEVICE = ("device_total_ns", "device_self_ns", "backward_device_total_ns", "backward_device_self_ns")
_PER_MODULE = {"rank": pl.Int32(), **MODULE_TIMES}


@dataclass(frozen=True, eq=False, repr=False)
class Modules(Result):
    """The time of a model's modules.

    per_module       one row per rank and module path, sorted by rank; modules come after their parent, and siblings are in the
                     order of their first calls:

        rank                      int32
        path                      str    names from the outermost module to this module, joined by ` > `
        module                    str    class and instance, for example `Linear_3`
        module_id                 int64  number of the instance; null if not recorded
        depth                     int32  number of enclosing modules
        call_count                int64
        operator_call_count       int64  operators that the module calls directly, not inside another operator or module
        host_total_ns             int64  summed over the calls
        host_self_ns              int64  time in Python, outside operators, annotations, runtime calls and inner modules
        device_total_ns           int64  summed durations of kernels, copies and memsets launched inside, even if they overlap
        device_self_ns            int64  part of device_total_ns in work launched outside inner modules
        backward_host_total_ns    int64  time of the backward operators of all operators called inside the module
        backward_host_self_ns     int64  the same, but without operators called inside inner modules
        backward_device_total_ns  int64  summed durations of device work launched by these backward operators
        backward_device_self_ns   int64  the same, but without operators called inside inner modules

    lightning_hooks  the same columns for PyTorch Lightning's hooks, for example `run_training_batch`

    findings         missing data

    Device columns are null on ranks without device work. Backward columns are null on ranks whose backward pass is not linked
    to the forward pass.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> place = {"ph": "X", "cat": "python_function", "pid": 1000, "tid": 1}
    >>> trace = TraceBuilder().event(name="nn.Module: Linear_0", ts=0, dur=30, **place)
    >>> trace = trace.kernel("gemm", start_us=40, duration_us=9, launch_us=5).build()
    >>> holotrace.modules(trace).answer
    '100.0 % of the device self time (9 µs) goes into Linear_0, more than into any other module.'
    """

    per_module: pl.DataFrame
    lightning_hooks: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_module: pl.DataFrame
    lightning_hooks: pl.DataFrame
    findings: tuple[str, ...]


def modules(trace: Trace, *, compat: Compat | None = None, executor: Executor = IN_PROCESS) -> Modules:
    """Sum the time of every module by its path in the model, including the backward pass of its operators.

    Modules are recorded if `with_stack=True`; PyTorch Lightning's profiler instead records them as ranges `[pl][module]`. A
    backward operator counts toward the module of its forward operator; the profiler's arrows or sequence numbers link the
    two operators.

    Args:
        trace: the job.
        compat: "torch_tb_profiler" lists modules as the last version of the TensorBoard plugin did. If one
            module calls another twice, the called module has two rows below its caller. Each row shows the totals over
            all calls of the module, without backward times.
        executor: processes each rank.

    Source: docs/reference/analyses/modules.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> place = {"ph": "X", "cat": "python_function", "pid": 1000, "tid": 1}
    >>> trace = TraceBuilder().event(name="nn.Module: Linear_0", ts=0, dur=30, **place)
    >>> trace = trace.kernel("gemm", start_us=40, duration_us=9, launch_us=5).build()
    >>> holotrace.modules(trace).per_module.select("path", "call_count", "host_total_ns", "device_total_ns").rows()
    [('Linear_0', 1, 30000, 9000)]
    """
    return plan(compat=compat).run(trace, executor)


def plan(*, compat: Compat | None = None) -> Plan[_Partial, Modules]:
    """Return the two functions of `modules`: one runs on each rank, the other combines the results of the ranks."""
    return Plan(partial(_one_rank, attribution=attribution_of(compat)), _combine)


def _combine(partials: dict[int, _Partial]) -> Modules:
    return Modules(
        pl.concat([of_rank.per_module for of_rank in partials.values()]),
        pl.concat([of_rank.lightning_hooks for of_rank in partials.values()]),
        joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()}),
    )


def summed_modules(table: pl.DataFrame) -> pl.DataFrame:
    """Return `per_module` or `lightning_hooks` summed over the ranks; paths are in order of first occurrence."""
    keys = ["path", "module", "module_id", "depth"]
    return table.group_by(keys, maintain_order=True).agg(pl.col("call_count").sum(), *map(sum_or_null, SUMMED_TIMES))


def _one_rank(rank_trace: RankTrace, *, attribution: Attribution) -> _Partial:
    per_module, hooks = (_in_columns(rank_trace, table) for table in attribution.module_times(rank_trace))
    return _Partial(
        per_module,
        hooks,
        attribution.shown_findings((*_findings(rank_trace, per_module), *attribution.graph_findings(rank_trace))),
    )


def _in_columns(rank_trace: RankTrace, table: pl.DataFrame) -> pl.DataFrame:
    """Order the columns and, if no device work was recorded, set the device columns to null."""
    if device_rows(rank_trace).is_empty():
        table = table.with_columns(pl.lit(None, pl.Int64).alias(name) for name in _DEVICE)
    rank = pl.lit(rank_trace.rank, pl.Int32).alias("rank")
    return table.with_columns(rank).select(pl.col(name).cast(kind) for name, kind in _PER_MODULE.items())


def _findings(rank_trace: RankTrace, per_module: pl.DataFrame) -> tuple[str, ...]:
    if per_module.is_empty():
        return ("no module calls were recorded; record with with_stack=True",)
    sentences = (
        (
            device_rows(rank_trace).is_empty(),
            missing_device_work(rank_trace),
        ),
        (
            backward_passes(rank_trace).is_empty(),
            "no backward operator is linked to a forward operator, so backward times are unknown",
        ),
    )
    return tuple(sentence for is_so, sentence in sentences if is_so)
