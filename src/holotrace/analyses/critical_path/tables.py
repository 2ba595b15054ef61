"""Critical path: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.critical_path.across_ranks import JobCriticalPath
from holotrace.analyses.critical_path.compute import CriticalPath
from holotrace.questions.result_columns import PATH_CLASSES
from holotrace.questions.tables import View


def path_per_rank(result: CriticalPath) -> pl.DataFrame:
    """Return the length of each rank's critical path, and the share of each class in it."""
    occurring = set(result.per_class.filter(pl.col("total_ns") > 0).get_column("path_class"))
    shares = [_class_share(name) for name in PATH_CLASSES if name in occurring]
    per_rank = result.per_class.group_by("rank", maintain_order=True).agg(shares)
    return result.per_rank.select("rank", "window", "duration_ns").join(per_rank, on="rank", maintain_order="left")


def path_by_name(result: CriticalPath) -> pl.DataFrame:
    """Return the time of each name on the critical paths of all ranks, the longest first."""
    total = max(1, result.per_rank.get_column("duration_ns").sum())
    sums = result.per_name.group_by("name", "path_class").agg(pl.col("total_ns", "segment_count").sum())
    share = (pl.col("total_ns") / total).alias("fraction")
    columns = (pl.col("name").alias("event"), pl.col("path_class").str.replace_all("_", " "))
    longest = sums.sort(["total_ns", "name", "path_class"], descending=[True, False, False])
    return longest.select(*columns, "total_ns", share, "segment_count")


def path_by_event(result: CriticalPath) -> pl.DataFrame:
    """Return, from all critical paths, the segments that are inside an event, the longest first."""
    inside = result.path.drop_nulls("event_index").sort("duration_ns", descending=True, maintain_order=True)
    return inside.select(
        "rank",
        "event_index",
        pl.col("name").alias("event"),
        pl.col("path_class").str.replace_all("_", " "),
        "duration_ns",
    )


def _class_share(name: str) -> pl.Expr:
    return pl.col("fraction").filter(pl.col("path_class") == name).first().alias(f"{name}_path_fraction")


VIEWS = (
    View(
        "Each rank: shares of its critical path, which is as long as the window",
        path_per_rank,
        "duration_ns",
    ),
    View("Events on the critical path, over all ranks", path_by_name, "total_ns"),
    View("The longest segments of each path", path_by_event, "duration_ns", is_detail=True),
)


def _job_name(result: JobCriticalPath) -> pl.DataFrame:
    classes = pl.col("path_class").str.replace_all("_", " ")
    return result.per_name.select(
        "rank", pl.col("name").alias("event"), "module", classes, "total_ns", "fraction", "segment_count"
    )


def _job_event(result: JobCriticalPath) -> pl.DataFrame:
    longest = result.path.drop_nulls("event_index").sort("duration_ns", descending=True, maintain_order=True)
    classes = pl.col("path_class").str.replace_all("_", " ")
    return longest.select("rank", "event_index", pl.col("name").alias("event"), "module", classes, "duration_ns")


JOB_VIEWS = (
    View(
        "Each rank: its time on the path through all ranks, and its slack",
        lambda result: result.per_rank.select("rank", "window", "total_ns", "fraction", "slack_ns"),
        "total_ns",
    ),
    View("The job's window", lambda result: result.steps.drop("start_ns", "end_ns"), "duration_ns"),
    View("The path by rank, class, module and name", _job_name, "total_ns"),
    View(
        "Where the path crosses to another rank",
        lambda result: result.hops.with_columns(pl.col("time_ns") - result.steps["start_ns"][0]).rename(
            {"time_ns": "after_ns"}
        ),
        "transfer_ns",
    ),
    View("The longest segments of the path", _job_event, "duration_ns", is_detail=True),
)
"""The tables of `JobCriticalPath`."""
