"""Find the user's function in which the given host activity spends most of its time."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.diagnosis.evidence.callers import called_by_training
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.evidence.user_functions import user_calls, user_functions

_WHOLE = 0.95
"""A function that takes at least this share of the step is the training loop; the functions that it calls are more
informative."""
_MOST = 0.5


def main_line(evidence: RankEvidence, pieces: pl.DataFrame, *, in_loop: bool = False) -> str | None:
    """Return the user's function that takes at least half of the time in these rows.

    The time of a training function excludes the functions that it calls. The time of any other function includes the
    functions that it calls.
    None if no function takes that long, if there are no training functions, or if Python functions were not recorded.

    Training functions are the user's functions that take nearly all of a step. If there are none and `in_loop` is set,
    the user's functions that contain a whole step are used instead, such as a training loop that began before the
    recording.
    """
    training = _training_functions(evidence) or (_functions_around(evidence) if in_loop else [])
    if not training:
        return None
    called = pl.coalesce(called_by_training(evidence, pieces["event_index"], training), "frame").alias("line")
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns")
    sums = pieces.with_columns(called).group_by("line", maintain_order=True).agg(time)
    most = sums.row(int(sums["time_ns"].arg_max() or 0), named=True)
    line: str | None = most["line"]
    return line if most["time_ns"] >= _MOST * float(sums["time_ns"].sum()) else None


def _training_functions(evidence: RankEvidence) -> list[str]:
    """Return the user's functions that take nearly all of a step."""
    whole_ns = _WHOLE * evidence.time_ns / evidence.step_count
    return [name for name, time_ns in user_functions(evidence).items() if time_ns >= whole_ns]


def _functions_around(evidence: RankEvidence) -> list[str]:
    """Return the user's functions that contain a whole steady step."""
    shortest_ns = min(evidence.step_lengths_ns, default=0)
    calls = user_calls(evidence).filter(pl.col("end_ns") - pl.col("start_ns") >= shortest_ns)
    starts, ends = (calls[column].to_numpy()[:, None] for column in ("start_ns", "end_ns"))
    is_around = ((starts <= evidence.step_windows[0]) & (ends >= evidence.step_windows[1])).any(axis=1)
    names: list[str] = evidence.rank_trace.texts(calls.filter(pl.Series(is_around))["name"].unique()).to_list()
    return names
