"""The rule about calls that are slow because they are the first in their process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, Place, RankCase, Rule, Said, in_line
from holotrace.analyses.diagnosis.rules.needs import needs_device
from holotrace.enrich.critical_path.what_if import Remove
from holotrace.enrich.device.first_calls import first_calls
from holotrace.enrich.host.frames import OF_AUTOGRAD
from holotrace.units import duration_text


def long_first_calls(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the idle time in calls that create the device's context, or load libraries and kernels."""
    if not len(evidence.in_first_calls[0]):
        return
    calls = evidence.within(first_calls(evidence.rank_trace), evidence.in_first_calls)
    time = pl.col("end_ns") - pl.col("start_ns")
    longest = calls.row(int(calls.select(time.arg_max()).item()), named=True)
    host = evidence.activity_at(longest["start_ns"])
    operator = host.get("name") and host["name"].removeprefix(OF_AUTOGRAD)
    name = evidence.rank_trace.texts(pl.Series([longest["name"]], dtype=pl.UInt32))[0]
    yield Case(
        evidence.in_first_calls,
        evidence.share(evidence.in_first_calls),
        count=calls["event_index"].n_unique(),
        place=Place(host.get("module"), operator, None, host.get("frame"), longest["event_index"], longest["start_ns"]),
        change=Remove(pl.col("event_index").is_in(calls["event_index"].unique().implode())),
        words={
            "call": name,
            "longest_ns": longest["end_ns"] - longest["start_ns"],
            "has_steps": evidence.has_steps,
            "confidence": "medium" if name.startswith("aten::") else "high",
        },
    )


def _say(cases: Sequence[RankCase]) -> Said:
    words, place = cases[0].words, cases[0].place
    within = f" in {place.operator}" if place.operator and place.operator != words["call"] else ""
    calls = "a call that sets" if cases[0].count == 1 else f"{cases[0].count:,} calls that set"
    warm_up = (
        "Skip more steps before the recording (schedule(wait=..., warmup=...))."
        if words["has_steps"]
        else "Run a few iterations before the recording starts."
    )
    return Said(
        f"the GPU waits for {calls} up the device or load{'s' if cases[0].count == 1 else ''} kernels on first use "
        f"(longest: {words['call']}{within}{in_line(place)}, {duration_text(words['longest_ns'])})",
        f"{warm_up} These calls are slow only once per process, so later steps are faster.",
    )


RULES = (
    Rule(
        "first_calls",
        "idle time in calls of at least 1 ms that a process makes once, to create the device's context or load libraries and kernels",
        threshold=0.10,
        unit=OF_THE_STEP,
        reason="Once everything is loaded, the same calls take microseconds.",
        source="https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#lazy-loading",
        check=long_first_calls,
        say=_say,
        precedence=0,
        needs=needs_device,
    ),
)
"""The rule about first calls."""
