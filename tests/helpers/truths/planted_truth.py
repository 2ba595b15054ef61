"""Compares the causes of waiting found by `wait_causes` with the causes planted in a simulated job."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import polars as pl

import holotrace
from holotrace.enrich.across_ranks.job_calls import job_calls
from holotrace.enrich.across_ranks.matching.calls import of_rank
from holotrace.testing.planted.job import PlantedJob
from holotrace.testing.planted.options import Cause, PlantedOptions
from holotrace.testing.planted.programs import FORWARD_KERNEL, SLEEP, SLOW_KERNEL, SLOW_OPERATOR

_ON_HOST = ("operator", "python", "host_idle", "synchronisation", "launch_delay")


LEAST_ERROR = 0.01
LEAST_ERROR_NS = 100_000
"""Tolerance added to the errors: a fraction of the planted cause's cost, and a fixed time.

The checks need it because the analysis always attributes a few microseconds of a planted cause's host time to other
causes.
"""


class Named(NamedTuple):
    """A planted cause, its true cost, and the cost that `wait_causes` found.

    planted_ns    how long the other ranks wait because of the cause: the difference from a simulation without it
    charged_ns    the cost of the cause by definition, computed from the simulation
    named_ns      the cost of the cause in `wait_causes`
    printed_ns    the error that `wait_causes` states for `named_ns`
    unsure_ns     sum of: costs whose cause is unknown, the errors of these costs, and waiting that was not recorded
    place         position among its rank's causes: 1 for the largest, 2 for the next, and so on; 0 if it was not found
    """

    cause: Cause
    planted_ns: int
    charged_ns: int
    named_ns: int
    printed_ns: int
    unsure_ns: int
    place: int

    @property
    def is_right(self) -> bool:
        """Whether `named_ns` and `charged_ns` differ by no more than the errors plus the tolerance."""
        error_ns = self.printed_ns + self.unsure_ns + LEAST_ERROR * self.charged_ns + LEAST_ERROR_NS
        return abs(self.named_ns - self.charged_ns) <= error_ns


class Comparison(NamedTuple):
    """A job with planted causes.

    summed_ns    the sum of all costs in `wait_causes`
    unknown_ns   the part of `summed_ns` with an unknown cause
    recorded_ns  total waiting time that the recording contains
    waited_ns    total waiting time in the simulated job, whether recorded or not
    """

    options: PlantedOptions
    causes: list[Named]
    summed_ns: int
    unknown_ns: int
    recorded_ns: int
    waited_ns: int


def compared(options: PlantedOptions) -> Comparison:
    """Simulate a job; compare `wait_causes` with the truth."""
    job = PlantedJob(options)
    with tempfile.TemporaryDirectory() as folder:
        trace = holotrace.open_trace(job.write(Path(folder)), cache=False)
        costs = holotrace.wait_causes(trace).per_cause
        calls = job_calls(trace.map(of_rank)).calls
    summed_ns, recorded_ns = (int(total or 0) for total in (costs["cost_ns"].sum(), calls["wait_ns"].sum()))
    unknown = costs.filter(pl.col("cause") == "unknown").select(pl.col("cost_ns", "error_ns").sum())
    unknown_ns, unknown_error_ns = (int(total) for total in unknown.row(0))
    unsure_ns = unknown_ns + unknown_error_ns + abs(int(job.waited_ns.sum()) - recorded_ns)
    causes = [_named(job, number, costs, unsure_ns) for number in range(len(options.causes))]
    return Comparison(options, causes, summed_ns, unknown_ns, recorded_ns, int(job.waited_ns.sum()))


def _named(job: PlantedJob, number: int, costs: pl.DataFrame, unsure_ns: int) -> Named:
    truth = job.causes[number]
    named = costs.filter(is_named(job.options, truth.cause))
    return Named(
        truth.cause,
        truth.others_ns,
        charged_ns(job, truth.cause),
        int(named["cost_ns"].sum()),
        int(named["error_ns"].sum()),
        unsure_ns,
        _place(costs, truth.cause, job.options),
    )


def is_named(options: PlantedOptions, cause: Cause) -> pl.Expr:
    """Return an expression that is true for the rows of `per_cause` that name the planted cause."""
    kind, name, frame = pl.col("cause").cast(pl.String), pl.col("name").fill_null(""), pl.col("frame").fill_null("")
    on_device = options.backend == "nccl"
    sleeps = (kind == "python") & name.str.contains("sleep") & frame.str.contains("augment")
    in_step = (kind == "python") & frame.str.contains("train_step")
    named = {
        "slow_kernel": (kind == "computation") & name.str.contains("index_put_with_sort_kernel", literal=True)
        if on_device
        else (kind == "operator") & (name == SLOW_OPERATOR),
        "slow_microbatch": (kind == "computation") & name.str.starts_with(FORWARD_KERNEL)
        if on_device
        else (kind == "operator") & (name == "aten::addmm"),
        "slow_loading": kind == "data_loading",
        "garbage_collection": kind == "garbage_collection",
        "python_function": sleeps if options.has_stacks else kind == "host_idle",
        "host_gap": in_step if options.has_stacks else kind == "host_idle",
        "late_start": kind == "launch_delay",
        "slow_host": kind.is_in(_ON_HOST),
    }
    return (pl.col("cause_rank") == cause.rank) & named[cause.kind]


def charged_ns(job: PlantedJob, cause: Cause) -> int:
    """Return the sum of the job's delay costs that a planted cause accounts for, over all steps."""
    return round(
        sum(
            cost_ns
            for (rank, activity), cost_ns in job.delay_costs.items()
            if rank == cause.rank and _is_activity(job.options, cause, *activity[:2])
        )
    )


def _is_activity(options: PlantedOptions, cause: Cause, kind: str, name: str) -> bool:
    on_device = options.backend == "nccl"
    in_step = name == "train.py(61): train_step" if options.has_stacks else name.startswith("ProfilerStep#")
    return {
        "slow_kernel": name == (SLOW_KERNEL if on_device else SLOW_OPERATOR),
        "slow_microbatch": name == (FORWARD_KERNEL if on_device else "aten::addmm"),
        "slow_loading": name == "aten::stack",
        "garbage_collection": name == "Python GC",
        "python_function": name == SLEEP if options.has_stacks else in_step,
        "host_gap": in_step,
        "late_start": kind == "launch",
        "slow_host": kind in ("cpu_op", "user_annotation", "python_function", "launch", "nothing"),
    }[cause.kind]


def _place(costs: pl.DataFrame, cause: Cause, options: PlantedOptions) -> int:
    own = costs.filter(pl.col("cause_rank") == cause.rank).group_by("cause", "name", "frame", "cause_rank")
    ordered = own.agg(pl.col("cost_ns").sum()).sort("cost_ns", descending=True).with_row_index("place", offset=1)
    return int(ordered.filter(is_named(options, cause))["place"].min() or 0)
