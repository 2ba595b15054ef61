"""How far is each operator from the limits of the device?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import polars as pl

from holotrace.analyses.roofline.findings import findings_of
from holotrace.analyses.roofline.modules import layers_without_operators
from holotrace.analyses.roofline.operators import COSTS, KEYS, over, summed_operators
from holotrace.analyses.roofline.steps import per_step
from holotrace.enrich.device.device_work import device_rows, no_device_work
from holotrace.enrich.device.devices import devices_of_rank
from holotrace.enrich.device.floors import MEMORY, Peaks, attained_rates, peaks_of, with_floors
from holotrace.enrich.device.peaks import Device, device_named
from holotrace.enrich.graph_attribution.findings import graph_findings
from holotrace.enrich.job.one_job import cut_off_text
from holotrace.enrich.operator_costs.costed_calls import costed_calls
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

_COLUMNS = (
    *("rank", *KEYS, "call_count", "busy_ns", "work", "precision", "flops", "bytes_moved", "dense_flops"),
    *("flops_per_s", "moved_bytes_per_s", "flops_per_byte", "bound", "floor_ns", "roofline_fraction", "gap_ns"),
    *("uses_tensor_cores", "reason", "contradiction"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Roofline(Result):
    """The operators of each rank, compared with the peak rates of the device.

    per_operator   one row per rank, operator, phase, inputs and cost, sorted by rank, the largest gap_ns first:

        rank               int32
        operator           str      the operator whose costs include the work; null if unknown
        phase              str      forward, backward, recompute or optimizer; null if unknown
        input_shape        str      JSON, such as `[[32, 64], []]`; null if not recorded
        input_type         str      JSON: element types
        input_values       str      JSON: the scalar arguments, each as a string
        call_count         int64
        busy_ns            int64    total running time of the work of all calls
        work               str      matrix: tensor cores could do the work; vector: only ordinary cores can; copy: no arithmetic;
                                    null if unknown
        precision          str      the precision in which the kernel computes: bfloat16, tf32, …; null if unknown
        flops              int64    FLOPs of one call; null if unknown
        bytes_moved        int64    lower bound of the bytes that one call reads and writes; null if unknown
        dense_flops        int64    FLOPs of matrix products alone, ignoring bias and mask, as FlopCounterMode does
        flops_per_s        float64
        moved_bytes_per_s  float64
        flops_per_byte     float64  intensity
        bound              str      compute or memory, whichever takes longer at peak rates; null if bytes_moved is
                                    unknown, or if the operator is a matrix product and its flops are unknown
        floor_ns           int64    lower bound of busy_ns at the peak rates of the device
        roofline_fraction  float64  floor_ns / busy_ns; above 1 only if `contradiction` is not null
        gap_ns             int64    busy_ns - floor_ns
        uses_tensor_cores  bool     whether a kernel ran on tensor or matrix cores; null if kernel names do not show it
        reason             str      why flops or bytes are unknown; empty if both are known
        contradiction      str      why floor_ns exceeds busy_ns; null if it does not

    per_module   one row per rank, module and phase, sorted by rank, largest gap_ns first; empty without known modules:

        rank, module, phase  the innermost nn.Module, such as Linear_3; backward work counts toward the module of its
                             forward operator. phase is null for kernels with an inferred layer, but no known operator
        call_count           int64
        busy_ns, floor_ns, gap_ns, covered_fraction  as in per_rank

    per_step   one row per rank and step; a rank without steps has one row, in which step is null:

        rank            int32
        step            int64
        step_ns         int64    length of the step, including the device work that the step launched
        model_flops     int64    FLOPs of matrix products, excluding recomputed ones
        hardware_flops  int64    FLOPs of matrix products, including recomputed ones
        dense_flops     int64    like hardware_flops, but ignoring bias and mask, as FlopCounterMode does
        mfu_fraction    float64  0..1, share of the step that model_flops would take at peak rate; null if a peak is unknown
        hfu_fraction    float64  0..1, share of the step that hardware_flops would take at peak rate; null if a peak is unknown
        covered_fraction  float64  0..1, share of the step's operator time that goes into operators of known cost

    per_rank   one row per rank:

        rank, device_name      as recorded, or the device given as an option
        busy_ns                int64    sum over the operators
        covered_fraction       float64  0..1, share of busy_ns in operators with known bytes or FLOPs
        floor_ns               int64    sum of the lower bounds of all operators that have one
        gap_ns                 int64    busy_ns of these operators - floor_ns
        contradicted_ns        int64    busy_ns of operators whose floor_ns exceeds their busy_ns
        without_tensor_cores_ns  int64  busy_ns of matrix products that ran on ordinary cores but could use tensor cores
        earlier_ns             int64    time of work launched before the recording; not part of per_operator

    peaks      the rates from which the lower bounds are computed, one row per rank and resource:

        rank       int32
        resource   str      a precision, or memory
        is_matrix  bool     whether this is the rate of tensor or matrix cores
        peak_flops_per_s  float64  null for memory
        peak_bytes_per_s  float64  null except for memory
        attainable_flops_per_s  float64  the best rate that the vendor measured for matrix products; null if unpublished
        attained_flops_per_s    float64  best rate of matrix products in this trace; null if each took less than 10 µs
        attained_bytes_per_s    float64  best memory rate in this trace, among calls that move more than twice the cache size
        source     str      data sheet with its date, or "attained in this trace"

    findings   the share of time with known costs on each rank, contradictions, unknown devices, and missing data

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.roofline(small_job()).answer
    'No operator is above a known lower bound; costs are known for 80.0 % of the time.'
    """

    per_operator: pl.DataFrame
    per_module: pl.DataFrame
    per_step: pl.DataFrame
    per_rank: pl.DataFrame
    peaks: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_operator: pl.DataFrame
    per_module: pl.DataFrame
    per_step: pl.DataFrame
    per_rank: pl.DataFrame
    peaks: pl.DataFrame
    findings: tuple[str, ...]


def roofline(trace: Trace, *, device: str | None = None, executor: Executor = IN_PROCESS) -> Roofline:
    """Compare the time of each operator with the least time that its work could take on the device.

    FLOPs and bytes are computed from the recorded shapes by the rules in `holotrace.enrich.operator_costs.rules`; the peak
    rates are looked up by device name in the table in `holotrace.enrich.device.peaks`.

    Args:
        trace: the job.
        device: full name of a device in the device table, for files with a missing or wrong device name.
        executor: processes each rank.

    Raises:
        InvalidOptionError: the device table does not contain `device`.
        MissingDataError: the files of all ranks are cut off before any device work.

    Source: docs/reference/analyses/roofline.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.roofline(small_job()).per_operator.select("operator", "call_count", "busy_ns").row(0)
    ('aten::mm', 2, 600000)
    """
    return plan(device=device).run(trace, executor)


def plan(*, device: str | None = None) -> Plan[_Partial, Roofline]:
    """Return the two functions of `roofline`: one runs on each rank, the other combines the results of the ranks."""
    if device is not None and device_named(device) is None:
        message = f"roofline: the device table does not contain {device!r}; add it with add_device"
        raise InvalidOptionError(message)
    return Plan(partial(_one_rank, device=device), _combine)


def _one_rank(rank_trace: RankTrace, *, device: str | None) -> _Partial:
    if device_rows(rank_trace).is_empty() and cut_off_text(rank_trace):
        # The operators may have launched kernels that the cut-off file lacks; do not assume that they ran on the CPU.
        raise no_device_work(rank_trace, "roofline")
    rank = pl.lit(rank_trace.rank, pl.Int32).alias("rank")
    name, known = _device(rank_trace, device)
    per_module = summed_operators(rank_trace)
    operators = over(per_module, *KEYS)
    peaks = peaks_of(known, operators)
    bounded = with_floors(operators, peaks).with_columns(rank, uses_tensor_cores=_uses_tensor_cores())
    per_operator = bounded.select(_COLUMNS).sort(
        "gap_ns", "busy_ns", *KEYS, *COSTS[:4], descending=[True, True] + [False] * (len(KEYS) + 4), nulls_last=True
    )
    costed = costed_calls(rank_trace)
    totals = _totals(per_operator).select(
        rank, pl.lit(name, pl.String).alias("device_name"), pl.all(), earlier_ns=pl.lit(costed.earlier_ns, pl.Int64)
    )
    steps = per_step(rank_trace, costed, peaks).select(rank, pl.all())
    found = findings_of(per_operator, steps, totals.row(0, named=True), peaks, on_device=costed.on_device)
    of_graphs = tuple(f"rank {rank_trace.rank}: {sentence}" for sentence in graph_findings(rank_trace))
    return _Partial(
        per_operator,
        _per_module(with_floors(per_module.drop_nulls("module"), peaks), layers_without_operators(rank_trace)).select(
            rank, pl.all()
        ),
        steps,
        totals,
        _shown_peaks(peaks, known, operators).select(rank, pl.all()),
        (*found, *of_graphs),
    )


def _per_module(operators: pl.DataFrame, layers: pl.DataFrame) -> pl.DataFrame:
    sums = (
        pl.concat([operators, layers], how="diagonal")
        .group_by("module", "phase")
        .agg(pl.col("call_count").sum(), pl.col("busy_ns").sum(), _covered(), pl.col("floor_ns", "gap_ns").sum())
    )
    return sums.sort("gap_ns", "module", "phase", descending=[True, False, False], nulls_last=True)


def _covered() -> pl.Expr:
    busy, is_known = pl.col("busy_ns"), pl.col("bytes_moved").is_not_null() | pl.col("flops").is_not_null()
    return pl.when(busy.sum() > 0).then(busy.filter(is_known).sum() / busy.sum()).alias("covered_fraction")


def _shown_peaks(peaks: Peaks, device: Device | None, operators: pl.DataFrame) -> pl.DataFrame:
    is_memory = pl.col("resource") == MEMORY
    attained = attained_rates(operators, peaks.cache_bytes).select("resource", "is_matrix", attained="peak")
    table = peaks.table.join(attained, on=["resource", "is_matrix"], how="left", maintain_order="left")
    attainable = [
        device.attainable_flops_per_s(resource) if device is not None and is_matrix else None
        for resource, is_matrix in table.select("resource", "is_matrix").iter_rows()
    ]
    return table.select(
        "resource",
        "is_matrix",
        peak_flops_per_s=pl.when(~is_memory).then("peak"),
        peak_bytes_per_s=pl.when(is_memory).then("peak"),
        attainable_flops_per_s=pl.Series(attainable, dtype=pl.Float64),
        attained_flops_per_s=pl.when(~is_memory).then("attained"),
        attained_bytes_per_s=pl.when(is_memory).then("attained"),
        source="source",
    )


def _device(rank_trace: RankTrace, given: str | None) -> tuple[str | None, Device | None]:
    """Return the name and the rates of a rank's device; None if unknown, or if the rank has several kinds of devices."""
    names = [given] if given is not None else devices_of_rank(rank_trace)["device_name"].unique().to_list()
    name = names[0] if len(names) == 1 else None
    return name, device_named(name)


def _uses_tensor_cores() -> pl.Expr:
    on_tensor, on_other = pl.col("tensor_core_ns"), pl.col("other_core_ns")
    return (
        pl.when(on_tensor > 0)
        .then(pl.lit(value=True))
        .when((on_other > 0) & (on_other >= pl.col("busy_ns")))
        .then(pl.lit(value=False))
    )


def _totals(per_operator: pl.DataFrame) -> pl.DataFrame:
    busy = pl.col("busy_ns")
    without = (pl.col("work") == "matrix") & (pl.col("uses_tensor_cores") == pl.lit(value=False))
    return per_operator.select(
        busy.sum(),
        _covered(),
        floor_ns=pl.col("floor_ns").sum(),
        gap_ns=pl.col("gap_ns").sum(),
        contradicted_ns=busy.filter(pl.col("contradiction").is_not_null()).sum(),
        without_tensor_cores_ns=busy.filter(without.fill_null(value=False)).sum(),
    )


def _combine(partials: dict[int, _Partial]) -> Roofline:
    return Roofline(
        pl.concat([of_rank.per_operator for of_rank in partials.values()]),
        pl.concat([of_rank.per_module for of_rank in partials.values()]),
        pl.concat([of_rank.per_step for of_rank in partials.values()]),
        pl.concat([of_rank.per_rank for of_rank in partials.values()]),
        pl.concat([of_rank.peaks for of_rank in partials.values()]),
        tuple(finding for of_rank in partials.values() for finding in of_rank.findings),
    )
