"""Forward passes of models, which serve as the inference steps if no range is named like a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, nesting
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.host.host_names import MODULE_PREFIX
from holotrace.enrich.inference.token_shapes import token_shapes
from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_DENOISER = r"(Transformer|UNet)[23]D(Condition)?(Model|Wrapper)|[a-z]DiT|DiT[A-Z_]|UNetSpatioTemporal"
"""Classes of diffusers and xDiT that predict noise, such as FluxTransformer2DModel, UNet2DConditionModel and
xFuserFlux1Transformer2DWrapper; see https://github.com/huggingface/diffusers/tree/main/src/diffusers/models."""

_ENGINE_FUNCTIONS = (
    ("vllm", r"(^|/)vllm/(v1/)?worker/(gpu_)?model_runner\.py\(\d+\): execute_model$"),
    ("sglang", r"(^|/)sglang/srt/model_executor/model_runner\.py\(\d+\): forward$"),
    ("tensorrt_llm", r"(^|/)tensorrt_llm/_torch/pyexecutor/py_executor\.py\(\d+\): _forward_step$"),
)
"""Functions that run one step of an engine; their calls mark steps in engine versions that do not name steps."""

_TRAINING = r"^autograd::engine::evaluate_function|^Optimizer\.step"
_COMPILED = "## Call CompiledFxGraph "
_RANGE = ("event_index", "name", "start_ns", "end_ns", "track_id")


class Passes(NamedTuple):
    """Forward passes of one kind.

    ranges       event_index (null if unknown), start_ns, end_ns and track_id, sorted by start
    found_by     what marks the passes: `python function`, `module`, `compiled graph` or `token embedding`
    is_denoiser  whether the passes predict noise
    """

    ranges: pl.DataFrame
    found_by: str
    is_denoiser: bool


NO_PASSES = pl.DataFrame(
    schema={"event_index": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64, "track_id": pl.UInt32}
)


def is_training(rank_trace: RankTrace) -> bool:
    """Whether the rank runs a backward pass or an optimizer."""
    return bool(rank_trace.strings.str.contains(_TRAINING).any())


def engine_passes(rank_trace: RankTrace) -> dict[str, Passes]:
    """Return the calls of the function that runs a step, by engine; empty if no Python functions were recorded."""
    found = {}
    for engine, pattern in _ENGINE_FUNCTIONS:
        names = names_matching(rank_trace, pattern)
        if len(names):
            calls = event_ranges(rank_trace, [EventKind.PYTHON_FUNCTION], _RANGE, names=names)
            found[engine] = Passes(_outermost(calls), "python function", is_denoiser=False)
    return {engine: passes for engine, passes in found.items() if len(passes.ranges)}


def denoising_passes(rank_trace: RankTrace, within: pl.DataFrame | None = None, *, is_certain: bool = True) -> Passes:
    """Return the calls of the model that predicts noise.

    If the model's module was recorded, these are the calls of the module. Otherwise, if `within` is given, these are
    the calls of the model's compiled graph.

    Args:
        rank_trace: the rank.
        within: start_ns and end_ns of ranges, sorted by start; only passes inside these ranges are returned.
        is_certain: whether these ranges certainly contain denoising steps. If False, calls of a compiled graph are
            returned only if the rank has no token embeddings and the range contains several calls of the same graph.
    """
    modules = _outermost(_modules(rank_trace, _DENOISER))
    if len(modules):
        return Passes(_inside(modules, within), "module", is_denoiser=True)
    if within is None:
        return Passes(NO_PASSES, "module", is_denoiser=True)
    calls = _inside(_compiled_calls(rank_trace), within)
    if not is_certain:
        calls = calls.clear() if token_shapes(rank_trace).embeddings.height else _repeated_inside(calls, within)
    return Passes(_most_repeated(calls), "compiled graph", is_denoiser=True)


def model_passes(rank_trace: RankTrace) -> Passes:
    """Return the repeated forward passes of a model.

    These are the calls of the model's outermost module or, if no module call repeats, the spans between token
    embeddings.
    """
    modules = _most_repeated(_outermost(_modules(rank_trace, "")))
    if modules.height > 1:
        return Passes(modules, "module", is_denoiser=False)
    return Passes(_from_embeddings(rank_trace), "token embedding", is_denoiser=False)


def _modules(rank_trace: RankTrace, pattern: str) -> pl.DataFrame:
    """Return the calls of modules whose class contains the pattern."""
    strings = rank_trace.strings
    is_module = strings.str.starts_with(MODULE_PREFIX)
    if pattern and is_module.any():
        is_module &= strings.str.contains(pattern)
    names = is_module.arg_true().cast(pl.UInt32)
    return event_ranges(rank_trace, [EventKind.PYTHON_FUNCTION], _RANGE, names=names)


def _outermost(ranges: pl.DataFrame) -> pl.DataFrame:
    columns = (ranges[column].to_numpy() for column in ("track_id", "start_ns", "end_ns"))
    is_root = nesting(*columns).parent == NO_PARENT
    return ranges.filter(is_root).sort("start_ns", "event_index")


def _most_repeated(ranges: pl.DataFrame) -> pl.DataFrame:
    """Of the names that occur several times, choose the one with the longest total time; return its ranges."""
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time")
    repeated = ranges.group_by("name").agg(pl.len().alias("count"), time).filter(pl.col("count") > 1)
    if repeated.is_empty():
        return ranges.clear()
    name = repeated.sort("time", "name", descending=[True, False]).item(0, "name")
    return ranges.filter(pl.col("name") == name).sort("start_ns", "event_index")


def _compiled_calls(rank_trace: RankTrace) -> pl.DataFrame:
    names = rank_trace.strings.str.starts_with(_COMPILED).arg_true().cast(pl.UInt32)
    kinds = (EventKind.USER_ANNOTATION, EventKind.CPU_OP)
    return _outermost(event_ranges(rank_trace, kinds, _RANGE, names=names))


def _inside(ranges: pl.DataFrame, within: pl.DataFrame | None) -> pl.DataFrame:
    if within is None:
        return ranges
    starts = within["start_ns"].to_numpy()
    row = np.searchsorted(starts, ranges["start_ns"].to_numpy(), side="right") - 1
    ends: npt.NDArray[np.int64] = np.append(within["end_ns"].to_numpy(), np.iinfo(np.int64).min)[row]
    return ranges.filter(ranges["end_ns"].to_numpy() <= ends)


def _repeated_inside(calls: pl.DataFrame, within: pl.DataFrame) -> pl.DataFrame:
    """Return the calls whose name occurs several times within the same range."""
    row = np.searchsorted(within["start_ns"].to_numpy(), calls["start_ns"].to_numpy(), side="right")
    return calls.filter(pl.len().over("name", pl.Series(row)) > 1)


def _from_embeddings(rank_trace: RankTrace) -> pl.DataFrame:
    """Return one pass per token embedding.

    A pass lasts until the next token embedding on its thread; the last pass ends with the last operator.
    """
    starts = token_shapes(rank_trace).embeddings.select("start_ns", "track_id")
    if starts.height < 2:  # noqa: PLR2004 -- nothing is repeated
        return NO_PASSES
    operators = event_ranges(rank_trace, [EventKind.CPU_OP], ["end_ns", "track_id"])
    last = operators.group_by("track_id").agg(pl.col("end_ns").max().alias("last_ns"))
    following = pl.col("start_ns").shift(-1).over("track_id")
    joined = starts.with_columns(following.alias("end_ns")).join(last, on="track_id", how="left", maintain_order="left")
    ended = joined.with_columns(pl.coalesce("end_ns", "last_ns"), pl.lit(None, pl.UInt32).alias("event_index"))
    return ended.select(NO_PASSES.columns)
