"""Find waits that end too early, sequence numbers that backward operators share, and gaps in the host's recording."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import gathered, rows_of_events
from holotrace.enrich.trust.doubts import Doubt, times_of
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.store.trace import RankTrace
from holotrace.units import counted, duration_text, times_text

LATEST_END_NS = 20_000
"""A wait is reported only if its recorded end is more than this long before the end of the work that it waits for.
Smaller differences are normal (8 µs on a healthy MI300), because the profiler compares the clocks of host and device
only from time to time."""

FEWEST_LOST_LAUNCHES = 10
SHORTEST_GAP_NS = 1_000_000
"""A gap is reported if it is at least this long and at least `FEWEST_LOST_LAUNCHES` launches are missing."""

_DEVICE_WAIT = r"(?i)(device|ctx)_?synchroni[sz]e"
_BACKWARD = "autograd::engine::evaluate_function: "
_HOST_KINDS = (EventKind.CPU_OP, EventKind.PYTHON_FUNCTION, *LAUNCH_KINDS)


def waits_end_early(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt if a wait for a stream or device ends while work launched before the wait is still running.

    Source: rule `stream_sync_overlap` of PyTorch's torch/profiler/_trace_validator.py.
    """
    waits = pl.concat([_recorded_waits(rank_trace), _waits_by_name(rank_trace)])
    if waits.is_empty():
        return
    late = _running_after(rank_trace, waits).filter(pl.col("last_ns") - pl.col("end_ns") > LATEST_END_NS)
    if late.is_empty():
        return
    longest = late.with_columns((pl.col("last_ns") - pl.col("end_ns")).alias("late_ns")).sort(
        "late_ns", descending=True
    )
    yield Doubt(
        "waits_end_early",
        f"The host stops waiting for a stream or device too early {times_text(len(late))} (by up to "
        f"{duration_text(longest.item(0, 'late_ns'))}), while work launched earlier is still running: the clocks of "
        "host and device disagree, or times are wrong",
        count=len(late),
        event_index=longest.item(0, "event_index"),
        times=times_of(late, "end_ns", "last_ns"),
    )


def shared_sequence_numbers(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Report links to forward operators as doubtful if different backward operators share a sequence number.

    Source: rule `backward_seq_id_uniqueness` of PyTorch's torch/profiler/_trace_validator.py.
    """
    names = rank_trace.strings.str.starts_with(_BACKWARD).arg_true().cast(pl.UInt32)
    if names.is_empty():
        return
    columns = ["event_index", "name", "start_ns", "end_ns"]
    nodes = event_ranges(rank_trace, [EventKind.CPU_OP], columns, names=names)
    numbers = rank_trace.table("operators", ["event_index", "sequence_number", "forward_thread_id"])
    rows = rows_of_events(numbers, nodes["event_index"])
    keys = ("sequence_number", "forward_thread_id")
    known = (gathered(numbers[key], rows) for key in keys)
    numbered = nodes.with_columns(*known).filter(pl.col("sequence_number") >= 0)
    operators = numbered.unique(["name", *keys]).filter(pl.struct(keys).is_duplicated())
    several = operators.unique(keys)
    shared = numbered.join(several, on=keys, how="semi", nulls_equal=True).sort("start_ns")
    if shared.is_empty():
        return
    yield Doubt(
        "shared_sequence_numbers",
        f"Different backward operators share a sequence number {times_text(len(several))} "
        f"({counted(len(shared), 'call')}): they may be linked to wrong forward operators, and their kernels to "
        "wrong modules",
        count=len(several),
        event_index=shared.item(0, "event_index"),
        from_ns=shared.item(0, "start_ns"),
        to_ns=int(shared["end_ns"].to_numpy().max()),
    )


def gaps_in_host_recording(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt about periods in which no host event begins, although device work was launched in them.

    Correlation numbers ascend as the host launches work. If device work has a number that no recorded call has,
    the call that launched this work was lost. The lost call ran between the recorded calls with the next lower and the
    next higher number. If no operator or Python function begins for at least 1 ms between these two calls, all host
    events of this period were lost, for instance because a ring buffer overflowed.
    """
    calls = event_ranges(rank_trace, LAUNCH_KINDS, ["start_ns", "correlation"]).filter(pl.col("correlation") > 0)
    orphans = device_rows(rank_trace).filter(
        (pl.col("correlation") > 0) & launches(rank_trace)["launch_index"].is_null()
    )["correlation"]
    if calls.is_empty() or len(orphans) < FEWEST_LOST_LAUNCHES:
        return
    gaps = _long_gaps(rank_trace)
    if gaps.is_empty():
        return
    ordered = calls.sort("correlation")
    lost = np.unique(orphans.to_numpy())
    rows = np.searchsorted(ordered["correlation"].to_numpy(), lost)
    rows = rows[(rows > 0) & (rows < len(ordered))]
    starts = ordered["start_ns"].to_numpy()
    after, counts = np.unique(rows, return_counts=True)
    between = pl.DataFrame({"from_ns": starts[after - 1], "to_ns": starts[after], "lost": counts})
    many = between.filter(pl.col("lost") >= FEWEST_LOST_LAUNCHES)
    inside = pl.col("start_ns") >= pl.col("from_ns"), pl.col("end_ns") <= pl.col("to_ns")
    broken = gaps.join_where(many, *inside).sort("start_ns")
    if broken.is_empty():
        return
    times = times_of(broken)
    launch_count = int(broken.unique(["from_ns", "to_ns"])["lost"].sum())
    yield Doubt(
        "gaps_in_host_recording",
        f"No host event begins for {duration_text(int((times[1] - times[0]).sum()))} ({counted(len(broken), 'gap')}), "
        f"but the host launched recorded device work in this time ({counted(launch_count, 'launch', 'launches')}): "
        "host events were lost, so the operators and the causes of idle time are unknown for this time",
        count=len(broken),
        event_index=broken.item(0, "event_index"),
        times=times,
    )


def _recorded_waits(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the waits that the profiler recorded, with device and stream (null if the wait is for a whole device)."""
    details = rank_trace.table("synchronisations", ["event_index", "sync_kind"])
    columns = ["event_index", "start_ns", "end_ns", "device", "stream"]
    rows = event_ranges(rank_trace, [EventKind.SYNCHRONISATION], columns).join(details, on="event_index")
    kinds = rank_trace.texts(rows["sync_kind"])
    whole = kinds.str.contains("Context|Device")
    waits = rows.with_columns(pl.when(~whole).then("stream").alias("stream")).filter(whole | (kinds == "Stream Sync"))
    return waits.drop("sync_kind")


def _waits_by_name(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the calls that wait for a device, or no calls if the rank uses several devices.

    The names of the calls do not show for which device they wait.
    """
    names = names_matching(rank_trace, _DEVICE_WAIT)
    devices = device_rows(rank_trace)["device"].unique().to_list() if len(names) else []
    calls = event_ranges(rank_trace, LAUNCH_KINDS, ["event_index", "start_ns", "end_ns"], names=names)
    device = pl.lit(devices[0] if devices else None, pl.Int32).alias("device")
    chosen = calls.with_columns(device, pl.lit(None, pl.Int64).alias("stream"))
    return chosen if len(devices) == 1 else chosen.clear()


def _running_after(rank_trace: RankTrace, waits: pl.DataFrame) -> pl.DataFrame:
    """Add to each wait `last_ns`, the latest end of all work that was launched before the wait began.

    Only work on the device or stream of the wait is considered; `last_ns` is null if there is no such work.
    """
    rows = device_rows(rank_trace).select("device", "stream", "end_ns")
    launched = rows.hstack(launches(rank_trace).select("launch_start_ns"))
    work = launched.drop_nulls("launch_start_ns").sort("launch_start_ns")
    parts = []
    of_device = pl.col("stream").is_null()
    for keys, chosen in ((["device"], waits.filter(of_device)), (["device", "stream"], waits.filter(~of_device))):
        if chosen.is_empty():
            continue
        last = pl.col("end_ns").cum_max()
        # Usually, there is only one device or stream. Then `over`, which copies all rows, is not needed.
        is_single = work.select(keys).n_unique() == 1
        latest = work.select(*keys, "launch_start_ns", (last if is_single else last.over(keys)).alias("last_ns"))
        parts.append(
            chosen.sort("start_ns").join_asof(
                latest,
                left_on="start_ns",
                right_on="launch_start_ns",
                by=keys,
                allow_exact_matches=False,
                check_sortedness=False,
            )
        )
    return pl.concat(parts)


def _long_gaps(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the gaps of at least `SHORTEST_GAP_NS` in which no host event begins, with the event after each gap."""
    events = event_ranges(rank_trace, _HOST_KINDS, ["event_index", "start_ns"]).sort("start_ns")
    gaps = events.select("event_index", pl.col("start_ns").shift(1), pl.col("start_ns").alias("end_ns"))
    return gaps.filter(pl.col("end_ns") - pl.col("start_ns") >= SHORTEST_GAP_NS)
