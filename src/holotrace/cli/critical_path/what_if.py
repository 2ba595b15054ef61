"""The changes that `holotrace critical-path` assumes, and the predicted length of the window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import polars as pl
import typer

from holotrace.enrich.critical_path.path_graph import PathGraph
from holotrace.enrich.critical_path.what_if import (
    Change,
    NoLaunchOverhead,
    PerfectOverlap,
    Remove,
    Replace,
    Scale,
    what_if,
)
from holotrace.enrich.job_graph.what_if.job_what_if import FasterLink, JobChange
from holotrace.enrich.job_graph.what_if.peers_median import PeersMedian
from holotrace.errors import InconsistentTimesError, InvalidOptionError

_NS_OF_A_MICROSECOND = 1_000
_SCHEMA = {
    "rank": pl.Int32,
    "window": pl.String,
    "measured_ns": pl.Int64,
    "predicted_ns": pl.Int64,
    "saved_ns": pl.Int64,
    "saved_fraction": pl.Float64,
    "replayed_ns": pl.Int64,
}


Scaled = Annotated[
    list[str] | None,
    typer.Option("--scale", metavar="REGEX=0.5", help="What if work with a matching name took half as long?"),
]
Removed = Annotated[
    list[str] | None, typer.Option("--remove", metavar="REGEX", help="What if work with a matching name took no time?")
]
Replaced = Annotated[
    list[str] | None,
    typer.Option("--replace", metavar="REGEX=12.5", help="What if each event with a matching name took 12.5 µs?"),
]
NoLaunches = Annotated[bool, typer.Option("--no-launch-overhead", help="What if launching took no time?")]
Overlapped = Annotated[bool, typer.Option("--perfect-overlap", help="What if no work waited for communication?")]
LikePeers = Annotated[
    list[int] | None,
    typer.Option(
        "--like-peers",
        metavar="RANK",
        help="With --across-ranks: what if this rank were as fast as the median of the ranks that make the same calls?",
    ),
]
Faster = Annotated[
    float | None,
    typer.Option(
        "--faster-link", metavar="FACTOR", help="With --across-ranks: what if links had this many times the bandwidth?"
    ),
]
Anyway = Annotated[
    bool,
    typer.Option(
        "--predict-anyway",
        help="With --across-ranks: give a prediction even if a replay of the unchanged job differs "
        "from the measured time by more than 3 %.",
    ),
]


@dataclass(frozen=True)
class ChangeOptions:
    """The changes to assume."""

    scale: Scaled = None
    remove: Removed = None
    replace: Replaced = None
    no_launch_overhead: NoLaunches = False
    perfect_overlap: Overlapped = False
    like_peers: LikePeers = None
    faster_link: Faster = None
    predict_anyway: Anyway = False

    def of_job(self) -> list[JobChange]:
        """Return the changes for a path across ranks, in the order in which `holotrace.what_if_across_ranks` applies them."""
        link = [] if self.faster_link is None else [FasterLink(self.faster_link)]
        return [*self.parsed(), *link, *([PeersMedian(self.like_peers)] if self.like_peers else [])]

    def check_of_one_rank(self) -> None:
        """Raise BadParameter if an option needs all ranks."""
        if self.like_peers or self.faster_link is not None or self.predict_anyway:
            message = "--like-peers, --faster-link and --predict-anyway need --across-ranks"
            raise typer.BadParameter(message)

    def parsed(self) -> list[Change]:
        """Return the changes, in the order in which `holotrace.what_if` applies them."""
        changes: list[Change] = [Scale(*_named(text)) for text in self.scale or ()]
        changes += [Remove(_with_name(text)) for text in self.remove or ()]
        changes += [
            Replace(work, round(time_us * _NS_OF_A_MICROSECOND)) for work, time_us in map(_named, self.replace or ())
        ]
        return changes + [NoLaunchOverhead()] * self.no_launch_overhead + [PerfectOverlap()] * self.perfect_overlap


@dataclass
class Predictions:
    """The prediction for each rank, and the reasons why some ranks have none."""

    changes: Sequence[Change]
    rows: list[Mapping[str, object]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def add(self, rank: int, path_graph: PathGraph) -> None:
        """Add the prediction for a rank if there are changes."""
        if not self.changes:
            return
        try:
            predicted = what_if(path_graph, self.changes)
        except (InconsistentTimesError, InvalidOptionError) as error:
            self.findings.append(f"rank {rank}: {error}")
            return
        names = ("measured_ns", "predicted_ns", "saved_ns", "saved_fraction", "replayed_ns")
        values = {name: getattr(predicted, name) for name in names}
        self.rows.append({"rank": rank, "window": path_graph.window, **values})

    @property
    def table(self) -> pl.DataFrame:
        """One row for each rank with a prediction."""
        return pl.DataFrame(self.rows, schema=_SCHEMA)


def _named(text: str) -> tuple[pl.Expr, float]:
    """Parse `REGEX=NUMBER`; the regular expression may contain equals signs too."""
    pattern, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not pattern or not 0 <= value < float("inf"):
        message = f"{text!r} is not a change; write it like gemm=0.5: a regular expression, and a number of 0 or more"
        raise typer.BadParameter(message)
    return _with_name(pattern), value


def _with_name(pattern: str) -> pl.Expr:
    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.ComputeError as error:
        message = f"{pattern!r} is not a regular expression; escape characters such as ( with a backslash"
        raise typer.BadParameter(message) from error
    return pl.col("name").str.contains(pattern)
