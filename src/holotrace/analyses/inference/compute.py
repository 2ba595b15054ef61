"""What do the steps of an inference server spend their time on?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import polars as pl

from holotrace.analyses.inference.findings import findings_of
from holotrace.analyses.inference.parts import PARTS
from holotrace.analyses.inference.per_kind import BATCH, KIND, over, summary
from holotrace.analyses.inference.periods import periods
from holotrace.analyses.inference.step_times import with_times
from holotrace.analyses.inference.step_work import work_of_steps
from holotrace.enrich.across_ranks.job_calls import job_calls
from holotrace.enrich.across_ranks.matching.calls import OfRank, of_rank
from holotrace.enrich.device.peaks import device_named
from holotrace.enrich.graph_attribution.findings import graph_findings
from holotrace.enrich.inference.inference_steps import COUNTS, inference_steps
from holotrace.enrich.inference.step_names import checked_step_pattern
from holotrace.enrich.job.findings import joined_findings
from holotrace.enrich.job.rank_tables import of_all_ranks, typed
from holotrace.errors import InvalidOptionError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.schema import KernelKind
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

_PARTS = dict.fromkeys(PARTS, pl.Int64)
_PER_STEP = {
    "rank": pl.Int32,
    "inference_step": pl.Int64,
    "step_name": pl.String,
    "engine": pl.String,
    "found_by": pl.String,
    "kind": pl.String,
    "is_draft": pl.Boolean,
    "period": pl.String,
    "period_reason": pl.String,
    **dict.fromkeys(COUNTS, pl.Int64),
    "output_token_count": pl.Int64,
    "draft_token_count": pl.Int64,
    "attention_pair_count": pl.Int64,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "step_ns": pl.Int64,
    "gap_before_ns": pl.Int64,
    "host_ns": pl.Int64,
    "launch_call_ns": pl.Int64,
    "busy_ns": pl.Int64,
    "kernel_ns": pl.Int64,
    "kernel_count": pl.Int64,
    **_PARTS,
    "bound": pl.String,
    "attention_ns": pl.Int64,
    "attention_flops": pl.Int64,
    "moe_ns": pl.Int64,
    "draft_ns": pl.Int64,
    "wait_ns": pl.Int64,
}
_SHARES = {f"{family}_fraction": pl.Float64 for family in ("attention", "moe", "draft")}
_PER_KIND = {
    "rank": pl.Int32,
    "kind": pl.String,
    "is_draft": pl.Boolean,
    "step_count": pl.Int64,
    "apart_count": pl.Int64,
    "p50_step_ns": pl.Int64,
    "p90_step_ns": pl.Int64,
    "p99_step_ns": pl.Int64,
    "mean_token_count": pl.Float64,
    "mean_gap_before_ns": pl.Float64,
    "mean_host_ns": pl.Float64,
    "output_token_ns": pl.Float64,
    "busy_ns": pl.Int64,
    **_PARTS,
    "bound": pl.String,
    **_SHARES,
}
_PER_BATCH = {"rank": pl.Int32, "kind": pl.String, "is_draft": pl.Boolean, "request_count": pl.Int64, **_PER_KIND}
_SUMMARY = {
    "rank": pl.Int32,
    "engine": pl.String,
    "found_by": pl.String,
    "step_count": pl.Int64,
    "apart_count": pl.Int64,
    "elapsed_ns": pl.Int64,
    "busy_ns": pl.Int64,
    "prefill_token_count": pl.Int64,
    "decode_token_count": pl.Int64,
    "output_token_count": pl.Int64,
    "draft_token_count": pl.Int64,
    "inter_token_ns": pl.Float64,
    "tokens_per_s": pl.Float64,
    **_PARTS,
    "bound": pl.String,
    **_SHARES,
    "wait_ns": pl.Int64,
}


@dataclass(frozen=True, eq=False, repr=False)
class Inference(Result):
    """The inference steps of each rank: how long each step takes, and what limits its speed.

    per_step   one row per rank and step, sorted by both:

        rank            int32
        inference_step  int64  number of the step, from 0
        step_name       str    name of the range that marks the step; null if no range marks it
        engine          str    vllm, sglang, tensorrt_llm, atom, xdit, diffusers, transformers; annotation for users'
                               own ranges; pattern for ranges found with `patterns`; null if unknown
        found_by        str    annotation, python function, module, compiled graph, token embedding, or profiler step
        kind            str    prefill, decode, mixed or denoising; null if unknown
        is_draft        bool   whether the step runs the draft model of speculative decoding
        period          str    start, steady, or cut off
        period_reason   str    why the step is not steady; null for steady steps
        request_count, prefill_request_count, decode_request_count  int64
        token_count, prefill_token_count, decode_token_count        int64  new tokens
        padded_token_count    int64  computed tokens, including padding; null if equal to token_count or unknown
        output_token_count    int64  tokens returned to requests; null if the step does more than decode one token per request
        draft_token_count     int64  decoded tokens beyond one per request; a draft model proposed these tokens
        attention_pair_count  int64  query-key pairs that causal attention computes in one head of one layer
        start_ns, end_ns      int64  span of the step and its device work; begins after the device work of earlier steps
        step_ns               int64  end_ns - start_ns, the sum of the parts below
        gap_before_ns         int64  time since the end of the previous step; null for the first step
        host_ns               int64  length of the step's range on the host
        launch_call_ns        int64  host time in calls that launch work
        busy_ns               int64  time in which work of the step runs
        kernel_ns             int64  summed durations of the step's kernels, copies and memsets
        kernel_count          int64  number of these kernels, copies and memsets
        compute_bound_ns, memory_bound_ns, unknown_bound_ns  int64  part: kernels with this roofline bound run
        copying_ns            int64  part: copies or memsets run, but no kernel
        exposed_ns            int64  part: communication runs, but none of the above
        unknown_idle_ns       int64  part: nothing runs; cause unknown, since a launch or a graph's kernels are missing
        launch_idle_ns        int64  part: nothing runs, but the next work has been launched
        host_idle_ns          int64  part: nothing runs, and the next work has not been launched
        bound                 str    the largest part: host, launch, memory, compute, communication or copy; unknown if unclear
        attention_ns, moe_ns, draft_ns  int64  time in which work of this kind runs; null if the rank has none
        attention_flops       int64  FLOPs of the step's attention; null if unknown
        wait_ns               int64  time in collectives spent waiting for other ranks; null without collectives, or if
                                     one of them was recorded on no other rank

    per_kind   one row per rank, kind and is_draft, sorted by these columns:

        step_count, apart_count  int64  number of all steps, and of steps that are not steady; all other columns
                                        cover only steady steps
        p50_step_ns, p90_step_ns, p99_step_ns  int64  percentiles of step_ns (nearest rank)
        mean_token_count, mean_gap_before_ns, mean_host_ns  float64
        output_token_ns          float64  time of the steps and of the gaps before them, divided by the number of output tokens
        busy_ns, the parts of per_step  int64  sums
        bound                    str      as in per_step, but derived from the sums of the parts
        attention_fraction, moe_fraction, draft_fraction  float64  shares of busy_ns

    per_batch  the same columns, one row per rank, kind, is_draft and request_count

    summary    one row per rank:

        engine, found_by         str      of the first step
        step_count, apart_count  int64    as in per_kind; the other columns cover only steady steps
        elapsed_ns               int64    from the start of the first step to the end of the last step
        busy_ns, the token counts, the parts, wait_ns  int64  sums; null if unknown for any step
        inter_token_ns           float64  elapsed_ns / number of steps that decode: how long a request waits for each token
        tokens_per_s             float64  new tokens per second; null if the number is unknown for any step
        bound, the fractions     as in per_kind

    findings   how the steps were found, which steps are not steady, and what is unknown; without steps, why none were found

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> builder = TraceBuilder().annotation("step[DECODE bs=32]", start_us=0, duration_us=100)
    >>> trace = builder.kernel("gemm", start_us=60, duration_us=20, launch_us=50).build()
    >>> holotrace.inference(trace).answer.split(", ")[0]
    'The median decode step takes 100 µs'
    """

    per_step: pl.DataFrame
    per_kind: pl.DataFrame
    per_batch: pl.DataFrame
    summary: pl.DataFrame
    findings: tuple[str, ...] = ()


class InferenceRank(NamedTuple):
    """The partial result of one rank.

    steps          `Inference.per_step` without rank and wait_ns; None if there are no steps
    findings       findings about this rank
    communicating  the rank's collective calls, to match them with other ranks; None if there are no steps or calls
    row_of_call    event_index and inference_step of these calls
    """

    steps: pl.DataFrame | None
    findings: tuple[str, ...]
    communicating: OfRank | None
    row_of_call: pl.DataFrame | None


def inference(
    trace: Trace,
    *,
    device: str | None = None,
    patterns: Sequence[str] | None = None,
    executor: Executor = IN_PROCESS,
) -> Inference:
    """Divide the time of each inference step into parts, and find what bounds the step.

    Steps are the ranges named by vLLM, SGLang, TensorRT-LLM, ATOM and xDiT, and users' `prefill` and `decode` ranges. Without
    such ranges, the steps are the repeated forward passes of a model. Numbers that were not recorded are null, and findings say
    how to record them.

    Args:
        trace: the job.
        device: full name of a device in the device table, for files with a missing or wrong device name.
        patterns: regular expressions that match whole step names; they take priority over the engines' patterns. Named groups
            extract values from the name: `kind`, `requests`, `tokens`, `prefill_requests`, `decode_requests`,
            `prefill_tokens`, `decode_tokens`, `padded_tokens`.
        executor: processes each rank.

    Raises:
        InvalidOptionError: the device table does not contain the device, or a pattern is not valid.

    Source: docs/reference/analyses/inference.md explains the definitions.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> builder = TraceBuilder().annotation("step[DECODE bs=32]", start_us=0, duration_us=100)
    >>> trace = builder.kernel("gemm", start_us=60, duration_us=20, launch_us=50).build()
    >>> steps = holotrace.inference(trace).per_step
    >>> steps.select("kind", "request_count", "step_ns", "host_idle_ns", "launch_idle_ns", "bound").row(0)
    ('decode', 32, 100000, 70000, 10000, 'host')
    """
    return plan(device=device, patterns=patterns).run(trace, executor)


def plan(*, device: str | None = None, patterns: Sequence[str] | None = None) -> Plan[InferenceRank, Inference]:
    """Return the two functions of `inference`: one runs on each rank, the other combines the results of the ranks."""
    if device is not None and device_named(device) is None:
        message = f"inference: the device table does not contain {device!r}; add it with add_device"
        raise InvalidOptionError(message)
    checked = tuple(checked_step_pattern(pattern, "patterns") for pattern in patterns or ())
    return Plan(partial(_one_rank, device=device, patterns=checked), _combine)


def has_inference_steps(rank_trace: RankTrace) -> bool:
    """Return whether a rank recorded any inference step."""
    return not inference_steps(rank_trace).table.is_empty()


def _one_rank(rank_trace: RankTrace, *, device: str | None, patterns: tuple[str, ...]) -> InferenceRank:
    found = inference_steps(rank_trace, patterns)
    if found.table.is_empty():
        return InferenceRank(None, found.findings, None, None)
    known = work_of_steps(rank_trace, found.table, device)
    timed = with_times(rank_trace, found.table, known).with_columns(_output_tokens(), _draft_tokens(), _draft_ns())
    steps = timed.hstack(periods(timed)).with_row_index("inference_step")
    calls = known.work.filter((pl.col("kernel_kind") == KernelKind.COMMUNICATION) & (pl.col("row") >= 0))
    return InferenceRank(
        typed(steps, {name: kind for name, kind in _PER_STEP.items() if name not in {"rank", "wait_ns"}}),
        (*found.findings, *findings_of(steps, known), *graph_findings(rank_trace)),
        of_rank(rank_trace) if len(calls) else None,
        calls.select("event_index", inference_step="row"),
    )


def _output_tokens() -> pl.Expr:
    """Return a step's number of output tokens: one per request if it only decodes, without drafts; otherwise null."""
    requests = pl.col("decode_request_count")
    one_each = (pl.col("kind") == "decode") & (pl.col("decode_token_count") == requests) & ~pl.col("is_draft")
    return pl.when(one_each).then(requests).alias("output_token_count")


def _draft_tokens() -> pl.Expr:
    return (
        (pl.col("decode_token_count") - pl.col("decode_request_count")).clip(lower_bound=0).alias("draft_token_count")
    )


def _draft_ns() -> pl.Expr:
    return pl.when(pl.col("is_draft")).then("busy_ns").otherwise("draft_ns").alias("draft_ns")


def _combine(ranks: dict[int, InferenceRank]) -> Inference:
    findings = joined_findings({rank: known.findings for rank, known in ranks.items()})
    with_steps = {rank: known.steps for rank, known in ranks.items() if known.steps is not None}
    if not with_steps:
        schemas = (_PER_STEP, _PER_KIND, _PER_BATCH, _SUMMARY)
        per_step, per_kind, per_batch, per_rank = (pl.DataFrame(schema=schema) for schema in schemas)
        return Inference(per_step, per_kind, per_batch, per_rank, findings)
    steps = of_all_ranks(with_steps).join(
        _waits(ranks), on=["rank", "inference_step"], how="left", maintain_order="left"
    )
    return Inference(
        typed(steps, _PER_STEP),
        typed(over(steps, KIND), _PER_KIND),
        typed(over(steps, BATCH), _PER_BATCH),
        typed(summary(steps), _SUMMARY),
        findings,
    )


def _waits(ranks: Mapping[int, InferenceRank]) -> pl.DataFrame:
    """Return how long each rank waits for others in each step: rank, inference_step, wait_ns (null if any call is unmatched)."""
    communicating = {rank: known.communicating for rank, known in ranks.items() if known.communicating is not None}
    if len(communicating) < 2:  # noqa: PLR2004 -- no other rank to wait for
        return pl.DataFrame(schema={"rank": pl.Int32, "inference_step": pl.Int64, "wait_ns": pl.Int64})
    rows = of_all_ranks({rank: known.row_of_call for rank, known in ranks.items() if known.row_of_call is not None})
    waits = job_calls(communicating).calls.select("rank", "event_index", "wait_ns")
    joined = rows.join(waits, on=["rank", "event_index"], how="left")
    known = pl.when(pl.col("wait_ns").null_count() == 0).then(pl.col("wait_ns").sum())
    return joined.group_by("rank", "inference_step").agg(known.alias("wait_ns"))
