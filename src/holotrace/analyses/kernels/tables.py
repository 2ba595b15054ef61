"""Kernels: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.kernels.compute import Kernels, joined_over_ranks
from holotrace.questions.tables import View, without_wholly_known

_FEW_BLOCKS = 0.01

_MEANS = (
    "mean_blocks_per_sm",
    "blocks_per_sm_known_fraction",
    "mean_occupancy_fraction",
    "occupancy_known_fraction",
)


def kernels_by_name(result: Kernels) -> pl.DataFrame:
    """Return the kernels over all ranks, the longest first."""
    columns = ("fraction", "call_count", "total_ns", "mean_ns", "min_ns", "max_ns")
    table = _with_means(joined_over_ranks(result)).select("name", _cores(), *columns, *_MEANS, "source_line")
    return _without_unknown_lines(without_wholly_known(table))


def kernels_by_launch(result: Kernels) -> pl.DataFrame:
    """Return the kernels of each rank by operator and launch shape, the longest first; unknown operators are blank."""
    shape = ("grid", "block", "registers_per_thread", "shared_memory_bytes")
    eligible = pl.when("is_operator_eligible").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("is_operator_eligible")
    columns = (
        "rank",
        "name",
        "operator",
        "call_count",
        "total_ns",
        _cores(),
        eligible,
        *_MEANS,
        *shape,
        "mean_ns",
        "source_line",
    )
    return _without_unknown_lines(without_wholly_known(_with_means(result.per_launch_shape).select(columns)))


def _without_unknown_lines(table: pl.DataFrame) -> pl.DataFrame:
    is_known = table["source_line"].null_count() < table.height
    return table if is_known else table.drop("source_line")


def _cores() -> pl.Expr:
    uses = pl.col("uses_tensor_cores")
    return (
        pl.when(uses)
        .then(pl.lit("yes"))
        .when(~uses)
        .then(pl.lit("no"))
        .otherwise(pl.lit("unknown"))
        .alias(uses.meta.output_name())
    )


def _with_means(table: pl.DataFrame) -> pl.DataFrame:
    """Round the blocks per SM to two digits, but never to 0, because even one block uses the device a little."""
    blocks = pl.col("mean_blocks_per_sm")
    return table.with_columns(pl.when(blocks < _FEW_BLOCKS).then(blocks.round_sig_figs(2)).otherwise(blocks.round(2)))


VIEWS = (
    View("Kernels by name, over all ranks", kernels_by_name, "total_ns"),
    View("Kernels by operator and launch shape", kernels_by_launch, "total_ns", is_detail=True),
)
