"""Measure the bubble of a pipeline: how long each stage waits for its neighbours, compared with theory."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from holotrace.enrich.collectives.collectives import POINT_TO_POINT

PER_STAGE = {
    "rank": pl.Int32,
    "step": pl.Int64,
    "process_group": pl.String,
    "stage": pl.Int64,
    "stage_count": pl.Int64,
    "microbatch_count": pl.Int64,
    "step_ns": pl.Int64,
    "computation_ns": pl.Int64,
    "transfer_ns": pl.Int64,
    "bubble_ns": pl.Int64,
    "bubble_fraction": pl.Float64,
    "expected_fraction": pl.Float64,
}


def per_stage(
    calls: pl.DataFrame, steps: pl.DataFrame, parts: pl.DataFrame, groups: Mapping[int, list[int]]
) -> pl.DataFrame:
    """Return the bubble of each rank and step.

        bubble             = exposed waiting in sends and receives along the pipeline, without transfers
        bubble_fraction    = bubble / step
        expected_fraction  = (p - 1) / (m + p - 1) for p stages and m microbatches, as in GPipe and 1F1B with equal stages

    The value of m is the number of messages that one stage sends to the next in a step. In a pipeline with v chunks per
    rank (interleaved 1F1B), this number is v times the number of microbatches. The formula is then still correct,
    because interleaving divides the length of the bubble by v.

    Source: D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters", SC'21, section 2.2,
    https://arxiv.org/abs/2104.04473

    Args:
        calls: rank, step, axis, group, collective and peer.
        steps: rank, step, step_ns and computation_ns.
        parts: rank, step, axis, wait_ns and transfer_ns: exposed time by axis.
        groups: the ranks of each pipeline's group, in order.
    """
    stages = _stages(groups)
    on_pipe = parts.filter(pl.col("axis") == "pp").select("rank", "step", "wait_ns", "transfer_ns")
    counted = stages.join(steps, on="rank").join(on_pipe, on=["rank", "step"], how="left")
    known = counted.join(_microbatches(calls, stages), on=["group", "step"], how="left").with_columns(
        pl.col("transfer_ns").fill_null(0), pl.col("wait_ns").fill_null(0).alias("bubble_ns")
    )
    idle_slots, microbatches = pl.col("stage_count") - 1, pl.col("microbatch_count")
    return known.with_columns(
        (pl.col("bubble_ns") / pl.col("step_ns")).alias("bubble_fraction"),
        (idle_slots / (microbatches + idle_slots)).alias("expected_fraction"),
    )


def _stages(groups: Mapping[int, list[int]]) -> pl.DataFrame:
    rows = [(group, rank, stage, len(ranks)) for group, ranks in groups.items() for stage, rank in enumerate(ranks)]
    types = {"group": pl.UInt64, "rank": pl.Int32, "stage": pl.Int64, "stage_count": pl.Int64}
    return pl.DataFrame(rows, types, orient="row")


def _microbatches(calls: pl.DataFrame, stages: pl.DataFrame) -> pl.DataFrame:
    """Return, for each pipeline and step, the largest number of forward messages that any rank sends or receives.

    Forward messages go from one stage to the next.
    """
    place = stages.select("group", "rank", "stage")
    messages = calls.filter((pl.col("axis") == "pp") & pl.col("collective").is_in(POINT_TO_POINT))
    ends = messages.join(place, on=["group", "rank"]).join(
        place.rename({"rank": "peer", "stage": "peer_stage"}), on=["group", "peer"]
    )
    step = pl.col("peer_stage") - pl.col("stage")
    forward = pl.when(pl.col("collective") == "send").then(step).otherwise(-step) == 1
    counts = ends.filter(forward).group_by("group", "step", "rank", "collective").len("microbatch_count")
    return counts.group_by("group", "step").agg(pl.col("microbatch_count").max().cast(pl.Int64))
