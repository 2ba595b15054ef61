"""Count how often torch.compile compiled each frame, and list why it recompiled the frame."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.compiled_regions.compile_log import CompileLog

_SUMS = ("call_count", "compilation_count", "compilation_ns")


def frames(regions: pl.DataFrame, compilations: pl.DataFrame, log: CompileLog) -> pl.DataFrame:
    """Return the columns of `per_frame` for frames that were called or compiled during the recording.

    Args:
        regions: one row per region, with the columns region and call_count.
        compilations: one row per compilation, with the columns region (null if not recorded) and host_total_ns.
        log: the function of each region, and why the region was recompiled.
    """
    zero = pl.lit(0, pl.Int64)
    called = regions.select("region", pl.col("call_count").cast(pl.Int64), compilation_count=zero, compilation_ns=zero)
    compiled = compilations.drop_nulls("region").select(
        "region", call_count=zero, compilation_count=pl.lit(1, pl.Int64), compilation_ns="host_total_ns"
    )
    parts = pl.col("region").str.split_exact("/", 1).struct
    numbers = {"compiled_frame": parts.field("field_0"), "version": parts.field("field_1")}
    sums = pl.concat([called, compiled]).with_columns(numbers[name].cast(pl.Int64).alias(name) for name in numbers)
    per_frame = sums.group_by("compiled_frame").agg(
        pl.col("version").max().alias("recompilation_count"), pl.col(*_SUMS).sum()
    )
    is_said = not compilations["region"].null_count()
    known = [pl.when(pl.lit(is_said)).then(name).alias(name) for name in _SUMS[1:]]
    described = per_frame.with_columns(known).join(
        _described(per_frame["compiled_frame"], log), on="compiled_frame", how="left"
    )
    return described.sort("recompilation_count", "call_count", "compiled_frame", descending=[True, True, False])


def _described(numbers: pl.Series, log: CompileLog) -> pl.DataFrame:
    schema = {"compiled_frame": pl.Int64, "compiled_function": pl.String, "recompile_reason": pl.String}
    return pl.DataFrame([(frame, *_of_frame(log, frame)) for frame in numbers], schema=schema, orient="row")


def _of_frame(log: CompileLog, frame: int) -> tuple[str | None, str | None]:
    """Return the function of a frame, and the reasons why its versions were compiled, one per line."""
    versions = {region: said for region, said in log.compilations.items() if region.startswith(f"{frame}/")}
    functions = {said.function for said in versions.values()}
    in_order = sorted(versions, key=lambda region: int(region.partition("/")[2]))
    reasons = [f"{region} after {versions[region].reason}" for region in in_order if versions[region].reason]
    return (functions.pop() if len(functions) == 1 else None), "\n".join(reasons) or None
