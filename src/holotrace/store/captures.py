"""Captures: recordings that show which operators launched the kernels of the CUDA and HIP graphs in a trace.

A replayed graph has one launch for all its kernels, so the trace does not show which operator each kernel belongs to.
A recording of the graph's capture, or of the same step without graphs, shows each kernel's operator. Captures are read
only for ranks that replay graphs.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

if TYPE_CHECKING:
    from holotrace.store.trace import RankTrace

_GRAPH_LAUNCH = "GraphLaunch"
"""Text in the names of all calls that replay a graph, such as `cudaGraphLaunch` and `hipGraphLaunch`."""

_BATCH_SIZES = (
    r"^execute_(\d{1,9})_",
    r"^capture_(\d{1,9})_",
    r"(?i)(?:^|[^a-z])(?:bs|batch[_ ]?size)[=_: ]{0,2}(\d{1,9})",
)
"""Batch sizes in names: in vLLM, ranges are named `execute_<tokens>_context_…` and `capture_<tokens>_FULL`; in SGLang,
ranges are named `step[DECODE bs=32]`, and files are named `bs_32_rank0`."""

_MODULE_KEYS = ("module_fqn", "fqn")
"""Keys under which torchtitan and torch.compile write the qualified name of the module."""

_MODULE_PREFIX = "nn.Module: "

_MOST_LAYERS, _MOST_PARTS = 256, 4
"""Layers beyond 256 get no name; Llama 3.1 405B has 126 layers: https://arxiv.org/abs/2407.21783, table 3."""

_ANNOTATED = {"event_index": pl.UInt32, "module": pl.String}


@dataclass(frozen=True)
class Capture:
    """A recording of a graph's capture, or of the same work without graphs.

    trace       the recording as a trace
    batch_size  batch size, or number of tokens, for which the graphs were captured; None if unknown
    """

    trace: RankTrace
    batch_size: int | None = None


class CaptureSource(Protocol):
    """The captures for the ranks of a job; pickling keeps only their paths."""

    def of_rank(self, rank: int, texts: pl.Series) -> tuple[Capture, ...]:
        """Return the captures for the batch sizes that occur in `texts`, the strings of a rank's file."""

    def annotations(self) -> Mapping[int, Mapping[str, Any]]:
        """Return the annotations of graph nodes, by node id."""


def replays_graphs(texts: pl.Series) -> bool:
    """Return whether a trace that contains these strings may include a graph replay."""
    return bool(texts.str.contains(_GRAPH_LAUNCH, literal=True).any())


def is_graph_launch(names: pl.Series) -> pl.Series:
    """Return, for each name, whether calls with this name replay a graph."""
    return names.str.contains(_GRAPH_LAUNCH, literal=True).fill_null(value=False)


def with_other_texts(texts: pl.Series, others: Iterable[pl.Series]) -> pl.Series:
    """Return the strings of `texts`, followed by those strings of `others` that `texts` lacks.

    The id of a string is its position, so the ids of the strings of `texts` stay valid.
    """
    parts = [part.alias(texts.name) for part in others if len(part)]
    if not parts:
        return texts
    distinct = pl.concat(parts).drop_nulls().unique(maintain_order=True)
    return pl.concat([texts, distinct.filter(~distinct.is_in(texts.implode()))]).rechunk()


def annotated_modules(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the module of each kernel according to annotations of graph nodes: event_index uint32, module str.

    The names look like those of recorded modules: `nn.Module: layers.0.attention.wq`.

    PyTorch collects the annotations of nodes while it captures a graph, and writes them into the args of the kernels or
    into a separate file.
    """
    nodes = rank_trace.file.table("kernels", ["event_index", "graph_node_id"]).filter(pl.col("graph_node_id") > 0)
    if nodes.is_empty():
        return pl.DataFrame(schema=_ANNOTATED)
    written = rank_trace.file.table("extra_args", ["event_index", "json"]).join(nodes, on="event_index", how="semi")
    in_args = pl.DataFrame(
        [(event, module) for event, text in written.iter_rows() if (module := _module(_object(text)))],
        _ANNOTATED,
        orient="row",
    )
    source = rank_trace.capture_source
    by_node = {node: _module(said) for node, said in (source.annotations() if source else {}).items()}
    named = {node: module for node, module in by_node.items() if module}
    modules = nodes["graph_node_id"].replace_strict(named, default=None, return_dtype=pl.String).alias("module")
    in_files = nodes.select("event_index", modules).drop_nulls().join(in_args, on="event_index", how="anti")
    return pl.concat([in_args, in_files])


def inferred_layer_name(layer: int, part: int | None = None) -> str:
    """Return a name for a layer that was inferred from the order of kernels; it has the form of a module's name.

    >>> inferred_layer_name(3), inferred_layer_name(3, part=2)
    ('nn.Module: inferred layer 3', 'nn.Module: inferred layer 3 of part 2')
    """
    return f"{_MODULE_PREFIX}inferred layer {layer}{f' of part {part}' if part else ''}"


@functools.cache
def inferred_layer_names() -> pl.Series:
    """Return all names that inferred layers can have.

    String ids are assigned before the layers are known, so each possible name gets an id.
    """
    numbers = range(1, _MOST_LAYERS + 1)
    parts = (None, *range(1, _MOST_PARTS + 1))
    return pl.Series("text", [inferred_layer_name(layer, part) for part in parts for layer in numbers])


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # damaged JSON
        return {}
    return value if isinstance(value, dict) else {}


def _module(said: Mapping[str, Any]) -> str | None:
    names = (said.get(key) for key in _MODULE_KEYS)
    return next((_MODULE_PREFIX + name for name in names if isinstance(name, str) and name), None)


def batch_sizes(texts: pl.Series) -> pl.Series:
    """Return the batch size or number of tokens that each step name or file name contains; null if it has neither.

    >>> batch_sizes(pl.Series(["step[DECODE bs=32]", "execute_8192_context_9(sq8155)", "bs_4_rank0", "aten::mm"])).to_list()
    [32, 8192, 4, None]
    """
    found = [texts.str.extract(pattern, 1) for pattern in _BATCH_SIZES]
    return pl.select(pl.coalesce(found).cast(pl.Int64, strict=False).alias("batch_size")).to_series()
