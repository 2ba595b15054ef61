"""Rules about kernels that better code would avoid or speed up: unfused chains, casts, copies between layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from holotrace.algorithms.intervals import Intervals, intersection, union_of
from holotrace.analyses.diagnosis.evidence.kernel_evidence import ATTAINABLE_BANDWIDTH, BEST_BANDWIDTH, inputs_of
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, RankCase, Rule, Said
from holotrace.analyses.diagnosis.rules.device.device_cases import (
    DURATION,
    FLOOR,
    LAYOUT_KERNELS,
    LEAST_SHARE,
    attained,
    case_of,
    gaps_before,
    matches,
    share_of,
)
from holotrace.analyses.diagnosis.rules.device.products import needs_costs
from holotrace.enrich.collectives.element_types import type_name
from holotrace.schema import KernelKind
from holotrace.units import percent_text

_ELEMENTWISE = r"elementwise_kernel|triton_poi_|CUDAFunctor|pointwise"
_FUSIBLE = rf"{_ELEMENTWISE}|CatArrayBatchedCopy|native::reduce_kernel"
"""Kernels that a compiler fuses: element-wise kernels, and the concatenations and reductions between them.

Normalisations and rotary embeddings consist of all three kinds."""
_LONGEST_GAP_NS = 50_000
"""Two kernels with a longer gap between them are not in one chain, because a launch takes 5 µs, or up to 50 µs when
profiled."""
_LEAST_CHAIN = 8
_NO_LINK = r"^aten::(fill|zero|copy)_$|^aten::add_$"
"""Operators whose kernels are never part of a chain: initialisation, in-place copies, and sums of gradients."""
_ATTAINABLE_WINDOWS = 0.3
"""Share of the peak bandwidth that normalisations and pooling of images reach in channels-last layout."""
_BEST_WINDOWS = 0.6
"""Normalisations and pooling reach at most this share of the peak bandwidth: two thirds of a simple kernel's share.

A simple kernel reads its input once and writes its result once, but a normalisation reads its input twice.
"""
_OF_IMAGES = r"batch_norm|pool"
_SLOW_MEMORY = 0.3
_IRREGULAR = (
    r"pool|batch_norm|embedding|index|scatter|gather|sort|topk|unique|nonzero|masked|cumsum|upsample|roll|grid_sampl"
)
"""Operators that cannot reach the peak bandwidth: they read scattered or overlapping elements, or read their inputs twice."""
_SHORTEST_CALL_NS = 20_000


def unfused_chains(evidence: RankEvidence) -> Iterator[Case]:
    """Yield one case for all chains of element-wise kernels, each of which could be a single kernel."""
    chains = _chains(evidence.costed)
    if chains.is_empty():
        return
    # The fused kernel reads and writes about as much as one kernel of the chain.
    kept = pl.when(pl.int_range(pl.len()).over("chain") == 0).then(DURATION).otherwise(0)
    rows = chains.with_columns(saved_ns=DURATION - kept)
    longest = int(rows["chain"].value_counts()["count"].max() or 0)  # type: ignore[arg-type]
    yield case_of(evidence, rows, words={"longest": longest}, waits=_waits_between(evidence, rows))


def _chains(work: pl.DataFrame) -> pl.DataFrame:
    """Return the chains of at least 8 consecutive fusible kernels on a stream, one row per kernel, with the chain's number."""
    is_left_out = (work["phase"] == "optimizer").fill_null(value=False) | matches(work["operator"], _NO_LINK)
    fits = matches(work["kernel"], _FUSIBLE) & ~is_left_out
    on_stream = work.select("device", "stream", "start_ns", "end_ns", place=pl.int_range(pl.len()), fits=fits)
    on_stream = on_stream.sort("device", "stream", maintain_order=True)  # the rows are already sorted by start
    same_stream = (pl.col("device") == pl.col("device").shift()) & (pl.col("stream") == pl.col("stream").shift())
    is_next = pl.col("start_ns") - pl.col("end_ns").shift() <= _LONGEST_GAP_NS
    continues = same_stream & is_next & pl.col("fits") & pl.col("fits").shift()
    numbered = on_stream.with_columns(chain=(~continues.fill_null(value=False)).cum_sum()).filter("fits")
    long = numbered.filter(pl.len().over("chain") >= _LEAST_CHAIN)
    return work[long["place"]].with_columns(long["chain"])


def _waits_between(evidence: RankEvidence, rows: pl.DataFrame) -> Intervals:
    """Return the idle time between the first and the last kernel of each chain."""
    spans = rows.group_by("chain").agg(pl.col("start_ns").min(), pl.col("end_ns").max())
    return intersection(union_of(spans), evidence.idle)


def casts(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for copies that convert the element type."""
    rows = _copies(evidence, differ_in_type=True).with_columns(saved_ns=DURATION.cast(pl.Float64))
    if len(rows):
        key = rows["key"][int(rows["duration_ns"].arg_max() or 0)]
        types = inputs_of(evidence.rank_trace, rows["key"])[key].types
        words = {"to": type_name(str(types[0])), "of": type_name(str(types[1]))}
        yield case_of(evidence, rows, words=words, waits=gaps_before(evidence, rows))


def transposes(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for copies that change only the layout."""
    rows = _copies(evidence, differ_in_type=False).with_columns(saved_ns=DURATION.cast(pl.Float64))
    if len(rows):
        yield case_of(evidence, rows, waits=gaps_before(evidence, rows))


def _copies(evidence: RankEvidence, *, differ_in_type: bool) -> pl.DataFrame:
    copies = evidence.costed.filter(
        (pl.col("operator") == "aten::copy_") & (pl.col("kernel_kind") == KernelKind.COMPUTATION)
    )
    known = inputs_of(evidence.rank_trace, copies["key"])
    chosen = []
    for key, (_, strides, types) in known.items():
        if len(types) > 1 and all(types[:2]):
            is_cast = types[0] != types[1]
            is_moved = len(strides) > 1 and strides[0] != strides[1]
            if is_cast if differ_in_type else is_moved and not is_cast:
                chosen.append(key)
    return copies.filter(pl.col("key").is_in(chosen))


def channels_first(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for conversions of images between layouts, and for the slow normalisations and pooling around them."""
    work = evidence.costed
    is_conversion = pl.col("kernel").str.contains(LAYOUT_KERNELS) & ~pl.col("kernel").str.contains("AddPadding")
    if work.filter(is_conversion).is_empty():
        return
    is_slow = pl.col("operator").str.contains(_OF_IMAGES).fill_null(value=False) & FLOOR.is_not_null()
    whole = pl.when(is_conversion).then(DURATION.cast(pl.Float64))
    rows = work.filter(is_conversion | is_slow).with_columns(
        whole.otherwise(of_call).alias(column)
        for column, of_call in zip(("saved_ns", "most_ns"), attained(_ATTAINABLE_WINDOWS, _BEST_WINDOWS), strict=True)
    )
    conversions = work.filter(is_conversion)
    share = float(conversions["duration_ns"].sum()) / evidence.time_ns
    words = {"conversions": conversions.height / evidence.step_count, "share": share}
    yield case_of(evidence, rows.filter(pl.col("most_ns") > 0), words=words)


def slow_memory_kernels(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for each memory-bound operator with long calls that reach less than 30 % of the peak bandwidth."""
    is_regular = ~pl.col("operator").str.contains(_IRREGULAR).fill_null(value=True)
    is_bound = pl.col("cores").is_in(["vector", "copy"]) & FLOOR.is_not_null() & is_regular
    per_call = DURATION.sum().over("row")
    is_slow = (FLOOR.sum().over("row") < _SLOW_MEMORY * per_call) & (per_call > _SHORTEST_CALL_NS)
    slow = evidence.costed.filter(is_bound & is_slow & (pl.col("kernel_kind") == KernelKind.COMPUTATION))
    for (operator,), rows in slow.group_by("operator", maintain_order=True):
        costed = rows.with_columns(*attained(ATTAINABLE_BANDWIDTH, BEST_BANDWIDTH))
        share = share_of(costed["floor_ns"], costed["duration_ns"])
        yield case_of(evidence, costed, subject=str(operator), words={"attained": share})


def _say_chains(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"{words['count']:,.0f} element-wise and similar kernels per step run in chains of up to {words['longest']}, "
        "although a single kernel could replace each chain",
        "Compile this function with torch.compile, which fuses element-wise operations.",
    )


def _say_casts(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"{words['count']:,.0f} kernels per step only convert element types, mostly {words['of']} to {words['to']}",
        "Keep tensors in one type across consecutive operators, or compile the model with torch.compile, which fuses "
        "conversions into other kernels.",
    )


def _say_transposes(cases: Sequence[RankCase]) -> Said:
    return Said(
        f"{cases[0].words['count']:,.0f} kernels per step only copy tensors into another layout",
        "Look for .contiguous(), .clone() and reshape() of permuted tensors. Create each tensor in the layout that the next "
        "operator needs, or compile the model with torch.compile.",
    )


def _say_channels_first(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"images are stored channels first: {words['conversions']:,.0f} kernels per step convert them for the convolutions "
        f"({percent_text(words['share'])} of the step), and normalisations and pooling are slower in this layout",
        "Call model.to(memory_format=torch.channels_last), and images.to(memory_format=torch.channels_last) on each batch.",
    )


def _say_slow_memory(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"{words['operator']} reaches only {percent_text(words['attained'])} of the peak memory bandwidth "
        f"(kernel {words['kernel']})",
        "Make the operator's inputs contiguous, or compile the calling function with torch.compile to get another kernel.",
    )


_TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"

RULES = (
    Rule(
        "unfused_chain",
        "chains of eight or more element-wise kernels, concatenations and reductions in a row on one stream, outside "
        "the optimizer",
        threshold=LEAST_SHARE,
        unit=OF_THE_STEP,
        reason="Few models need eight element-wise operations in a row, and each operation reads and writes memory again.",
        source=_TUNING,
        check=unfused_chains,
        say=_say_chains,
    ),
    Rule(
        "casts",
        "kernels that only convert element types",
        threshold=0.1,
        unit=OF_THE_STEP,
        reason="Autocast alone spends 5 to 10 % of the step converting weights and activations.",
        source="https://docs.pytorch.org/docs/stable/amp.html",
        check=casts,
        say=_say_casts,
        needs=needs_costs,
        confidence="medium",
    ),
    Rule(
        "transposes",
        "kernels that only copy tensors into another layout",
        threshold=0.05,
        unit=OF_THE_STEP,
        reason="Attention permutes its heads once per pass, which takes less than 5 % of the step.",
        source="https://docs.pytorch.org/docs/stable/tensor_view.html",
        check=transposes,
        say=_say_transposes,
        needs=needs_costs,
        confidence="medium",
    ),
    Rule(
        "channels_first",
        "kernels that convert images between layouts for convolutions, and the slow normalisations and pooling around them",
        threshold=LEAST_SHARE,
        unit=OF_THE_STEP,
        reason="In channels-last layout, tensor cores need no conversions at all.",
        source="https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
        check=channels_first,
        say=_say_channels_first,
        precedence=0,
    ),
    Rule(
        "slow_memory_kernels",
        "memory-bound operators that take more than 20 µs and reach less than 30 % of the peak bandwidth",
        threshold=0.05,
        unit=OF_THE_STEP,
        reason="Simple kernels reach 70 % of the peak bandwidth, and reductions reach 40 %. A better kernel is not worth "
        "the effort if it saves less than 5 % of the step.",
        source=_TUNING,
        check=slow_memory_kernels,
        say=_say_slow_memory,
        precedence=2,
        needs=needs_costs,
        confidence="medium",
    ),
)
"""These rules find kernels that better code would avoid or speed up."""
