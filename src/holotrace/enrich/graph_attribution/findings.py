"""Reports how much of the time in CUDA and HIP graphs is attributed to operators, and how to attribute more."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT
from holotrace.enrich.graph_attribution.attribution import replays
from holotrace.enrich.graph_attribution.grafts import grafts, may_graft
from holotrace.enrich.graph_attribution.inferred_layers import inferred_layers
from holotrace.enrich.graph_attribution.references import CAPTURE, KERNEL_NAME, LAYER, NODE_ID, WITHOUT_GRAPH
from holotrace.enrich.graph_attribution.replays import replayed_work
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace
from holotrace.units import duration_text, percent_text

_BY = {
    NODE_ID: "by annotations of the graph's nodes",
    CAPTURE: "by the trace of the capture",
    WITHOUT_GRAPH: "by a recording of the same work without graphs",
    KERNEL_NAME: "by the names of compiled kernels",
}
_NEARLY_ALL = 0.95
_WAY_OUT = (
    "record the capture of the graphs with torch.profiler (record_shapes=True, with_stack=True) and pass its trace as "
    "capture=PATH (--capture PATH); vLLM records it with --profiler-config.capture_torch_profiler True, SGLang with "
    "--enable-profile-cuda-graph. A trace of the same step without graphs also works"
)


@derived
def graph_findings(rank_trace: RankTrace) -> tuple[str, ...]:
    """Return findings on how much of the time in CUDA and HIP graphs is attributed, and how to attribute the rest."""
    if not may_graft(rank_trace) or replayed_work(rank_trace).is_empty():
        return ()
    work = attributed_work(rank_trace)
    total_ns = int(work["duration_ns"].sum())
    by = (
        work.drop_nulls("how")
        .group_by("how")
        .agg(pl.col("duration_ns").sum())
        .sort("duration_ns", "how", descending=True)
    )
    inferred_ns = int(by.filter(how=LAYER)["duration_ns"].sum())
    by = by.filter(pl.col("how") != LAYER)
    known_ns = int(by["duration_ns"].sum())
    share = known_ns / total_ns if total_ns else 0.0
    said = f"graphs replayed {work.height:,} kernels, copies and memsets, {duration_text(total_ns)} of device time"
    ways = ", ".join(f"{percent_text(ns / max(1, total_ns))} {_BY[how]}" for how, ns in by.iter_rows())
    attributed = f"{percent_text(share)} of it is attributed to operators{f': {ways}' if ways else ''}"
    layers = f". {_by_layer(rank_trace, percent_text(inferred_ns / max(1, total_ns)))}" if inferred_ns else ""
    rest = "" if share >= _NEARLY_ALL else f". To attribute the rest, {_WAY_OUT}"
    return (f"{said}; {attributed}{layers}{rest}", *_doubts(rank_trace))


def _by_layer(rank_trace: RankTrace, share: str) -> str:
    counts = inferred_layers(rank_trace)["layer_count"].unique().sort().to_list()
    of_counts = " or ".join(map(str, counts))
    return (
        f"For another {share}, only the layer is known; it is inferred from kernels that repeat in the same order, as "
        f"in a model with {of_counts} layers"
    )


def _doubts(rank_trace: RankTrace) -> Iterator[str]:
    of_replays = replays(rank_trace)
    doubtful = sum(replay.match is not None and not replay.match.is_sure for replay in of_replays)
    if doubtful:
        yield (
            f"for {doubtful:,} of {len(of_replays):,} graph replays, the shapes may belong to another batch size, "
            "because several captures contain the same kernels. Write the batch size (for example, bs=8) into the "
            "annotations of replays and captures"
        )


def attributed_work(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the work of graphs, in the order of `replayed_work`: event_index, launch_index, duration_ns and `how`."""
    work, owners = replayed_work(rank_trace), grafts(rank_trace).owners
    how = pl.when(owners["graft"] != NO_PARENT).then(owners["how"]).alias("how")
    return work.select("event_index", "launch_index", (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"), how)
