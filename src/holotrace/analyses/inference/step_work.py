"""Find the device work of each step, the operators that launched it, and whether compute or memory bounds the work."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import intervals_of
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.device.devices import devices_of_rank
from holotrace.enrich.device.floors import Peaks, peaks_of, with_floors
from holotrace.enrich.device.launches import asked_for, launches, of_work
from holotrace.enrich.device.peaks import device_named
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import gathered
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.inference.work_families import is_of_family
from holotrace.enrich.operator_costs.costed_calls import CostedCalls, costed_calls, owners_of_work
from holotrace.enrich.steps.steps import rows_of_windows
from holotrace.schema import EventKind, KernelKind
from holotrace.store.trace import RankTrace

_BEFORE_ALL = np.iinfo(np.int64).min
_DRAFT = r"(?i)^(gpu_model_runner: )?draft$"
"""Matches the name of the range in which vLLM runs the draft model.

Source: https://github.com/vllm-project/vllm/blob/main/vllm/v1/worker/gpu_model_runner.py
"""


class StepWork(NamedTuple):
    """The device work of a rank.

    work             one row per kernel, copy or memset, sorted by start:

        event_index, start_ns, end_ns, kernel_kind
        launch_start_ns  null if unknown
        asked_ns         when the host requested the work; the smallest int64 if this was before the recording
        row              row of the step in `steps`; -1 if the work belongs to no step
        bound            compute or memory; null if unknown
        is_attention, is_moe, is_draft
        owner            row of the operator call in `call_stacks`; -1 if unknown
        flops            FLOPs of the operator call; null if unknown
        reason           why the cost of the operator call is unknown; empty if known

    is_known_device  whether the peak rates of the device are known
    device_name      null if the file does not name the device
    """

    work: pl.DataFrame
    is_known_device: bool
    device_name: str | None


def work_of_steps(rank_trace: RankTrace, steps: pl.DataFrame, device: str | None) -> StepWork:
    """Return the device work of a rank, with the step in which the host launches it.

    Args:
        rank_trace: the rank.
        steps: start_ns and until_ns, sorted by start.
        device: name of the device, if it differs from the recorded one.
    """
    work = device_work(rank_trace)
    asked = of_work(asked_for(rank_trace), work)["asked_ns"].fill_null(_BEFORE_ALL).to_numpy()
    rows = rows_of_windows(steps.select("start_ns", end_ns="until_ns"), asked)
    owners = owners_of_work(rank_trace, work)
    costed, name = costed_calls(rank_trace), _device_name(rank_trace, device)
    peaks = peaks_of(device_named(name), _operators(costed))
    operators = gathered(call_stacks(rank_trace)["name"], owners)
    families = {
        f"is_{family}": is_of_family(rank_trace, family, work["name"], operators) for family in ("attention", "moe")
    }
    table = work.select("event_index", "start_ns", "end_ns", "kernel_kind").with_columns(
        of_work(launches(rank_trace), work)["launch_start_ns"],
        pl.Series("asked_ns", asked),
        pl.Series("row", rows),
        pl.Series("owner", owners),
        *(pl.Series(column, values) for column, values in families.items()),
        pl.Series("is_draft", _in_draft(rank_trace, asked)),
    )
    costs = _costs(costed, peaks)
    return StepWork(table.join(costs, on="owner", how="left", maintain_order="left"), not peaks.is_attained, name)


def _device_name(rank_trace: RankTrace, given: str | None) -> str | None:
    names = devices_of_rank(rank_trace)["device_name"].unique().to_list()
    return given if given is not None else names[0] if len(names) == 1 else None


def _operators(costed: CostedCalls) -> pl.DataFrame:
    """Return `CostedCalls.keys` with a call count of 1 in each row, so that each computed cost is that of one call."""
    return costed.keys.with_columns(call_count=pl.lit(1, pl.Int64), busy_ns=pl.lit(0, pl.Int64))


def _costs(costed: CostedCalls, peaks: Peaks) -> pl.DataFrame:
    """Return owner, flops, reason and bound of each operator call.

    The bound is null if the peak rates are unknown or the call was faster than its computed lower bound.
    """
    bounded = with_floors(_operators(costed), peaks).select("flops", "bound", "floor_ns", "reason")
    keys = bounded.with_columns(pl.int_range(pl.len(), dtype=pl.UInt32).alias("key"))
    calls = costed.calls.join(keys, on="key", how="left", maintain_order="left")
    known = pl.lit(not peaks.is_attained) & (pl.col("floor_ns") <= pl.col("busy_ns"))
    return calls.select("flops", "reason", owner="row", bound=pl.when(known).then("bound"))


def _in_draft(rank_trace: RankTrace, asked_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return, for each time at which the host requested work, whether the time is inside a range of the draft model."""
    names = names_matching(rank_trace, _DRAFT)
    kinds = (EventKind.USER_ANNOTATION, EventKind.CPU_OP)
    ranges = event_ranges(rank_trace, kinds, ["start_ns", "end_ns"], names=names).sort("start_ns")
    inside: npt.NDArray[np.bool_] = rows_of_windows(ranges, asked_ns) >= 0
    return inside


def layers_of(work: pl.DataFrame) -> dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return, for each part of a step (`holotrace.analyses.inference.parts`), the intervals in which its work runs."""
    kind, bound = pl.col("kernel_kind"), pl.col("bound")
    is_copy, is_communication = kind == KernelKind.MEMORY, kind == KernelKind.COMMUNICATION
    computes = ~is_copy & ~is_communication
    chosen = {
        "compute_bound_ns": computes & (bound == "compute").fill_null(value=False),
        "memory_bound_ns": computes & (bound == "memory").fill_null(value=False),
        "unknown_bound_ns": computes & bound.is_null(),
        "copying_ns": is_copy,
        "exposed_ns": is_communication,
    }
    of_part = {part: work.filter(condition) for part, condition in chosen.items()}
    return {part: intervals_of(rows) for part, rows in of_part.items()}
