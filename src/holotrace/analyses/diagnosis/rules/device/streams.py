"""The rule about copies that could overlap computation on another stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from holotrace.algorithms.intervals import concatenated, covered_length, difference, intersection, union, union_of
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, RankCase, Rule, Said
from holotrace.analyses.diagnosis.rules.device.device_cases import matches, place_of
from holotrace.analyses.diagnosis.rules.needs import needs_device
from holotrace.enrich.critical_path.what_if import Scale
from holotrace.schema import KernelKind
from holotrace.units import size_text

_TO_DEVICE = r"HtoD|HostToDevice|CopyHostToDevice"
_MOSTLY = 0.8


def copies_in_turn(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for asynchronous copies to a device that could compute at the same time, but does not.

    Copies from pageable memory do not count, because they are not asynchronous. The saving is at most the time in
    which the device computes, because only computation can hide the copies.
    """
    moves = evidence.work.filter(pl.col("kernel_kind") == KernelKind.MEMORY)
    names = evidence.rank_trace.texts(moves["name"])
    copies = moves.with_columns(names.alias("kernel")).filter(
        matches(names, _TO_DEVICE) & ~matches(names, "(?i)pageable")
    )
    others = union(*concatenated([evidence.roles["kernel"], evidence.roles["communication"]]))
    alone = intersection(difference(union_of(copies), others), evidence.step_windows)
    computing = difference(evidence.roles["kernel"], union_of(copies))
    alone_ns = covered_length(*alone)
    if not alone_ns or alone_ns < _MOSTLY * covered_length(*union_of(copies)):
        return
    first = copies.row(int(copies["duration_ns"].arg_max() or 0), named=True)
    kernels = evidence.work.filter(pl.col("kernel_kind") == KernelKind.COMPUTATION)
    streams = set(copies["stream"].unique()) & set(kernels["stream"].unique())
    copied = evidence.rank_trace.table("copies", ["event_index", "bytes"]).join(copies, on="event_index", how="semi")
    words = {
        "count": copies.height / evidence.step_count,
        "bytes": float(copied["bytes"].sum()) / evidence.step_count,
        "shares_stream": bool(streams),
    }
    fraction = min(1.0, covered_length(*computing) / alone_ns)
    change = Scale(pl.col("event_index").is_in(copies["event_index"].implode()), 1 - fraction)
    place = place_of(evidence, {**first, "operator": None})
    yield Case(alone, evidence.share(alone) * fraction, fraction, copies.height, "", place, change, words)


def _say_copies(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    why = (
        "on the stream of the kernels" if words["shares_stream"] else "on another stream, but the kernels wait for them"
    )
    return Said(
        f"the device computes nothing while it copies {size_text(words['bytes'])} per step from the host, in "
        f"{words['count']:,.0f} copies {why}",
        "Copy the next batch on a second stream (torch.cuda.Stream, non_blocking=True, pinned memory) while the device computes "
        "the current batch, and let each batch's computation wait only for the copy of that batch (wait_stream).",
    )


RULES = (
    Rule(
        "copies_in_turn",
        "asynchronous copies to the device that could overlap computation, but do not overlap it for at least 80 % of "
        "their time",
        threshold=0.05,
        unit=OF_THE_STEP,
        reason="Copying on a second stream takes extra code, which is not worth the effort if it saves less than 5 % "
        "of the step.",
        source="https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        check=copies_in_turn,
        say=_say_copies,
        needs=needs_device,
    ),
)
"""The rule about copies."""
