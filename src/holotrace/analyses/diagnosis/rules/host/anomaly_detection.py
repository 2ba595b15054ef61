"""The rule about jobs in which autograd's anomaly detection was left on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import holding, intersection, union_of
from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above, nearest_above
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, Place, RankCase, Rule, Said, who_waits
from holotrace.analyses.diagnosis.rules.needs import needs_stacks
from holotrace.enrich.critical_path.what_if import Remove
from holotrace.enrich.job_graph.causes.cause_names import host_ranges
from holotrace.schema import EventKind

_STACK = r"^(torch/fx/)?traceback\.py\(\d+\): format_stack$"
"""The function that anomaly detection calls in each operator of the forward pass, to record where the operator was
called: https://github.com/pytorch/pytorch/blob/main/torch/csrc/autograd/python_anomaly_mode.cpp"""


def anomaly_detection(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the time in which the device idles while operators record the Python stack that called them."""
    known, texts = host_ranges(evidence.rank_trace), evidence.rank_trace.strings
    kind, name = known.ranges["kind"].to_numpy(), known.ranges["name"].to_numpy()
    is_format = texts.str.contains(_STACK).fill_null(value=False).to_numpy()
    rows = np.flatnonzero((kind == EventKind.PYTHON_FUNCTION) & is_format[name])
    rows = rows[holding(evidence.step_windows, known.ranges["start_ns"].to_numpy()[rows]) >= 0]
    rows = rows[nearest_above(known.parent, kind == EventKind.CPU_OP, rows) != NO_PARENT] if len(rows) else rows
    if not len(rows):
        return
    stacks = known.ranges[rows].sort("start_ns")
    is_stack = np.zeros(len(kind), np.bool_)
    is_stack[rows] = True
    inside = itself_or_above(known.parent, is_stack, np.arange(len(kind))) != NO_PARENT
    events = known.ranges["event_index"].filter(pl.Series(inside))
    explained = intersection(union_of(stacks), evidence.idle)
    first = stacks.row(0, named=True)
    host = evidence.activity_at(first["start_ns"])
    yield Case(
        explained,
        evidence.share(explained),
        count=len(stacks),
        place=Place(host.get("module"), None, None, host.get("frame"), first["event_index"], first["start_ns"]),
        change=Remove(pl.col("event_index").is_in(events.implode())),
        words={"is_idle": evidence.has_device_work, "per_step": len(stacks) / evidence.step_count},
    )


def _say(cases: Sequence[RankCase]) -> Said:
    return Said(
        f"{who_waits(cases[0])} while autograd's anomaly detection records the Python stack of each operator "
        f"({cases[0].words['per_step']:,.0f} times per step)",
        "Remove torch.autograd.set_detect_anomaly(True), torch.autograd.detect_anomaly() or the trainer's detect_anomaly; they are "
        "for debugging. They also check each gradient for NaN.",
    )


RULES = (
    Rule(
        "anomaly_detection",
        "time in which all devices are idle while operators record the Python stack for autograd's anomaly detection",
        threshold=0.02,
        unit=OF_THE_STEP,
        reason="Without anomaly detection, no operator formats a stack.",
        source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#disable-debugging-apis",
        check=anomaly_detection,
        say=_say,
        precedence=0,
        needs=needs_stacks,
    ),
)
"""The rule about anomaly detection."""
