"""Recordings beside a trace that say which operators launched the kernels of its CUDA and HIP graphs.

A replayed graph has one launch for all its kernels, so its trace does not name their operators. The recording of the
capture does, and so does a recording of the same step without graphs. A rank reads them only if it replays graphs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

if TYPE_CHECKING:
    from holotrace.store.trace import RankTrace

_GRAPH_LAUNCH = "GraphLaunch"
"""Part of the names of all calls that replay a graph, such as `cudaGraphLaunch` and `hipGraphLaunch`."""

_BATCH_SIZES = (r"^execute_(\d{1,9})_", r"(?i)(?:^|[^a-z])(?:bs|batch[_ ]?size)[=_: ]{0,2}(\d{1,9})")
"""vLLM writes `execute_<tokens>_context_…`, SGLang `step[DECODE bs=32]` and files named `bs_32_rank0`."""


@dataclass(frozen=True)
class Capture:
    """A recording of a capture, or of the same work without graphs.

    trace       its events
    batch_size  batch size, or number of tokens, for which the graphs were captured; None if unknown
    """

    trace: RankTrace
    batch_size: int | None = None


class CaptureSource(Protocol):
    """The recordings for the ranks of a job; pickles as their addresses."""

    def of_rank(self, rank: int, texts: pl.Series) -> tuple[Capture, ...]:
        """Return the recordings that fit a rank, given all texts of its trace, which include the batch sizes it ran."""

    def annotations(self) -> Mapping[int, Mapping[str, Any]]:
        """Return what annotation files say about graph nodes, by node id."""


def replays_graphs(texts: pl.Series) -> bool:
    """Return whether a trace with these texts may replay a graph."""
    return bool(texts.str.contains(_GRAPH_LAUNCH, literal=True).any())


def is_graph_launch(names: pl.Series) -> pl.Series:
    """Return whether a call of each name replays a graph."""
    return names.str.contains(_GRAPH_LAUNCH, literal=True).fill_null(value=False)


def with_texts_of(texts: pl.Series, captures: tuple[Capture, ...]) -> pl.Series:
    """Return the texts, followed by all other texts of the captures; existing ids stay valid."""
    if not captures:
        return texts
    others = pl.concat([capture.trace.strings for capture in captures]).unique(maintain_order=True)
    new = others.filter(~others.is_in(texts.implode()))
    return pl.concat([texts, new.alias(texts.name)]).rechunk()


def batch_sizes(texts: pl.Series) -> pl.Series:
    """Return the batch size, or number of tokens, that each name of a step or file states; null if it states none.

    >>> batch_sizes(pl.Series(["step[DECODE bs=32]", "execute_8192_context_9(sq8155)", "bs_4_rank0", "aten::mm"])).to_list()
    [32, 8192, 4, None]
    """
    found = [texts.str.extract(pattern, 1) for pattern in _BATCH_SIZES]
    return pl.select(pl.coalesce(found).cast(pl.Int64, strict=False).alias("batch_size")).to_series()
