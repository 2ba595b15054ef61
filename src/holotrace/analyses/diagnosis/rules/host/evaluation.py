"""The rule about CPU training jobs whose steps include forward passes without gradients, such as validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above
from holotrace.analyses.diagnosis.evidence.main_line import main_line
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, RankCase, Rule, Said
from holotrace.analyses.diagnosis.rules.host.host_operators import case_of_operators
from holotrace.analyses.diagnosis.rules.host.operator_loops import of_the_backward_pass, outside_optimizers
from holotrace.enrich.events.event_rows import of_events, rows_of_events
from holotrace.enrich.host.frames import OF_AUTOGRAD
from holotrace.enrich.job_graph.causes.cause_names import host_ranges
from holotrace.units import percent_text

_LAYERS = (
    r"^aten::(linear|addmm|mm|bmm|matmul|conv\w*|_convolution|lstm|gru|embedding|layer_norm|batch_norm|"
    r"scaled_dot_product_attention|_transformer_encoder_layer_fwd)$"
)
"""Operators that a model's layers run. Code that updates weights or statistics runs other operators."""
_MOST = 0.5


def evaluation_in_steps(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for operators that run on the host without gradients, although the job is training.

    No case is yielded if less than half of the time of these operators is spent in model layers. PyTorch gives
    sequence numbers to operators that run while gradients are enabled, but not to operators under `no_grad`.
    """
    if not evidence.computes_on_host:
        return
    pieces = outside_optimizers(evidence)
    operators = pieces.filter(pl.col("cause") == "operator")
    is_backward = operators["name"].str.starts_with(OF_AUTOGRAD).fill_null(value=False)
    is_numbered = _numbered(evidence, operators["event_index"])
    if not is_backward.any() or not is_numbered.any():
        return  # no training, or the profiler wrote no sequence numbers
    own = operators.filter(~is_backward & ~is_numbered)
    own = own.join(of_the_backward_pass(evidence), on="event_index", how="anti", maintain_order="left")
    length = pl.col("end_ns") - pl.col("start_ns")
    is_layer = pl.col("name").str.contains(_LAYERS).fill_null(value=False)
    if own.is_empty() or own.select(length.filter(is_layer).sum() < _MOST * length.sum()).item():
        return
    case = case_of_operators(evidence, own)
    function = main_line(evidence, own) or case.place.source_line
    yield replace(case, place=case.place._replace(source_line=function))


def _numbered(evidence: RankEvidence, events: pl.Series) -> pl.Series:
    """Return, for each event, whether it or an operator around it has a sequence number.

    Operators that other operators call may have no sequence number of their own.
    """
    recorded = evidence.rank_trace.table("operators", ["event_index", "sequence_number"])
    known = host_ranges(evidence.rank_trace)
    numbers = of_events(recorded, known.ranges["event_index"])["sequence_number"]
    has_number = (numbers >= 0).fill_null(value=False).to_numpy()
    return pl.Series(itself_or_above(known.parent, has_number, rows_of_events(known.ranges, events)) != NO_PARENT)


def _say(cases: Sequence[RankCase]) -> Said:
    words, place = cases[0].words, cases[0].place
    where = f", mostly in {place.source_line}" if place.source_line else f", mostly {words['name']}"
    return Said(
        f"forward passes without gradients take {percent_text(words['share'])} of the step{where}",
        "If this is validation, run it after an epoch or every few hundred steps; for a teacher or target network, compute in "
        "bfloat16, compile it with torch.compile, or store its outputs.",
    )


RULES = (
    Rule(
        "evaluation_in_steps",
        "operators, mostly of a model's layers, that run without gradients during training, in jobs without device "
        "work",
        threshold=0.1,
        unit=OF_THE_STEP,
        reason="Training computes gradients for nearly all operators. If operators without gradients take less than "
        "a tenth of the step, moving them out of the step saves little.",
        source="https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disable-grad-doc",
        check=evaluation_in_steps,
        say=_say,
        precedence=2,
        confidence="medium",
    ),
)
"""The rule about forward passes without gradients."""
