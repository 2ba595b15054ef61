"""The rule about kernels that run one after the other on two streams, although they could run at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.intervals import Int64Array, Intervals, covered_length, union
from holotrace.analyses.diagnosis.evidence.kernel_evidence import with_launch_shapes
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, Place, RankCase, Rule, Said, in_line
from holotrace.analyses.diagnosis.rules.needs import needs_device
from holotrace.enrich.device.launches import runtime_calls
from holotrace.enrich.events.event_names import names_matching
from holotrace.schema import KernelKind
from holotrace.units import percent_text, times_text

_SOON_NS = 20_000
"""If a kernel starts more than this long after another kernel ended, it did not wait for that kernel."""
_READY_NS = 30_000
"""If a kernel was ready more than this long before another kernel ended, it was not waiting for the host or its own
stream."""
_CLOCK_NOISE_NS = 1_000
_OF_BEFORE = ("stream", "start_ns", "end_ns", "launch_start_ns", "last_use")
"""`_waits` adds these columns of a run to the row of the next run, which waits for it, with the suffix `_before`."""
_WAIT_CALL = r"(?i)stream_?wait_?event"


def streams_in_turn(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for kernels that wait for kernels of another stream, although both together do not fill the device.

    Suppose that one run of kernels fills the fraction a of the SMs, and another run the fraction b. If the two runs
    start together, both finish in the time of the longer run if a + b is at most 1, otherwise in (a + b) times this
    time. The recording rarely shows whether the kernels of one run need the results of the other run. If a call made a stream wait and the streams then take turns kernel by
    kernel, they probably need each other's results. The rule ignores such waits.
    """
    kernels = _kernels(evidence)
    if kernels.select("device", "stream").n_unique() == kernels["device"].n_unique():
        return
    waits = _with_use(kernels, _waits(_runs(kernels)))
    waits = _each_once(_without_chains(waits.with_columns(is_asked=_is_asked(evidence, waits))))
    if waits.is_empty():
        return
    explained = _explained(waits)
    length = max(1, covered_length(*explained))
    fraction = min(1.0, float(waits["saved_ns"].sum()) / length)
    first = waits.row(int(waits["saved_ns"].arg_max() or 0), named=True)
    words = {
        "count": waits.height / evidence.step_count,
        "streams": (first["stream"], first["stream_before"]),
        "uses": (first["use"], first["use_before"]),
        "is_asked": first["is_asked"],
        "confidence": "low" if waits["is_asked"].any() else "medium",
    }
    yield Case(
        explained,
        evidence.share(explained) * fraction,
        fraction,
        waits.height,
        place=_place(evidence, first),
        words=words,
    )


def _kernels(evidence: RankEvidence) -> pl.DataFrame:
    """Return the kernels that compute, sorted by device and start; `use` is the share of the SMs that a kernel fills.

    A kernel of unknown size is assumed to fill all SMs.
    """
    kernels = evidence.costed.filter(pl.col("kernel_kind") != KernelKind.MEMORY)
    shaped = with_launch_shapes(evidence.rank_trace, kernels)
    return shaped.with_columns(use=pl.col("blocks_per_sm").clip(0, 1).fill_null(1.0)).sort("device", "start_ns")


def _runs(kernels: pl.DataFrame) -> pl.DataFrame:
    """Return the runs, sorted by start: each run is a series of kernels on one stream, uninterrupted by other streams.

    Returns:
        run, device, stream, start_ns, end_ns
        event_index, kernel, launch_start_ns  of the first kernel
        ready_ns  when the first kernel had been launched and the previous kernels of its stream had ended
        first_use, last_use  share of the SMs that the first and the last kernel fill
        first_launch, last_launch  event_index of the calls that launched the first and the last kernel
    """
    ended_ns = pl.col("end_ns").cum_max().shift().over("device", "stream")
    numbered = kernels.with_columns(
        run=pl.struct("device", "stream").rle_id().cast(pl.Int64),
        ready_ns=pl.when(pl.col("launch_end_ns").is_not_null()).then(pl.max_horizontal("launch_end_ns", ended_ns)),
    )
    first = ("device", "stream", "start_ns", "event_index", "kernel", "launch_start_ns", "ready_ns")
    return numbered.group_by("run", maintain_order=True).agg(
        pl.col(first).first(),
        pl.col("end_ns").max(),
        pl.col("use").first().alias("first_use"),
        pl.col("use").last().alias("last_use"),
        pl.col("launch_index").first().alias("first_launch"),
        pl.col("launch_index").last().alias("last_launch"),
    )


def _waits(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs that wait for the previous run; `shared_ns` is how long the two runs could have overlapped."""
    before = {f"{name}_before": pl.col(name).shift().over("device") for name in _OF_BEFORE}
    paired = runs.with_columns(**before, launch_before=pl.col("last_launch").shift().over("device"))
    is_waiting = (
        (pl.col("start_ns") - pl.col("end_ns_before")).is_between(-_CLOCK_NOISE_NS, _SOON_NS)
        & (pl.col("ready_ns") <= pl.col("end_ns_before") - _READY_NS)
        & (pl.col("first_launch") != pl.col("launch_before"))
    )
    ready = pl.max_horizontal("start_ns_before", "ready_ns")
    shared = pl.min_horizontal(pl.col("end_ns") - pl.col("start_ns"), pl.col("end_ns_before") - ready)
    return paired.with_columns(shared_ns=shared).filter(is_waiting.fill_null(value=False))


def _with_use(kernels: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    """Add the columns `use`, `use_before` and `saved_ns`, and keep only waits whose removal saves time.

    The last `shared_ns` of the previous run could have overlapped with the first `shared_ns` of the waiting run.
    `use_before` and `use` are the mean shares of the SMs that kernels fill in these two periods. `saved_ns` is the time
    that the overlap would save.
    """
    parts = []
    for (device,), of_device in waits.group_by("device", maintain_order=True):
        on_device = kernels.filter(pl.col("device") == device)
        shared, begins, ends = (of_device[name].to_numpy() for name in ("shared_ns", "start_ns", "end_ns_before"))
        uses = {"use": _mean_use(on_device, begins, shared), "use_before": _mean_use(on_device, ends - shared, shared)}
        parts.append(of_device.with_columns(**{name: pl.Series(values) for name, values in uses.items()}))
    room = (2 - pl.col("use") - pl.col("use_before")).clip(0, 1)
    known = pl.concat(parts) if parts else waits.with_columns(use=pl.lit(1.0), use_before=pl.lit(1.0))
    return known.with_columns(saved_ns=pl.col("shared_ns") * room).filter(pl.col("saved_ns") > 0)


def _mean_use(kernels: pl.DataFrame, since_ns: Int64Array, length_ns: Int64Array) -> npt.NDArray[np.float64]:
    """Return the mean share of the SMs that the kernels fill in each period (given as a start and a length)."""
    times = np.concatenate([kernels["start_ns"].to_numpy(), kernels["end_ns"].to_numpy()])
    changes = np.concatenate([kernels["use"].to_numpy(), -kernels["use"].to_numpy()])
    order = np.argsort(times, kind="stable")
    times, level = times[order], np.cumsum(changes[order])
    used = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
    until, since = np.interp(since_ns + length_ns, times, used), np.interp(since_ns, times, used)
    mean: npt.NDArray[np.float64] = (until - since) / np.maximum(1, length_ns)
    return mean


def _is_asked(evidence: RankEvidence, waits: pl.DataFrame) -> pl.Series:
    """Return, for each wait, whether the host requested it after launching the first run and before the second.

    If no calls that make a stream wait were recorded, assume that the host requested all waits.
    """
    calls = _wait_calls(evidence)["start_ns"].sort()
    if calls.is_empty():
        return pl.Series([True] * waits.height, dtype=pl.Boolean)
    until, since = (np.searchsorted(calls, waits[name]) for name in ("launch_start_ns", "launch_start_ns_before"))
    return pl.Series(until > since)


def _wait_calls(evidence: RankEvidence) -> pl.DataFrame:
    """Return the calls that make a stream wait."""
    names = names_matching(evidence.rank_trace, _WAIT_CALL)
    return runtime_calls(evidence.rank_trace).filter(pl.col("name").is_in(names.implode()))


def _without_chains(waits: pl.DataFrame) -> pl.DataFrame:
    """Leave out waits between streams that keep taking turns although their kernels are small enough to overlap.

    Such streams probably pass results to each other. In contrast, a script that makes a stream wait too early usually
    does so only once, where parallel branches begin or end.
    """
    fits = pl.col("is_asked") & (pl.col("first_use") + pl.col("last_use_before") <= 1)
    turns = set(waits.filter(fits)["run"])
    chained = {run for run in turns if {run - 1, run + 1} & turns}
    beside = {run + offset for run in chained for offset in (-1, 0, 1)}
    return waits.filter(~pl.col("run").is_in(list(beside)))


def _each_once(waits: pl.DataFrame) -> pl.DataFrame:
    """Keep only waits that have no run in common.

    A run can belong to two waits: it may wait for the previous run, and the next run may wait for it. The waits
    are chosen in descending order of `saved_ns` times the sum of the shares of the SMs that each of the two runs leaves
    free.
    """
    used: set[int] = set()
    kept = []
    room = pl.col("saved_ns") * (2 - pl.col("use") - pl.col("use_before"))
    for row, run in waits.with_row_index("row").sort(room, descending=True).select("row", "run").iter_rows():
        if not {run, run - 1} & used:
            used |= {run, run - 1}
            kept.append(row)
    return waits[sorted(kept)]


def _explained(waits: pl.DataFrame) -> Intervals:
    """Return the parts of the runs that could have run at the same time.

    These are the end of the earlier run, and the start of the later run, which waits for the earlier run.
    """
    shared = waits["shared_ns"].to_numpy()
    ends, begins = waits["end_ns_before"].to_numpy(), waits["start_ns"].to_numpy()
    return union(np.concatenate([ends - shared, begins]), np.concatenate([ends, begins + shared]))


def _place(evidence: RankEvidence, wait: dict[str, Any]) -> Place:
    """Return the waiting kernel, and the line that made its stream wait or, if unknown, the line that launched it."""
    asked_ns = _wait_calls(evidence).filter(pl.col("start_ns") < wait["launch_start_ns"])["start_ns"].max()
    host = evidence.activity_at(asked_ns if isinstance(asked_ns, int) else wait["launch_start_ns"])
    return Place(host.get("module"), None, wait["kernel"], host.get("frame"), wait["event_index"], wait["start_ns"])


def _say(cases: Sequence[RankCase]) -> Said:
    case = cases[0]
    (waiting, before), (use, use_before) = case.words["streams"], case.words["uses"]
    turns = f"kernels on stream {waiting} wait for kernels on stream {before} ({times_text(round(case.words['count']))} per step)"
    room = f"they fill only {percent_text(use)} and {percent_text(use_before)} of the SMs{in_line(case.place)}"
    if case.words["is_asked"]:
        return Said(
            f"{turns}, although {room}; the trace does not show whether they need each other's results",
            "If the kernels are independent, launch both first, and call wait_stream or wait_event right before the result is "
            "used, so that they run at once. Otherwise, use a single stream.",
        )
    return Said(
        f"{turns}, although no call made them wait and {room}",
        "Set CUDA_DEVICE_MAX_CONNECTIONS higher if it is 1, and keep kernels off the legacy default stream, which waits for all "
        "blocking streams.",
    )


RULES = (
    Rule(
        "streams_in_turn",
        "kernels that wait for kernels of another stream, although both together would leave SMs free",
        threshold=0.05,
        unit=OF_THE_STEP,
        reason="Rearranging streams is not worth the effort if it saves less than 5 % of the step.",
        source="https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#streams",
        check=streams_in_turn,
        say=_say,
        precedence=0,
        needs=needs_device,
        confidence="medium",
    ),
)
"""The rule about computation on several streams."""
