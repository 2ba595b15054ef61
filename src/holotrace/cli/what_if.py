"""What `holotrace critical-path` would change, and how long the window would be then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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


@dataclass
class Predictions:
    """What was predicted for each rank, and why nothing was for others."""

    changes: Sequence[Change]
    rows: list[Mapping[str, object]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def add(self, rank: int, path_graph: PathGraph) -> None:
        """Predict a rank, if any change is asked for."""
        if not self.changes:
            return
        try:
            found = what_if(path_graph, self.changes)
        except (InconsistentTimesError, InvalidOptionError) as error:
            self.findings.append(f"rank {rank}: {error}")
            return
        names = ("measured_ns", "predicted_ns", "saved_ns", "saved_fraction", "replayed_ns")
        values = {name: getattr(found, name) for name in names}
        self.rows.append({"rank": rank, "window": path_graph.window, **values})

    @property
    def table(self) -> pl.DataFrame:
        """One row for each rank that was predicted."""
        return pl.DataFrame(self.rows, schema=_SCHEMA)


def parse_changes(
    scale: Sequence[str], remove: Sequence[str], replace: Sequence[str], *, no_launches: bool, overlap: bool
) -> list[Change]:
    """Read the changes that the options ask for."""
    changes: list[Change] = [Scale(*_named(text)) for text in scale]
    changes += [Remove(_with_name(text)) for text in remove]
    changes += [Replace(where, round(time_us * _NS_OF_A_MICROSECOND)) for where, time_us in map(_named, replace)]
    return changes + [NoLaunchOverhead()] * no_launches + [PerfectOverlap()] * overlap


def _named(text: str) -> tuple[pl.Expr, float]:
    """Read `REGEX=NUMBER`; the expression may hold further equals signs."""
    pattern, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not pattern or not 0 <= value < float("inf"):
        message = f"{text!r} is no change; write it like gemm=0.5: a name, and a number of 0 or more"
        raise typer.BadParameter(message)
    return _with_name(pattern), value


def _with_name(pattern: str) -> pl.Expr:
    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.ComputeError as error:
        message = f"{pattern!r} is no regular expression"
        raise typer.BadParameter(message) from error
    return pl.col("name").str.contains(pattern)
