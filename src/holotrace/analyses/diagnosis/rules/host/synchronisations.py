"""Rules about host waits after which the device becomes idle: `.item()`, shapes that depend on data, copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import (
    Intervals,
    concatenated,
    covered_length,
    difference,
    intersection,
    union,
    union_of,
)
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import NOTHING, OF_THE_STEP, Case, Place, RankCase, Rule, Said
from holotrace.analyses.diagnosis.rules.needs import needs_device
from holotrace.enrich.critical_path.what_if import NoWait, Remove
from holotrace.enrich.host.source_lines import records_python

_SHARE = 0.02
_LONG_NS = 100_000
_PINNED_BYTES_PER_S = {9: 50e9, 8: 25e9}
"""{major compute capability: bandwidth of pinned copies on devices with at least this capability}.

These are about 80 % of the theoretical bandwidths of PCIe 5.0 x16 and PCIe 4.0 x16, which are 63 and 31.5 GB/s:
https://en.wikipedia.org/wiki/PCI_Express."""
_PINNED_ELSEWHERE = 12e9
"""Bandwidth of pinned copies over PCIe 3.0 x16, for older and unknown devices."""

_SCALARS = r"^aten::(item|_local_scalar_dense|is_nonzero|equal|allclose)$"
_SHAPES = r"^aten::(nonzero|masked_select|index|index_put_|_index_put_impl_|unique\w*|_unique2?|repeat_interleave|where|bincount)$"
_COPIES = r"^aten::(to|_to_copy|copy_|cpu|cuda)$"
_DEVICE = r"(?i)device_?synchroni[sz]e|synchroni[sz]e_?device"


def waits_in(evidence: RankEvidence, chosen: pl.Expr, *, is_needless: bool = False) -> Iterator[Case]:
    """Yield a case for the idle time that the calls selected by `chosen` cause.

    The calls cause the idle time that follows them. If an operator that always waits, such as `aten::item`, makes such
    a call, the idle time inside the operator is included.

    Recording Python functions makes the host up to twice as slow. Such a slow host may leave the device idle even in a
    replay from which the wait was removed. Therefore, if Python functions were recorded, all idle time after a needless
    wait is blamed on the wait, even if replaying the step without the wait saves less time.
    """
    calls = evidence.synchronisations.filter(chosen.fill_null(value=False))
    if calls.is_empty():
        return
    inside = _inside(evidence, calls)
    explained = difference(_idle_for(calls, inside), evidence.in_first_calls)
    longest = calls.sort(pl.col("gap_end_ns") - pl.col("gap_start_ns"), descending=True, maintain_order=True).row(
        0, named=True
    )
    yield Case(
        explained,
        evidence.share(explained),
        count=len(calls),
        place=Place(
            module=longest["module"],
            operator=longest["name"],
            source_line=longest["frame"],
            event_index=longest["event_index"],
            at_ns=longest["gap_start_ns"],
        ),
        change=_without(calls, inside),
        words={"call": longest["call"], "steps": evidence.step_count if evidence.has_steps else 0},
        further=launching(evidence, int(calls["gap_start_ns"].min() or 0)),  # type: ignore[arg-type]
        is_certain=is_needless and records_python(evidence.rank_trace),
    )


def launching(evidence: RankEvidence, since_ns: int) -> Intervals:
    """Return the idle time after `since_ns` in which the host only launches work.

    An earlier wait causes this idle time: without the wait, the host would be ahead of the device. Intervals of at
    least 0.1 ms in which the host runs Python code or nothing are not included, because other rules report them.
    """
    is_short = pl.col("cause").is_in(["python", "host_idle"]) & (pl.col("end_ns") - pl.col("start_ns") < _LONG_NS)
    pieces = evidence.while_idle.filter((pl.col("cause") == "operator") | is_short)
    return intersection(union_of(pieces), (np.array([since_ns]), np.array([np.iinfo(np.int64).max])))


def _inside(evidence: RankEvidence, calls: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `RankEvidence.while_idle` in operators that always wait and that made one of the `calls`."""
    known = evidence.while_idle.filter(_IS_KNOWN.fill_null(value=False))
    return known.join(calls.select("name", "frame").unique(), on=["name", "frame"], how="semi", nulls_equal=True)


def _idle_for(calls: pl.DataFrame, inside: pl.DataFrame) -> Intervals:
    gaps = (calls["gap_start_ns"].to_numpy(), calls["gap_end_ns"].to_numpy())
    return union(*concatenated([gaps, union_of(inside)]))


def _without(calls: pl.DataFrame, inside: pl.DataFrame) -> tuple[NoWait, Remove]:
    return (
        NoWait(pl.col("event_index").is_in(calls["event_index"].implode())),
        Remove(pl.col("event_index").is_in(inside["event_index"].drop_nulls().unique().implode())),
    )


def pageable_copies(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for copies from or to pageable memory while no kernel runs, and for the idle time around them.

    Such a copy blocks the host, which can launch more work only when the copy ends. If the idle time around the copies
    is longer than the copies themselves, the rule about blocking copies reports this idle time instead.
    """
    names = evidence.rank_trace.texts(evidence.work["name"])
    copies = evidence.work.filter(names.str.contains(r"(?i)pageable"))
    if copies.is_empty():
        return
    alone = difference(union_of(copies), evidence.roles["kernel"])
    after = evidence.synchronisations.filter(pl.col("gap_start_ns").is_in(copies["end_ns"].implode()))
    waits = difference(_idle_for(after, _inside(evidence, after)), alone)
    copied_ns, waited_ns = covered_length(*alone), covered_length(*waits)
    if waited_ns > copied_ns:
        waits, waited_ns = NOTHING, 0
    explained = union(*concatenated([alone, waits]))
    saved = _saved_by_pinning(evidence, copies, int(copies["duration_ns"].sum()))
    first = copies.sort("duration_ns", descending=True, maintain_order=True).row(0, named=True)
    yield Case(
        explained,
        evidence.share(explained),
        saved_fraction=(saved * copied_ns + waited_ns) / max(1, copied_ns + waited_ns),
        count=len(copies),
        place=_place_of(evidence, first),
        words={"call": "", "steps": evidence.step_count if evidence.has_steps else 0},
    )


def _place_of(evidence: RankEvidence, copy: dict[str, Any]) -> Place:
    host = evidence.activity_at(copy["launch_start_ns"])
    return Place(host.get("module"), host.get("name"), None, host.get("frame"), copy["event_index"], copy["start_ns"])


def _saved_by_pinning(evidence: RankEvidence, copies: pl.DataFrame, total_ns: int) -> float:
    """Return the share of the copy time that pinned memory would save; 1 if the sizes of the copies are unknown."""
    sizes = evidence.rank_trace.table("copies", ["event_index", "bytes"])
    size = int(copies.join(sizes, on="event_index", how="left")["bytes"].fill_null(0).sum())
    rate = next(
        (rate for least, rate in _PINNED_BYTES_PER_S.items() if evidence.capability >= least), _PINNED_ELSEWHERE
    )
    return max(0.0, 1 - size / rate * 1e9 / total_ns) if size and total_ns else 1.0


def _where(case: RankCase) -> str:
    place = case.place
    within = ", ".join(filter(None, (place.module, place.source_line)))
    name = place.operator or case.words["call"]
    return f"{name} in {within}" if within else str(name)


def _in(case: RankCase) -> str:
    line = case.place.source_line
    return f", in {line}" if line else ""


def _per_step(case: RankCase) -> str:
    if not case.words["steps"]:
        return "once" if case.count == 1 else f"{case.count:,} times"
    count = case.count / case.words["steps"]
    if count < 1:
        return "in some steps"
    return "once per step" if round(count) == 1 else f"{count:.0f} times per step"


def _say(what: str, advice: str, cases: Sequence[RankCase]) -> Said:
    return Said(f"the GPU becomes idle because the host {what} {_per_step(cases[0])} ({_where(cases[0])})", advice)


def _say_pageable(cases: Sequence[RankCase]) -> Said:
    return Said(
        f"copies from or to pageable memory block the host, {_per_step(cases[0])}{_in(cases[0])}",
        "Allocate the host tensors in pinned memory (DataLoader(pin_memory=True) or tensor.pin_memory()), and copy with "
        "non_blocking=True.",
    )


def _rule(  # noqa: PLR0913 -- the fields of a rule
    name: str, looks_for: str, chosen: pl.Expr, what: str, advice: str, *, is_needless: bool = False
) -> Rule:
    check: Callable[[RankEvidence], Iterator[Case]] = partial(waits_in, chosen=chosen, is_needless=is_needless)
    return Rule(
        name,
        looks_for,
        threshold=_SHARE,
        unit=OF_THE_STEP,
        reason="One wait and the launches after it take about 50 µs, which is 2 % of a fast step.",
        source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
        check=check,
        say=partial(_say, what, advice),
        precedence=0,
        needs=needs_device,
    )


_IS_SCALAR, _IS_SHAPE, _IS_COPY = (pl.col("name").str.contains(pattern) for pattern in (_SCALARS, _SHAPES, _COPIES))
_IS_KNOWN = _IS_SCALAR | _IS_SHAPE | _IS_COPY
_IS_DEVICE = pl.col("call").str.contains(_DEVICE) & ~_IS_KNOWN.fill_null(value=False)
_IS_OTHER = ~(_IS_KNOWN | _IS_DEVICE).fill_null(value=False)

RULES = (
    _rule(
        "scalar_read",
        "idle time after the host waited to read a value, for example with `.item()`, `float(tensor)` or `if tensor`",
        _IS_SCALAR,
        "reads a value",
        "Keep the value on the GPU (tensor.detach()). Read it every few hundred steps, or copy it with non_blocking=True and read the "
        "copy one step later.",
    ),
    _rule(
        "data_dependent_shape",
        "idle time after the host waited for the shape of a result, for example of `nonzero` or of indexing with a mask",
        _IS_SHAPE,
        "waits for a shape that depends on data",
        "Instead of indexing with a mask, use torch.where, masked_fill or multiplication by the mask; instead of nonzero, use "
        "nonzero_static with a fixed size.",
    ),
    _rule(
        "blocking_copy",
        "idle time after a copy that blocked the host",
        _IS_COPY,
        "waits for a copy",
        "Copy with non_blocking=True from and to pinned memory, and use the result later.",
    ),
    _rule(
        "device_synchronisation",
        "idle time after the host waited for all work on the device",
        _IS_DEVICE,
        "waits for the whole device",
        "Remove torch.cuda.synchronize() from the step. To measure time, use CUDA events, and read them after the step.",
        is_needless=True,
    ),
    _rule(
        "stream_synchronisation",
        "idle time after the host waited for a stream or an event, if no other rule covers the wait",
        _IS_OTHER,
        "waits for a stream or an event",
        "Make one stream wait for the other (stream.wait_event) instead of making the host wait.",
    ),
    Rule(
        "pageable_copy",
        "copies from or to pageable memory while no kernel runs, and the idle time around them",
        threshold=_SHARE,
        unit=OF_THE_STEP,
        reason="If the copies take less than 2 % of a step, pinning saves too little time to be worth the pinned "
        "memory.",
        source="https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        check=pageable_copies,
        say=_say_pageable,
        precedence=0,
        needs=needs_device,
    ),
)
