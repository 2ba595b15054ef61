"""Token counts of a forward pass, from the recorded shapes of token embeddings and attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.recorded_json import recorded_list
from holotrace.enrich.graph_attribution.grafted_tables import described_events
from holotrace.enrich.graph_attribution.grafts import may_graft
from holotrace.enrich.host.call_stack import call_stacks
from holotrace.schema import EventKind
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace

_EMBEDDING = r"^aten::embedding$"
_ATTENTION = r"^aten::scaled_dot_product_attention$"
_IS_CAUSAL = 5
"""Position of the argument `is_causal`; see https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html."""

_LARGEST = 1 << 31
"""Shapes with a dimension this large cannot be shapes of tokens; products of two smaller dimensions fit into int64."""

_EMBEDDINGS = {"start_ns": pl.Int64, "track_id": pl.UInt32, "batch": pl.Int64, "length": pl.Int64}
_ATTENTIONS = {"start_ns": pl.Int64, "queries": pl.Int64, "keys": pl.Int64, "is_causal": pl.Boolean}


class TokenShapes(NamedTuple):
    """Calls whose input shapes show numbers of tokens, sorted by start.

    embeddings   lookups in the rank's largest embedding table (smaller tables may embed positions or token types):
                 start_ns, track_id, batch (number of sequences; null if all sequences are joined into one) and length
                 (number of tokens in each sequence, or in the joined sequence)
    attentions   start_ns, queries and keys of each sequence, is_causal
    """

    embeddings: pl.DataFrame
    attentions: pl.DataFrame


@derived
def token_shapes(rank_trace: RankTrace) -> TokenShapes:
    """Return a rank's calls whose input shapes show numbers of tokens; none if the recording has no shapes."""
    return TokenShapes(_embeddings(rank_trace), _attentions(rank_trace))


def _embeddings(rank_trace: RankTrace) -> pl.DataFrame:
    calls = _calls(rank_trace, _EMBEDDING, ("input_dims",))
    read = {text: _embedding(text) for text in set(calls["input_dims"])}
    largest = max((known[0] for known in read.values() if known), default=0)
    rows = [
        (start, track, *read[text][1:])  # type: ignore[index]
        for start, track, text in calls.select("start_ns", "track_id", "input_dims").iter_rows()
        if read[text] is not None and read[text][0] == largest  # type: ignore[index]
    ]
    return pl.DataFrame(rows, schema=_EMBEDDINGS, orient="row")


def _embedding(dims: str | None) -> tuple[int, int | None, int] | None:
    """Return the table's element count, and the indices' batch size and length; None if they cannot be tokens."""
    shapes = _shapes(dims)
    if len(shapes) < 2 or len(shapes[0]) != 2:  # noqa: PLR2004 -- a table has rows and columns
        return None
    size = shapes[0][0] * shapes[0][1]
    if len(shapes[1]) == 2:  # noqa: PLR2004 -- [batch, length]
        return size, shapes[1][0], shapes[1][1]
    return (size, None, shapes[1][0]) if len(shapes[1]) == 1 else None


def _attentions(rank_trace: RankTrace) -> pl.DataFrame:
    calls = _calls(rank_trace, _ATTENTION, ("input_dims", "concrete_inputs"))
    rows = [
        (start, shapes[0][2], shapes[1][2], _is_causal(values))
        for start, dims, values in calls.select("start_ns", "input_dims", "concrete_inputs").iter_rows()
        if len(shapes := _shapes(dims)) > 1 and len(shapes[0]) == len(shapes[1]) == 4  # noqa: PLR2004 -- [batch, heads, length, width]
    ]
    return pl.DataFrame(rows, schema=_ATTENTIONS, orient="row")


def _calls(rank_trace: RankTrace, pattern: str, inputs: Sequence[str]) -> pl.DataFrame:
    """Return the calls of matching operators, with inputs as text; calls that graphs replay are included."""
    names = names_matching(rank_trace, pattern)
    if names.is_empty() and not may_graft(rank_trace):
        return pl.DataFrame(schema={"start_ns": pl.Int64, "track_id": pl.UInt32, **dict.fromkeys(inputs, pl.String)})
    stacks = call_stacks(rank_trace)
    is_wanted = pl.col("name").is_in(names.implode()) & (pl.col("kind") == EventKind.CPU_OP)
    calls = stacks.filter(is_wanted).select("event_index", "start_ns", "track_id").sort("start_ns", "event_index")
    recorded = described_events(rank_trace, "operator_inputs", ["event_index", *inputs])
    joined = calls.join(recorded, on="event_index", how="left", maintain_order="left")
    return joined.with_columns(rank_trace.texts(joined[name]) for name in inputs)


def _shapes(dims: str | None) -> list[list[int]]:
    """Return the shape of each input; an empty list for inputs without a shape."""
    parsed = recorded_list(dims)
    return [shape if isinstance(shape, list) and all(map(_is_size, shape)) else [] for shape in parsed]


def _is_size(size: object) -> bool:
    return type(size) is int and 0 <= size < _LARGEST


def _is_causal(values: str | None) -> bool | None:
    parsed = recorded_list(values)
    said = str(parsed[_IS_CAUSAL]) if len(parsed) > _IS_CAUSAL else ""
    return {"True": True, "False": False}.get(said)
