"""Count and time the calls of a rank's operators, for each combination of inputs and costs."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.roofline.modules import modules_of_calls
from holotrace.enrich.events.recorded_json import texts_with_one_spacing
from holotrace.enrich.operator_costs.costed_calls import CostedCalls, costed_calls
from holotrace.store.trace import RankTrace

KEYS = ("operator", "phase", "input_shape", "input_type", "input_values")
COSTS = ("work", "precision", "flops", "bytes_moved", "dense_flops", "reason")
_TIMES = ("busy_ns", "tensor_core_ns", "other_core_ns")
_INPUT_TEXTS = {"input_dims": "input_shape", "input_types": "input_type", "concrete_inputs": "input_values"}


def summed_operators(rank_trace: RankTrace) -> pl.DataFrame:
    """Return one row for all calls with the same operator, module, phase, inputs and cost.

    Returns:
        Columns: those in `KEYS`, `module`, those in `COSTS`, `call_count`, and the times from `costed_calls`.
    """
    costed = costed_calls(rank_trace)
    per_key = (
        costed.calls.with_columns(modules_of_calls(rank_trace, costed.calls))
        .group_by("key", "phase", "module")
        .agg(pl.len().cast(pl.Int64).alias("call_count"), pl.col(*_TIMES).sum())
    )
    named = per_key.join(named_keys(rank_trace, costed), on="key", how="left")
    return over(named, "module", *KEYS)


def over(operators: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Add up the calls and times of operators with equal keys and costs."""
    return operators.group_by(*keys, *COSTS).agg(pl.col("call_count", *_TIMES).sum())


def named_keys(rank_trace: RankTrace, costed: CostedCalls) -> pl.DataFrame:
    """Return the keys of the calls, with string ids replaced by strings."""
    keys = costed.keys
    texts = [texts_with_one_spacing(rank_trace, keys[column]).alias(name) for column, name in _INPUT_TEXTS.items()]
    operator = rank_trace.texts(keys["name"]).alias("operator")
    return keys.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("key"), operator, *texts, *COSTS)
