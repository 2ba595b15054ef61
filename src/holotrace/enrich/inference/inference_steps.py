"""The inference steps of a rank: prefill, decode, a mix of both, or denoising."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from holotrace.enrich.inference.forward_passes import (
    Passes,
    denoising_passes,
    engine_passes,
    is_training,
    model_passes,
)
from holotrace.enrich.inference.named_steps import NamedStep, NamedSteps, named_steps
from holotrace.enrich.inference.step_names import StepName
from holotrace.enrich.inference.token_shapes import token_shapes
from holotrace.enrich.steps.steps import rows_of_windows, steps
from holotrace.store.derived import derived_under_rules
from holotrace.store.trace import RankTrace

COUNTS = (
    *("request_count", "prefill_request_count", "decode_request_count"),
    *("token_count", "prefill_token_count", "decode_token_count", "padded_token_count"),
)
STEP_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "event_index": pl.UInt32,
    "step_name": pl.String,
    "engine": pl.String,
    "found_by": pl.String,
    "kind": pl.String,
    "is_draft": pl.Boolean,
    **dict.fromkeys((*COUNTS, "attention_pair_count", "start_ns", "end_ns", "until_ns"), pl.Int64),
}
_GENERATE = r"transformers/generation/utils\.py\(\d+\): generate"
_ADVICE = 'name the steps with record_function("decode bs=8"), or pass a pattern that matches their names'


class InferenceSteps(NamedTuple):
    """The steps of a rank, and findings about them.

    table     one row per step, sorted by start:

        event_index           uint32  the range or module call of the step; null if only an operator marks its start
        step_name             str     name of the range; null if there is no range
        engine                str     vllm, sglang, …; annotation or pattern for other names; null if unknown
        found_by              str     annotation, python function, module, compiled graph, token embedding, or profiler step
        kind                  str     prefill, decode, mixed or denoising; null if unknown
        is_draft              bool    whether the step runs the draft model of speculative decoding
        request_count, prefill_request_count, decode_request_count  int64, null if unknown
        token_count, prefill_token_count, decode_token_count        int64  new tokens; null if unknown
        padded_token_count    int64   tokens computed, padding included; null if equal to token_count or unknown
        attention_pair_count  int64   number of query-key pairs that causal attention computes in one head of one layer;
                                      null unless the token counts in the step's name determine it
        start_ns, end_ns      int64   the range on the host
        until_ns              int64   work that the host launches from start_ns until this time belongs to the step

    findings  names that look like names of steps but match no pattern, and, if there are no steps, the reason
    """

    table: pl.DataFrame
    findings: tuple[str, ...]


@derived_under_rules
def inference_steps(rank_trace: RankTrace, patterns: tuple[str, ...] = ()) -> InferenceSteps:
    """Return the inference steps of a rank.

    Names of ranges mark the steps, according to `patterns` and the rules of `holotrace.enrich.inference.step_names`. If no
    names mark steps, the repeated forward passes of a model are the steps, provided that shapes or the module's class show
    the kind of each step.
    """
    named = named_steps(rank_trace, patterns)
    findings = _unreadable(named)
    if named.steps:
        known, doubts = _without_doubtful_tokens(named.steps)
        return InferenceSteps(_completed(rank_trace, _of_names(rank_trace, known)), (*findings, *doubts))
    if named.holders:
        return _inside_holders(rank_trace, named, findings)
    return _without_names(rank_trace, findings)


def _unreadable(named: NamedSteps) -> tuple[str, ...]:
    count = len(named.unreadable)
    if not count:
        return ()
    name = repr(named.unreadable[0][:80])
    if count == 1:
        return (f"1 name looks like a step of an engine but matches no pattern: {name}; pass a pattern for it",)
    return (
        f"{count:,} names look like steps of an engine but match no pattern, such as {name}; pass a pattern for them",
    )


def _without_doubtful_tokens(named: list[NamedStep]) -> tuple[list[NamedStep], tuple[str, ...]]:
    """If a rank verifies drafts, drop the token counts of SGLang's `step[DECODE …]`: draft steps have this name too."""
    doubtful = {
        place
        for place, step in enumerate(named)
        if step.said.rule.engine == "sglang" and step.said.kind == "decode" and not step.said.rule.is_verifying
    }
    if not doubtful or not any(step.said.rule.is_verifying for step in named):
        return named, ()
    steps = [
        step._replace(said=step.said._replace(token_count=None, decode_token_count=None)) if place in doubtful else step
        for place, step in enumerate(named)
    ]
    times = "once" if len(doubtful) == 1 else f"{len(doubtful):,} times"
    sentence = (
        f"step[DECODE …] occurs {times} alongside step[TARGET_VERIFY …]; SGLang gives steps of its draft model the same name, "
        "so the output tokens of these steps are unknown"
    )
    return steps, (sentence,)


def _of_names(rank_trace: RankTrace, named: Sequence[NamedStep]) -> pl.DataFrame:
    following = [*(step.start_ns for step in named[1:]), _last_ns(rank_trace)]
    rows = [
        (
            step.event_index,
            step.name,
            step.said.rule.engine,
            "annotation",
            step.said.kind,
            step.said.rule.is_draft,
            *(getattr(step.said, name) for name in COUNTS),
            _pairs(step.said),
            step.start_ns,
            step.end_ns,
            max(step.end_ns, until) if step.said.rule.until_next else step.end_ns,
        )
        for step, until in zip(named, following, strict=True)
    ]
    return pl.DataFrame(rows, schema=STEP_COLUMNS, orient="row")


def _last_ns(rank_trace: RankTrace) -> int:
    """Return a time that is later than the start of every event."""
    return int(rank_trace.table("events", ["start_ns"])["start_ns"].to_numpy().max()) + 1


def _pairs(said: StepName) -> int | None:
    """Return the number of query-key pairs of causal attention; None if the name does not give it.

    Each new token attends to one token more than the new token before it.
    """
    sums = said.sums
    if not sums or any(
        sums[f"{of}_sqsq"] > sums[f"{of}_sqsk"] for of in ("c", "g")
    ):  # impossible, because the new tokens (q) are among the keys (k)
        return None
    return sum(sums[f"{of}_sqsk"] - (sums[f"{of}_sqsq"] - sums[f"{of}_sq"]) // 2 for of in ("c", "g"))


def _inside_holders(rank_trace: RankTrace, named: NamedSteps, findings: tuple[str, ...]) -> InferenceSteps:
    """Return the denoising steps inside ranges that contain all steps of an image or video."""
    holders = named.holders
    within = pl.DataFrame(
        {"start_ns": [step.start_ns for step in holders], "end_ns": [step.end_ns for step in holders]}
    )
    is_common = holders[0].said.rule.is_common
    passes = denoising_passes(rank_trace, within, is_certain=not is_common)
    if passes.ranges.is_empty() and is_common:
        return _without_names(rank_trace, findings)
    if passes.ranges.is_empty():
        reason = (
            f"{holders[0].name!r} contains denoising steps, but nothing shows where each begins: "
            "record with with_stack=True, which records the calls of modules"
        )
        return InferenceSteps(pl.DataFrame(schema=STEP_COLUMNS), (*findings, f"no inference steps: {reason}"))
    table = _of_passes(passes, engine=holders[0].said.rule.engine)
    rows = np.searchsorted(within["start_ns"].to_numpy(), table["start_ns"].to_numpy(), side="right") - 1
    requests = pl.Series([step.said.request_count for step in holders], dtype=pl.Int64)[rows]
    return InferenceSteps(table.with_columns(requests.alias("request_count")), findings)


def _without_names(rank_trace: RankTrace, findings: tuple[str, ...]) -> InferenceSteps:
    for engine, passes in engine_passes(rank_trace).items():
        return InferenceSteps(_completed(rank_trace, _of_passes(passes, engine, _last_ns(rank_trace))), findings)
    sentence = "no inference steps: no range is named like a step, and the rank is training"
    if not is_training(rank_trace):
        denoising = denoising_passes(rank_trace)
        if denoising.ranges.height > 1:
            return InferenceSteps(_of_passes(denoising, engine="diffusers"), findings)
        passes = model_passes(rank_trace)
        table = _completed(rank_trace, _of_passes(passes, engine=_engine(rank_trace)))
        if table["kind"].count():
            return InferenceSteps(_as_profiler_steps(rank_trace, table), findings)
        reason = (
            "no forward pass is repeated"
            if table.is_empty()
            else "nothing shows whether the repeated forward passes are prefill or decode "
            "(record_shapes=True records shapes, which show the number of tokens)"
        )
        sentence = f"no inference steps: no range is named like a step, and {reason}; {_ADVICE}"
    return InferenceSteps(pl.DataFrame(schema=STEP_COLUMNS), (*findings, sentence))


def _engine(rank_trace: RankTrace) -> str | None:
    return "transformers" if rank_trace.strings.str.contains(_GENERATE).any() else None


def _of_passes(passes: Passes, engine: str | None, last_ns: int | None = None) -> pl.DataFrame:
    """Return one step per pass; each step lasts until the next pass begins, because sampling follows the pass.

    The last step lasts until `last_ns` or, if this is None, until the end of its pass.
    """
    following = pl.col("start_ns").shift(-1, fill_value=last_ns)
    table = passes.ranges.with_columns(
        engine=pl.lit(engine, pl.String),
        found_by=pl.lit(passes.found_by),
        kind=pl.lit("denoising" if passes.is_denoiser else None, pl.String),
        is_draft=pl.lit(value=False),
        until_ns=pl.max_horizontal("end_ns", following),
    )
    missing = [name for name in STEP_COLUMNS if name not in table.columns]
    return table.with_columns(pl.lit(None, STEP_COLUMNS[name]).alias(name) for name in missing).select(*STEP_COLUMNS)


def _as_profiler_steps(rank_trace: RankTrace, table: pl.DataFrame) -> pl.DataFrame:
    """If each pass has its own `ProfilerStep`, return the profiler steps instead, because their ends are known."""
    known = steps(rank_trace).sort("start_ns")
    rows = rows_of_windows(known, table["start_ns"].to_numpy())
    if (rows < 0).any() or len(np.unique(rows)) < len(rows):
        return table
    ranges = known[rows]
    return table.with_columns(
        ranges["start_ns"], ranges["end_ns"], ranges["end_ns"].alias("until_ns"), found_by=pl.lit("profiler step")
    )


def _completed(rank_trace: RankTrace, table: pl.DataFrame) -> pl.DataFrame:
    """Fill in what the step names do not contain, from the shapes of each step's first token embedding and attention."""
    joined = table.with_row_index("row").join(_evidence(rank_trace, table), on="row", how="left", maintain_order="left")
    batch, length, joined_tokens = pl.col("batch"), pl.col("length"), pl.col("batch").is_null()
    tokens = pl.when(~joined_tokens).then(batch * length)
    counted = joined.with_columns(
        request_count=pl.coalesce("request_count", "batch"), token_count=pl.coalesce("token_count", tokens)
    )
    computed = pl.when(joined_tokens).then(length).otherwise(batch * length)
    padded = pl.when((computed > pl.col("token_count")).fill_null(value=True)).then(computed)
    kind = pl.col("kind") if is_training(rank_trace) else _kind()
    known = counted.with_columns(kind=kind, padded_token_count=pl.coalesce("padded_token_count", padded))
    return _split(known).select(*STEP_COLUMNS)


def _kind() -> pl.Expr:
    """Return the kind of each step, inferred from shapes where the name does not show it.

    One token per sequence means decode. Causal attention over more tokens means prefill.
    """
    length, queries = pl.col("length"), pl.col("queries")
    is_joined = pl.col("batch").is_null() & length.is_not_null()
    decodes = (
        pl.when(is_joined)
        .then(length == pl.col("request_count"))
        .otherwise(pl.coalesce(length == 1, (queries == 1) & (pl.col("keys") > 1)))
    )
    several = ~is_joined & (pl.coalesce(length, queries) > 1)
    prefills = several & (pl.col("is_causal").fill_null(value=False) | (decodes & ~is_joined).any())
    shown = pl.when(decodes).then(pl.lit("decode")).when(prefills).then(pl.lit("prefill"))
    return pl.when(pl.col("is_draft")).then("kind").otherwise(pl.coalesce("kind", shown)).alias("kind")


def _split(table: pl.DataFrame) -> pl.DataFrame:
    """In steps that only prefill or only decode, fill in the counts: all requests and tokens are of that kind."""
    of_kind = {"prefill": ("prefill", "decode"), "decode": ("decode", "prefill")}
    for kind, (own, other) in of_kind.items():
        for what in ("request_count", "token_count"):
            table = table.with_columns(
                pl.when(pl.col("kind") == kind).then(pl.coalesce(f"{own}_{what}", what)).otherwise(f"{own}_{what}"),
                pl.when(pl.col("kind") == kind).then(pl.coalesce(f"{other}_{what}", 0)).otherwise(f"{other}_{what}"),
            )
    return table


def _evidence(rank_trace: RankTrace, table: pl.DataFrame) -> pl.DataFrame:
    """Return row, batch, length, queries, keys and is_causal of the steps in which recorded shapes give token counts."""
    shapes = token_shapes(rank_trace)
    windows = table.select("start_ns", end_ns="until_ns")
    firsts = [
        calls.drop("start_ns", "track_id", strict=False)
        .with_columns(pl.Series("row", rows_of_windows(windows, calls["start_ns"].to_numpy())))
        .filter(pl.col("row") >= 0)
        .with_columns(pl.col("row").cast(pl.UInt32))
        .unique("row", keep="first", maintain_order=True)
        for calls in shapes
    ]
    return firsts[0].join(firsts[1], on="row", how="full", coalesce=True)
