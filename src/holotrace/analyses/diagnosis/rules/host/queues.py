"""Rules about the queue between host and device: work that starts late, a host that falls behind, the profiler's own work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import covered_length, intersection, union, union_of
from holotrace.analyses.diagnosis.evidence.host_pace import FALLS_BEHIND, host_pace
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import NOTHING, OF_THE_STEP, Case, Place, RankCase, Rule, Said, in_line
from holotrace.analyses.diagnosis.rules.needs import needs_device
from holotrace.drawing.names import short_name
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.graph_replays import GRAPH_LAUNCH
from holotrace.enrich.device.left_out_launches import calls_between_launches
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.steps.steps import windows
from holotrace.schema import EventKind
from holotrace.units import duration_text

_FEWEST_STARTS = 3
"""With fewer late starts than this, the confidence is low, because work may have waited for something that was not
recorded."""
_MOST = 0.5
_LATE_NS = 100_000
"""Work is late if the device idles for this long between the launch of the work and its start. If only one process
uses a GPU, work starts within 20 µs."""


def late_starts(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the times of at least 0.1 ms in which a device idles although work for it was launched."""
    # Only the first kernel of a graph waits for the launch; the others wait for earlier kernels of the graph.
    launched = evidence.work.drop_nulls("launch_end_ns").sort("start_ns").unique("launch_index", keep="first")
    begins, ends = evidence.idle
    gap = np.searchsorted(ends, launched["start_ns"].to_numpy()).clip(max=max(0, len(ends) - 1))
    if launched.is_empty() or not len(ends):
        return
    waiting = launched.with_columns(
        pl.Series("from_ns", np.maximum(begins[gap], launched["launch_end_ns"].to_numpy())),
        pl.Series("gap_end_ns", ends[gap]),
    ).filter(pl.col("gap_end_ns") == pl.col("start_ns"), pl.col("start_ns") - pl.col("from_ns") >= _LATE_NS)
    if waiting.is_empty():
        return
    explained = union(waiting["from_ns"].to_numpy(), waiting["start_ns"].to_numpy())
    is_rare = len(waiting) < _FEWEST_STARTS or 2 * (explained[1] - explained[0]).max() > covered_length(*explained)
    reason = _reason(evidence, waiting) or ("rare" if is_rare else "")
    words = {"reason": reason, "confidence": "low" if reason else "medium"}
    longest = waiting.row(int((waiting["start_ns"] - waiting["from_ns"]).arg_max() or 0), named=True)
    host = evidence.activity_at(longest["launch_start_ns"])
    name = evidence.rank_trace.texts(pl.Series([longest["name"]], dtype=pl.UInt32))[0]
    place = Place(
        host.get("module"), host.get("name"), name, host.get("frame"), longest["event_index"], longest["start_ns"]
    )
    yield Case(explained, evidence.share(explained), count=len(waiting), place=place, words=words)


def _reason(evidence: RankEvidence, waiting: pl.DataFrame) -> str:
    """Return why the GPU may have been busy for most of the time in `waiting`; "" if nothing suggests this.

    `before`: the wait ends when the first recorded work of a stream starts, so the GPU may have run work that was
    launched before the recording. `graph`: the wait ends when the first recorded kernel of a graph replay starts, so
    the GPU may have run earlier kernels of the graph, which the profiler lost. `left_out`: most launches and their work
    are missing from the file, so the GPU may have run some of the missing work.
    """
    if calls_between_launches(evidence.rank_trace) is not None:
        return "left_out"
    rows = device_rows(evidence.rank_trace.unselected)
    firsts = rows.sort("start_ns").unique(["device", "stream"], keep="first")["event_index"]
    time, all_time = pl.col("start_ns") - pl.col("from_ns"), (pl.col("start_ns") - pl.col("from_ns")).sum()
    graphs = names_matching(evidence.rank_trace, GRAPH_LAUNCH)
    shares = waiting.select(
        before=time.filter(pl.col("event_index").is_in(firsts.implode())).sum() / all_time,
        graph=time.filter(pl.col("launch_name").is_in(graphs.implode())).sum() / all_time,
    ).row(0, named=True)
    return next((reason for reason, share in shares.items() if share > _MOST), "")


def host_falls_behind(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case if the host needs longer for a step than the devices, but the devices still have a backlog of work.

    The host's time excludes its waits for devices. As long as the backlog lasts, the devices do not idle, so a slow
    host costs nothing in the recorded steps. Devices that idle most of the time have no backlog.
    """
    pace = host_pace(evidence)
    if pace is None or pace.ratio <= 1 or not _has_backlog(evidence, pace.device_ns):
        return
    announced = windows(evidence.rank_trace)
    main = evidence.within(evidence.activity, union_of(announced))
    if main.is_empty():
        return
    longest = _longest(main)
    place = Place(longest["module"], None, None, longest["frame"], longest["event_index"], longest["start_ns"])
    words = {**pace._asdict(), "name": longest["name"] or longest["frame"]}
    words["later_ns"] = pace.host_ns - pace.device_ns
    words["share"] = longest["time_ns"] / int((announced["end_ns"] - announced["start_ns"]).sum())
    yield Case(NOTHING, pace.ratio, count=len(announced), place=place, words=words)


def _has_backlog(evidence: RankEvidence, device_ns: int) -> bool:
    """Return whether the devices are busy for at least half of the time of all steps that last at most `device_ns`."""
    length_ns = pl.col("end_ns") - pl.col("start_ns")
    paced = union_of(evidence.steady.filter(length_ns <= device_ns))
    return covered_length(*intersection(evidence.busy, paced)) >= _MOST * covered_length(*paced)


def _longest(activity: pl.DataFrame) -> dict[str, Any]:
    """Return the combination of name, module and frame that takes the most time, with its first event."""
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns")
    sums = activity.group_by("name", "module", "frame", maintain_order=True).agg(
        time, pl.col("event_index").first(), pl.col("start_ns").first()
    )
    return sums.row(int(sums["time_ns"].arg_max() or 0), named=True)


def profiler_overhead(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the idle time in which the profiler itself works, for example to request another buffer."""
    rows = event_ranges(evidence.rank_trace, [EventKind.OVERHEAD], ["event_index", "start_ns", "end_ns"])
    if rows.is_empty():
        return
    explained = intersection(union_of(rows), evidence.idle)
    first = rows.row(int((rows["end_ns"] - rows["start_ns"]).arg_max() or 0), named=True)
    place = Place(event_index=first["event_index"], at_ns=first["start_ns"])
    yield Case(explained, evidence.share(explained), count=len(rows), place=place)


def _say_late(cases: Sequence[RankCase]) -> Said:
    kernel, reason = short_name(str(cases[0].place.kernel)), cases[0].words["reason"]
    if reason == "before":
        return Said(
            f"the first recorded work of a stream starts late ({kernel}): the GPU probably still runs work from before the recording",
            "Ignore this time. To avoid it, call torch.cuda.synchronize() before the recording starts.",
        )
    if reason == "graph":
        return Said(
            f"the first recorded kernels of CUDA graph replays start late (longest gap before {kernel}): the profiler probably lost "
            "earlier kernels of these graphs",
            "Record a step without CUDA graphs, or with a newer version of PyTorch and CUDA, and see whether the gap remains.",
        )
    if reason == "left_out":
        return Said(
            f"launched work starts late, although no recorded work runs on the GPU (longest gap before {kernel}): most launches and "
            "their work seem to be missing from the file",
            "Ignore this time, in which the missing work probably ran. Record again without filtering or sampling events.",
        )
    if reason == "rare":
        return Said(
            f"launched work starts late, although no recorded work runs on the GPU (before {kernel})",
            "Look at this time in the timeline: work of a graph or of another process may be missing from the recording.",
        )
    return Said(
        f"launched work starts late, although the GPU is idle (longest gap before {kernel}{in_line(cases[0].place)})",
        "Look for another process on this GPU (nvidia-smi), and for streams that wait for each other; "
        "enable_cuda_sync_events=True records such waits.",
    )


def _say_behind(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    line = cases[0].place.source_line
    where = f" in {line}" if line and line != words["name"] else ""
    what = f" (most of it in {words['name']}{where})" if words["name"] else ""
    return Said(
        f"the host needs {duration_text(words['host_ns'])} for a step{what}, but the GPU only "
        f"{duration_text(words['device_ns'])}: when the GPU has finished its backlog, it will wait for the host",
        "Speed up the host's work. Record more steps after a longer warm-up to see the job without a backlog.",
    )


def _say_profiler(_: Sequence[RankCase]) -> Said:
    return Said(
        "the GPU waits while the profiler itself works; without the profiler, steps are shorter",
        "Use a longer warm-up (schedule(warmup=...)), and record fewer events: turn off with_stack, record_shapes and "
        "profile_memory where you do not need them.",
    )


_KINETO = "https://docs.nvidia.com/cupti/api/structCUpti__ActivityOverhead3.html"

RULES = (
    Rule(
        "late_starts",
        "idle time of at least 0.1 ms between the launch of work and its start",
        threshold=0.05,
        unit=OF_THE_STEP,
        reason="If only one process uses a GPU, work starts within 20 µs of the launch; processes that share a GPU take turns of 2 ms.",
        source="https://docs.nvidia.com/deploy/mps/index.html",
        check=late_starts,
        say=_say_late,
        precedence=0,
        needs=needs_device,
        confidence="medium",
    ),
    Rule(
        "host_falls_behind",
        "a host that will delay the devices as soon as they have finished their backlog: the host's shortest step, "
        "without its waits for devices, is longer than the devices' median step",
        threshold=FALLS_BEHIND,
        unit="times the length of the devices' step",
        reason="In the long run, the slower of host and device sets the pace. Even if all steps do the same work, their durations may differ by up to a quarter.",
        source="https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",
        check=host_falls_behind,
        say=_say_behind,
        precedence=2,
        needs=needs_device,
        confidence="medium",
    ),
    Rule(
        "profiler_overhead",
        "idle time in which the profiler requests buffers or does other work of its own",
        threshold=0.05,
        unit=OF_THE_STEP,
        reason="If this work takes less than 5 % of a step, it matters less than the normal variation between steps.",
        source=_KINETO,
        check=profiler_overhead,
        say=_say_profiler,
        precedence=0,
        needs=needs_device,
    ),
)
"""The rules about the queue of launched work, and about the profiler."""
