"""The rule about attention that is not fused into one kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT
from holotrace.analyses.diagnosis.evidence.kernel_evidence import rows_inside
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, RankCase, Rule, Said
from holotrace.analyses.diagnosis.rules.device.device_cases import DURATION, LEAST_SHARE, case_of, idle_while_called
from holotrace.analyses.diagnosis.rules.device.products import needs_costs
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.host.forward_backward import forward_of_calls
from holotrace.schema import EventKind

_ATTAINABLE, _ATTAINABLE_AMPERE = 0.3, 0.4
"""Share of the peak that fused attention reaches: FlashAttention-2 reports 0.5 to 0.73 on A100, less for short sequences
(https://arxiv.org/abs/2307.08691), and only 0.35 on H100 (https://arxiv.org/abs/2407.08608)."""
_AMPERE = 8
"""Major compute capability of A100 and other Ampere GPUs."""
_BEST = 0.75
"""Share of the peak that the fastest fused attention, FlashAttention-3 on H100, reaches (https://arxiv.org/abs/2407.08608)."""
_MATH = r"scaled_dot_product_attention_math"
_PRODUCT, _SOFTMAX, _OTHER_PRODUCT = (
    r"^aten::(baddbmm|bmm)$",
    r"^aten::_(safe_)?softmax$",
    r"^aten::(addmm|mm|convolution)$",
)


def unfused_attention(evidence: RankEvidence) -> Iterator[Case]:
    """Yield one case for attention, forward and backward, that runs as two products with a softmax between them."""
    operators = pl.concat([_math_attention(evidence), _written_out(evidence)]).unique()
    rows = _work_of(evidence, operators)
    if rows.is_empty() or evidence.peaks is None:
        return
    products = rows.filter((pl.col("cores") == "matrix") & pl.col("flops").is_not_null())
    if products.is_empty():
        return
    rate = evidence.peaks.flops_per_s(_precision(evidence, products), matrix=True)
    if rate:
        attainable = _ATTAINABLE_AMPERE if evidence.capability == _AMPERE else _ATTAINABLE
        fused_at_peak = 1e9 * float(products["flops"].sum()) / rate / float(rows["duration_ns"].sum())
        saved = rows.with_columns(
            saved_ns=DURATION * (1 - min(1.0, fused_at_peak / attainable)),
            most_ns=DURATION * (1 - min(1.0, fused_at_peak / _BEST)),
        )
        yield case_of(evidence, saved, waits=idle_while_called(evidence, rows))


def _work_of(evidence: RankEvidence, operators: pl.Series) -> pl.DataFrame:
    """Return the device work of these forward operators and of their backward operators."""
    work = evidence.costed
    calls = work["row"].filter(work["row"] != NO_PARENT).unique().sort()
    if operators.is_empty() or calls.is_empty():
        return work.clear()
    stacks = call_stacks(evidence.rank_trace)
    forward = pl.Series("forward", forward_of_calls(evidence.rank_trace, calls))
    known = forward.drop_nulls().unique()
    rows_of_forward = of_events(stacks.select("event_index", row=pl.int_range(pl.len())), known)["row"]
    inside = known.filter(rows_inside(evidence.rank_trace, operators, rows_of_forward))
    chosen = rows_inside(evidence.rank_trace, operators, calls) | forward.is_in(inside.implode()).fill_null(value=False)
    return work.filter(pl.col("row").is_in(calls.filter(chosen).implode()))


def _math_attention(evidence: RankEvidence) -> pl.Series:
    """Return the calls of the unfused implementation of `scaled_dot_product_attention`."""
    return _named(evidence, _MATH)["event_index"]


def _written_out(evidence: RankEvidence) -> pl.Series:
    """Return the operators of unfused attention: a batched product, a softmax and another batched product."""
    names = {"product": _PRODUCT, "softmax": _SOFTMAX, "other": _OTHER_PRODUCT}
    parts = [_named(evidence, pattern).with_columns(part=pl.lit(part)) for part, pattern in names.items()]
    ordered = pl.concat(parts).sort("track_id", "start_ns")
    before, after = ordered.shift(), ordered.shift(-1)
    same_track = (before["track_id"] == ordered["track_id"]) & (after["track_id"] == ordered["track_id"])
    is_core = (before["part"] == "product") & (ordered["part"] == "softmax") & (after["part"] == "product") & same_track
    core = is_core.fill_null(value=False)
    spans = pl.DataFrame(
        {
            "track_id": ordered["track_id"].filter(core),
            "start_ns": before["start_ns"].filter(core),
            "last_ns": after["end_ns"].filter(core),
        }
    )
    operators = _named(evidence, "").sort("start_ns")
    within = operators.join_asof(spans.sort("start_ns"), on="start_ns", by="track_id", check_sortedness=False)
    return within.filter(pl.col("end_ns") <= pl.col("last_ns"))["event_index"]


def _named(evidence: RankEvidence, pattern: str) -> pl.DataFrame:
    """Return the operators whose name matches: event_index, track_id, start_ns, end_ns."""
    ids = names_matching(evidence.rank_trace, pattern)
    chosen = (pl.col("kind") == EventKind.CPU_OP) & pl.col("name").is_in(ids.implode())
    return call_stacks(evidence.rank_trace).filter(chosen).select("event_index", "track_id", "start_ns", "end_ns")


def _precision(evidence: RankEvidence, products: pl.DataFrame) -> str | None:
    """Return the precision that a fused kernel would use: 16 bits if any product of the model uses 16 bits."""
    all_products = evidence.costed.filter(pl.col("cores") == "matrix")["precision"].drop_nulls()
    low = next((name for name in ("bfloat16", "float16") if (all_products == name).any()), None)
    return low or products.row(int(np.argmax(products["duration_ns"].to_numpy())), named=True)["precision"]


def _say(_: Sequence[RankCase]) -> Said:
    return Said(
        "attention runs as separate kernels: a product, a softmax and another product, with the whole matrix of scores in "
        "memory",
        "Use torch.nn.functional.scaled_dot_product_attention with 16-bit inputs and without SDPBackend.MATH; pass is_causal=True "
        "instead of a causal mask, and use FlexAttention for other masks.",
    )


RULES = (
    Rule(
        "unfused_attention",
        "attention computed in separate kernels: two products with a softmax between them",
        threshold=LEAST_SHARE,
        unit=OF_THE_STEP,
        reason="Fused attention reads the inputs and writes the result once. Gains below 3 % of a step are smaller "
        "than the variation between steps.",
        source="https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
        check=unfused_attention,
        say=_say,
        precedence=0,
        needs=needs_costs,
    ),
)
"""The rules about attention."""
