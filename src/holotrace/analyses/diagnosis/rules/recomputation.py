"""The rule about forward work that activation checkpointing repeats, on devices or on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, RankCase, Rule, Said
from holotrace.analyses.diagnosis.rules.device.device_cases import DURATION, case_of, idle_while_called, share_of
from holotrace.analyses.diagnosis.rules.host.host_operators import case_of_operators
from holotrace.enrich.events.event_rows import rows_of_events
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.enrich.operator_costs.phases import phases
from holotrace.units import percent_text


def recomputation(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for forward work that activation checkpointing repeats in the backward pass."""
    if evidence.computes_on_host:
        yield from _on_the_host(evidence)
        return
    rows = evidence.costed.filter(pl.col("phase") == "recompute").with_columns(saved_ns=DURATION.cast(pl.Float64))
    if len(rows):
        share = share_of(rows["duration_ns"], evidence.costed["duration_ns"])
        words = {"share": share, "of": "the device's work"}
        yield case_of(evidence, rows, words=words, waits=idle_while_called(evidence, rows))


def _on_the_host(evidence: RankEvidence) -> Iterator[Case]:
    operators = evidence.while_idle.filter(pl.col("cause") == "operator")
    rows = rows_of_events(call_stacks(evidence.rank_trace), operators["event_index"])
    repeated = operators.filter(phases(evidence.rank_trace, pl.Series(rows)) == "recompute")
    if len(repeated):
        case = case_of_operators(evidence, repeated)
        yield replace(case, words={**case.words, "of": "the step"})


def _say(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"activation checkpointing computes forward operators a second time ({percent_text(words['share'])} of {words['of']})",
        "If memory allows, checkpoint fewer blocks, or recompute only cheap operators (selective checkpointing: "
        "torch.utils.checkpoint.create_selective_checkpoint_contexts).",
    )


RULES = (
    Rule(
        "recomputation",
        "forward work that the backward pass computes again",
        threshold=0.05,
        unit=OF_THE_STEP,
        reason="Checkpointing all blocks costs a quarter to a third of the step, and is often necessary.",
        source="https://docs.pytorch.org/docs/stable/checkpoint.html",
        check=recomputation,
        say=_say,
        precedence=0,
        confidence="low",
    ),
)
"""The rule about activation checkpointing."""
