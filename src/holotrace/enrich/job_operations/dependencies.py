"""Infer from the kinds of operations which operations wait for which."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from holotrace.enrich.job_operations.messages import LANE, WITHIN_RANK, Messages, messages_of
from holotrace.enrich.job_operations.table import AFTER_PASSES, BEFORE_PASSES, MESSAGES, PASSES


class Dependencies(NamedTuple):
    """The dependencies between operations.

    after     operation `row` (uint32) starts only after operation `before` (uint32) has ended
    instance  int64, per operation: number of its communication, the same on all ranks; null if it does not communicate
              or the other ranks are unknown
    waits     bool, per operation: whether it waits for the other ranks of its communication; if false, they may wait
              for it, but it does not wait for them
    is_alone  bool, per operation: whether it communicates only with ranks that are not in the table; its time may then
              include waiting
    """

    after: pl.DataFrame
    instance: pl.Series
    waits: pl.Series
    is_alone: pl.Series


def by_kind(operations: pl.DataFrame) -> Dependencies:
    """Return the dependencies that follow from the kinds of operations and their order on each rank.

    The model comes from J. Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI'25,
    https://www.usenix.org/conference/osdi25/presentation/lin-jinkun:

        data-loading, preparation   before the first pass
        passes                      one after another on their rank
        messages                    one after another on their rank, separately for each kind
        receive                     before the pass that needs its data, and after the previous pass of that kind
        send                        after the pass that computes its content
        first backward message      after the pass two places before the first backward pass: in F0 F1 F2 B0, after F1
        params-all-gather           before the first forward pass of its chunk
        grads-reduce-scatter        if there is a separate-grads-all-reduce: after the last backward pass of its chunk;
                                    else after the embedding gradients
        gc, ..., optimizer          in the order of `AFTER_PASSES`, after the last pass

    Depending on its kind, a communication connects the sender and the receiver of a message, the replicas of a stage,
    the first and last stage (embedding gradients), or all ranks (gradient clipping).

    Args:
        operations: the result of `operations_table`, with the row number in an added column `row` (uint32).
    """
    passes, messages = passes_of(operations), operations.filter(pl.col("kind").is_in(MESSAGES))
    matched = messages_of(messages, passes)
    overlaps = operations["kind"].eq("separate-grads-all-reduce").any()
    edges = [
        _chained(passes),
        _chained(messages.sort("start_ns", "sequence"), "kind"),
        *_before_passes(operations, passes),
        *_of_messages(matched),
        _first_backward_message(passes, messages),
        *_of_replicas(operations, passes, overlaps=overlaps),
        *_after_passes(operations, passes, overlaps=overlaps),
    ]
    after = pl.concat(edge.select("row", "before") for edge in edges).drop_nulls().unique()
    yes, no = (pl.repeat(value, len(operations), eager=True) for value in (True, False))
    return Dependencies(after, _instances(operations, matched), yes.alias("waits"), no.alias("is_alone"))


def passes_of(operations: pl.DataFrame) -> pl.DataFrame:
    """Return the passes in their order on each rank, and whether each pass needs a receive or a send.

    Returns:
        The rows of `operations` that are passes, and:

        direction   str   forward or backward; null for weight-compute, which exchanges no messages
        number      int64 number of the pass among the passes of its kind on the rank, from 0
        needs_recv  bool  whether another chunk computes the input of the pass
        needs_send  bool  whether another chunk needs the output of the pass
        previous    uint32  row of the previous pass of the same kind
    """
    passes = operations.filter(pl.col("kind").is_in(PASSES)).sort(*WITHIN_RANK, "start_ns", "sequence", "kind")
    is_first, is_last = pl.col("global_chunk") == 0, pl.col("global_chunk") == pl.col("global_chunk").max().over("step")
    is_forward = pl.col("kind") == "forward-compute"
    own = (*WITHIN_RANK, "kind")
    return passes.with_columns(
        pl.col("kind").str.extract("^(forward|backward)").alias("direction"),
        pl.int_range(pl.len()).over(own).alias("number"),
        pl.col("row").shift(1).over(own).alias("previous"),
        pl.when(is_forward).then(~is_first).otherwise(~is_last).alias("needs_recv"),
        pl.when(is_forward).then(~is_last).otherwise(~is_first).alias("needs_send"),
    )


def _chained(ordered: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Make each row depend on the previous row on its rank."""
    return ordered.with_columns(pl.col("row").shift(1).over(*WITHIN_RANK, *keys).alias("before"))


def _before_passes(operations: pl.DataFrame, passes: pl.DataFrame) -> list[pl.DataFrame]:
    early = operations.filter(pl.col("kind").is_in(BEFORE_PASSES)).sort("start_ns", "sequence")
    last = early.group_by(WITHIN_RANK).agg(pl.col("row").last().alias("before"))
    return [_chained(early), passes.group_by(WITHIN_RANK).agg(pl.col("row").first()).join(last, on=WITHIN_RANK)]


def _of_messages(matched: Messages) -> list[pl.DataFrame]:
    receives = matched.table.filter("is_recv")
    return [
        receives.select(pl.col("pass").alias("row"), pl.col("row").alias("before")),
        receives.select("row", pl.col("previous").alias("before")),
        matched.table.filter(~pl.col("is_recv")).select("row", pl.col("pass").alias("before")),
    ]


def _first_backward_message(passes: pl.DataFrame, messages: pl.DataFrame) -> pl.DataFrame:
    placed = passes.with_columns(pl.int_range(pl.len()).over(WITHIN_RANK).alias("place"))
    is_backward = pl.col("kind") == "backward-compute"
    first = placed.filter(is_backward).group_by(WITHIN_RANK).agg((pl.col("place").min() - 2).alias("place"))
    before = placed.join(first, on=[*WITHIN_RANK, "place"]).select(*WITHIN_RANK, pl.col("row").alias("before"))
    backward = messages.filter(pl.col("kind").str.starts_with("backward")).sort("start_ns", "sequence")
    return backward.group_by(*WITHIN_RANK, "kind").agg(pl.col("row").first()).join(before, on=WITHIN_RANK)


def _of_replicas(operations: pl.DataFrame, passes: pl.DataFrame, *, overlaps: bool) -> list[pl.DataFrame]:
    """Return the dependencies of parameter gathers, gradient reductions, and passes that use or produce their data."""
    ordered = operations.sort("start_ns", "sequence")
    parameters = ordered.filter(pl.col("kind") == "params-all-gather")
    gradients = ordered.filter(pl.col("kind") == "grads-reduce-scatter")
    of_chunk = [*WITHIN_RANK, "chunk"]
    forward, backward = (passes.filter(pl.col("kind") == f"{way}-compute") for way in ("forward", "backward"))
    firsts = forward.sort("start_ns").group_by(of_chunk).agg(pl.col("row").first())
    gathered = parameters.group_by(of_chunk).agg(pl.col("row").last().alias("before")).join(firsts, on=of_chunk)
    lasts = backward.sort(_END).group_by(of_chunk).agg(pl.col("row").last().alias("before"))
    reduced = gradients.group_by(of_chunk).agg(pl.col("row").first()).join(lasts, on=of_chunk)
    chain = _chained(ordered.filter(pl.col("kind").is_in(["params-all-gather", "grads-reduce-scatter"])))
    return [chain, gathered, *([reduced] if overlaps else [])]


_END = pl.col("start_ns") + pl.col("duration_ns")


def _after_passes(operations: pl.DataFrame, passes: pl.DataFrame, *, overlaps: bool) -> list[pl.DataFrame]:
    kinds = [kind for kind in AFTER_PASSES if not (overlaps and kind == "grads-reduce-scatter")]
    place = pl.col("kind").replace_strict({kind: place for place, kind in enumerate(kinds)}, return_dtype=pl.Int64)
    ends = operations.filter(pl.col("kind").is_in(kinds)).with_columns(place.alias("place")).sort("place", "sequence")
    last = passes.sort(_END).group_by(WITHIN_RANK).agg(pl.col("row").last().alias("before"))
    begins = ends.group_by(WITHIN_RANK).agg(pl.col("row").first()).join(last, on=WITHIN_RANK)
    if not overlaps:
        return [_chained(ends), begins]
    reduced = operations.filter(pl.col("kind") == "grads-reduce-scatter").sort("start_ns", "sequence")
    lasts = reduced.group_by(WITHIN_RANK).agg(pl.col("row").last().alias("before"))
    following = ends.filter(pl.col("kind") != "gc").group_by(WITHIN_RANK).agg(pl.col("row").first())
    return [_chained(ends), begins, following.join(lasts, on=WITHIN_RANK)]


_SPANS = {
    "params-all-gather": ("step", "stage", LANE),
    "grads-reduce-scatter": ("step", "stage", LANE),
    "separate-grads-all-reduce": ("step", "stage", LANE),
    "embedding-grads-all-reduce": ("step", "dp_rank", LANE),
    "optimizer-clip-main-grad": ("step",),
}
"""For each kind of communication, the columns in which all ranks of one communication agree."""


def _instances(operations: pl.DataFrame, matched: Messages) -> pl.Series:
    lanes = operations.with_columns(_lane(), pl.int_range(pl.len()).over(*WITHIN_RANK, "kind").alias("place"))
    everywhere = ("step", "stage", "dp_rank", LANE)
    keys = [
        pl.when(pl.col("kind").is_in([kind for kind, span in _SPANS.items() if column in span])).then(column)
        for column in everywhere
    ]
    spans = lanes.filter(pl.col("kind").is_in(list(_SPANS))).select(
        "row", pl.struct("kind", "place", *keys).alias("key")
    )
    numbered = pl.concat(
        [
            spans.select("row", (2 * pl.col("key").rank("dense").cast(pl.Int64)).alias("number")),
            matched.pairs.select("row", (2 * pl.col("pair").cast(pl.Int64) + 1).alias("number")),
        ]
    )
    joined = operations.select("row").join(numbered, on="row", how="left", maintain_order="left")
    return joined["number"].rank("dense").cast(pl.Int64).alias("instance") - 1


def _lane() -> pl.Expr:
    """Number the ranks of each stage and replica from 0."""
    return (pl.col("rank").rank("dense").over("dp_rank", "stage") - 1).alias(LANE)
