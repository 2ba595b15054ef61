"""Rules about device memory: the allocator's calls to the driver, the peak, and memory that is reserved but unused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import union_of
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import NOTHING, OF_THE_STEP, Case, Place, RankCase, Rule, Said, in_line
from holotrace.analyses.diagnosis.rules.host.synchronisations import launching
from holotrace.analyses.diagnosis.rules.needs import needs_device
from holotrace.analyses.memory_timeline.compute import plan as memory_timeline
from holotrace.enrich.critical_path.what_if import Remove
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.memory.memory_events import BEFORE_RECORDING
from holotrace.schema import LAUNCH_KINDS, EventKind
from holotrace.units import percent_text, size_text

_ALLOCATION = "allocation"
_FREE = r"^(cuda|hip)Free$|^cuMem(Unmap|Release)$|^hipMem(Unmap|Release)$"
_EMPTY_CACHE = r"(^|: )empty_cache$"
_MOST_NAMED = 3
_NEAR_LIMIT = 0.9
_LEAST_UNUSED = 0.02


def empties_cache(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the calls that return memory to the driver and request it again, if every step empties the cache."""
    if _emptying_calls(evidence) >= evidence.step_count:
        yield from _allocations(evidence, first=_FREE)


def allocator_retries(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the allocator's calls to the driver in steady steps, unless every step empties the cache."""
    if _emptying_calls(evidence) < evidence.step_count:
        yield from _allocations(evidence)


def _allocations(evidence: RankEvidence, first: str = "") -> Iterator[Case]:
    """Yield a case for the idle time that the allocator's calls to the driver cause, if there is any.

    The case points to the longest call whose name matches `first` or, if none matches, to the longest call of all.
    """
    pieces = evidence.while_idle.filter(pl.col("cause") == _ALLOCATION)
    if pieces.is_empty():
        return
    explained = union_of(pieces)
    events = pieces["event_index"].drop_nulls().unique()
    matching = pieces.filter(pl.col("name").str.contains(first))
    shown = pieces if matching.is_empty() else matching
    longest = shown.row(int((shown["end_ns"] - shown["start_ns"]).arg_max() or 0), named=True)
    frees = int(pieces["name"].str.contains(_FREE).sum())
    place = Place(longest["module"], None, None, longest["frame"], longest["event_index"], longest["start_ns"])
    words = {"frees": frees / evidence.step_count, "calls": len(events) / evidence.step_count}
    change = Remove(pl.col("event_index").is_in(events.implode())) if len(events) else None
    further = launching(evidence, int(pieces["start_ns"].min() or 0))  # type: ignore[arg-type]
    yield Case(explained, evidence.share(explained), 1.0, len(events), "", place, change, words, further)


def _emptying_calls(evidence: RankEvidence) -> int:
    """Count the calls of `empty_cache` in steady steps.

    If no such calls were recorded, count the calls that free device memory, provided that most of them are outside
    operators.
    """
    ids = names_matching(evidence.rank_trace, _EMPTY_CACHE)
    kinds = (EventKind.PYTHON_FUNCTION, EventKind.CPU_OP)
    named = evidence.rank_trace.events_of(kinds, ["start_ns"], names=ids)
    if len(named):
        return _in_steps(evidence, named["start_ns"])
    frees = evidence.activity.filter((pl.col("cause") == _ALLOCATION) & pl.col("name").str.contains(_FREE))
    return _in_steps(evidence, frees["start_ns"]) if _are_outside_operators(evidence, frees) else 0


def _in_steps(evidence: RankEvidence, starts: pl.Series) -> int:
    """Count how many of the calls that begin at `starts` are in steady steps."""
    first, last = (np.searchsorted(np.sort(starts.to_numpy()), side) for side in evidence.step_windows)
    return int((last - first).sum())


def _are_outside_operators(evidence: RankEvidence, frees: pl.DataFrame) -> bool:
    """Return whether most calls in `frees` are outside operators.

    Frees inside operators come from the allocator: if an allocation fails, it frees its cached memory and retries.
    """
    if frees.is_empty():
        return False
    columns = ["event_index", "start_ns", "end_ns", "kind"]
    ranges = event_ranges(evidence.rank_trace, (EventKind.CPU_OP, *LAUNCH_KINDS), columns)
    operators = union_of(ranges.filter(pl.col("kind") == EventKind.CPU_OP))
    rows = np.searchsorted(operators[0], frees["start_ns"].to_numpy(), side="right") - 1
    inside = (rows >= 0) & (frees["start_ns"].to_numpy() < np.append(operators[1], 0)[rows])
    return bool(inside.mean() < 1 / 2)


def near_limit(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case without a cost for each device whose memory is almost full."""
    for device in evidence.memory_peaks:
        share = device["peak_bytes"] / device["capacity_bytes"] if device["capacity_bytes"] else 0.0
        if share >= _NEAR_LIMIT:
            yield _without_cost(device, share, {**device, "holders": _holders(evidence, device)})


def fragmentation(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for each almost full device on which the allocator reserves more memory than tensors ever used at once."""
    for device in evidence.memory_peaks:
        capacity, reserved = device["capacity_bytes"], device["reserved_bytes"]
        if capacity and reserved and reserved >= _FULL * capacity:
            unused = reserved - device["peak_bytes"]
            yield _without_cost(device, unused / capacity, {**device, "unused": unused})


_FULL = 0.8
"""A device is almost full if the allocator reserves at least this share of its memory; only then does unused reserved
memory hurt."""


def _without_cost(device: dict[str, Any], value: float, words: dict[str, Any]) -> Case:
    return Case(NOTHING, value, subject=str(device["device"]), place=Place(at_ns=device["peak_ns"]), words=words)


def _holders(evidence: RankEvidence, device: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the operators that allocated most of the memory in use at the peak, each with the bytes it allocated."""
    at_peak = memory_timeline().one_rank(evidence.rank_trace).at_peak
    here = at_peak.filter((pl.col("device_type") == device["device_type"]) & (pl.col("device") == device["device"]))
    return list(here.head(_MOST_NAMED).select("operator", "bytes").iter_rows())


def _say_empties(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"every step empties the allocator's cache, so the allocator must request memory from the driver again "
        f"({words['calls']:,.0f} calls per step){in_line(cases[0].place)}",
        "Remove torch.cuda.empty_cache() from the training loop; the allocator reuses freed memory by itself.",
    )


def _say_retries(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    if words["frees"]:
        return Said(
            f"the allocator runs out of memory, frees its cache and requests memory again ({words['calls']:,.0f} calls per "
            f"step){in_line(cases[0].place)}",
            "Set PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before PyTorch 2.10) to reduce fragmentation, "
            "or use less memory: checkpoint activations, or make batches smaller.",
        )
    return Said(
        f"the allocator still requests memory from the driver in steady steps ({words['calls']:,.0f} calls per step)"
        f"{in_line(cases[0].place)}",
        "Use the same tensor shapes in every step, or set PYTORCH_ALLOC_CONF=expandable_segments:True "
        "(PYTORCH_CUDA_ALLOC_CONF before PyTorch 2.10).",
    )


def _say_limit(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    holders = ", ".join(f"{size_text(size)} {_by(operator)}" for operator, size in words["holders"])
    return Said(
        f"device {words['device']} had {size_text(words['peak_bytes'])} of its {size_text(words['capacity_bytes'])} allocated at "
        f"the peak ({percent_text(words['peak_bytes'] / words['capacity_bytes'])}), most of it {holders}{_reserved_text(words)}",
        "Use less memory before the allocator has to retry: checkpoint activations, shard the optimizer's state, or lower the "
        "precision. PYTORCH_ALLOC_CONF=expandable_segments:True reduces fragmentation.",
    )


def _reserved_text(words: Mapping[str, Any]) -> str:
    """Say how much memory the allocator reserves in blocks that no tensor uses; "" if unknown or not worth showing."""
    unused = (words["reserved_bytes"] or 0) - words["peak_bytes"]
    if unused < _LEAST_UNUSED * words["capacity_bytes"]:
        return ""
    return f"; the allocator reserves another {size_text(unused)} that no tensor uses (fragments or cache)"


def _by(operator: str) -> str:
    return "from before the recording" if operator == BEFORE_RECORDING else f"by {operator}"


def _say_fragmentation(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"the allocator reserves {size_text(words['unused'])} more memory on device {words['device']} than tensors ever use at once, "
        "although the device is almost full",
        "Set PYTORCH_ALLOC_CONF=expandable_segments:True (PYTORCH_CUDA_ALLOC_CONF before PyTorch 2.10).",
    )


def _needs_steps(evidence: RankEvidence) -> str | None:
    if (missing := needs_device(evidence)) is not None:
        return missing
    return None if evidence.has_steps else "the recording has no steps; call prof.step() after each step"


def _needs_memory(evidence: RankEvidence) -> str | None:
    if (missing := needs_device(evidence)) is not None:
        return missing
    devices = evidence.memory_peaks
    if not devices:
        return "no memory events were recorded; record with profile_memory=True"
    return (
        None
        if any(device["capacity_bytes"] for device in devices)
        else "the file does not give the memory size of the devices"
    )


_ALLOCATOR = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management"

RULES = (
    Rule(
        "empties_cache",
        "the allocator's calls to the driver while all devices are idle, in a job that empties the cache in every step",
        threshold=0.02,
        unit=OF_THE_STEP,
        reason="In steady steps, the allocator does not need to call the driver.",
        source=_ALLOCATOR,
        check=empties_cache,
        say=_say_empties,
        precedence=0,
        needs=_needs_steps,
    ),
    Rule(
        "allocator_retries",
        "the allocator's calls to the driver in steady steps while all devices are idle, in a job that does not empty the cache",
        threshold=0.02,
        unit=OF_THE_STEP,
        reason="In steady steps, the allocator does not need to call the driver.",
        source=_ALLOCATOR,
        check=allocator_retries,
        say=_say_retries,
        precedence=0,
        needs=_needs_steps,
    ),
    Rule(
        "memory_limit",
        "peak of the memory allocated on a device",
        threshold=_NEAR_LIMIT,
        unit="of the device's memory",
        reason="Fragmentation and libraries use up the remaining 10 %, so the allocator soon has to free memory and retry.",
        source=_ALLOCATOR,
        check=near_limit,
        say=_say_limit,
        needs=_needs_memory,
    ),
    Rule(
        "fragmentation",
        "reserved memory beyond the peak of allocated memory, on a device that is at least 80 % full",
        threshold=0.2,
        unit="of the device's memory",
        reason="A cache of some gigabytes is normal, but an almost full device cannot spare a fifth of its memory.",
        source=_ALLOCATOR,
        check=fragmentation,
        say=_say_fragmentation,
        needs=_needs_memory,
    ),
)
"""The rules about memory."""
