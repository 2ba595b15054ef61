"""Rules about time lost between ranks: exposed transfers, small calls, slow links, pipelines, uneven work, jitter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import polars as pl

from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Delay, JobCase, JobRule, Place, RankCase, Said
from holotrace.analyses.diagnosis.rules.needs import needs_results
from holotrace.analyses.diagnosis.rules.ranks.blame import blamed, is_part_of_training
from holotrace.analyses.diagnosis.rules.ranks.experts import WORK, overloaded
from holotrace.analyses.diagnosis.rules.ranks.mean_costs import mean_costs, share_of_step, steps_of, wait_count
from holotrace.analyses.diagnosis.rules.ranks.own_work import with_own_share
from holotrace.analyses.diagnosis.rules.ranks.uneven_inputs import (
    MORE_CALLS,
    times_as_many_calls,
    without_larger_inputs,
)
from holotrace.drawing.names import short_name
from holotrace.enrich.job_graph.causes.roles import cause_text
from holotrace.units import number_text, percent_text

_SHARE = 0.05
_LONGEST_TRANSFER = 3
"""A transfer was probably delayed if it takes more than this many times as long as the fast transfers of equal size."""
_FAST_QUANTILE, _FAST_MESSAGE_QUANTILE = 0.25, 0.05
"""Fast transfers are the fastest quarter of all transfers of equal size. Of sends and receives, only the fastest
twentieth are fast, because a late receiver delays most sends."""
_ON_ONE_RANK = 0.8
"""A cause is attributed to a single rank if at least this share of its cost is due to this rank."""
_BALANCED = 1.25
"""Stages are balanced if no stage computes for longer than this multiple of the mean computation time of a stage."""
_MAIN_SHARE = 0.25
_BETWEEN_TWO = ("send", "recv")
_CALLS_WITH_A_USUAL_WAIT = 8
"""A rank's median wait is its usual wait if the rank made at least this many calls. With fewer calls, the median may
only show that another rank was late."""
_TRANSFER = "https://docs.pytorch.org/tutorials/beginner/ddp_series_theory.html"

_HIDING = {
    "dp": "Give DDP fewer, larger buckets (bucket_cap_mb), set gradient_as_bucket_view=True, and check that the backward pass still "
    "runs while the buckets are reduced. If the link is the limit, reduce gradients in bfloat16 (with a communication hook).",
    "fsdp": "Prefetch the next unit (set_modules_to_forward_prefetch), wrap larger units, or keep parameters gathered after "
    "forward (reshard_after_forward=False) where memory allows.",
    "tp": "Keep tensor parallelism within a node, use sequence parallelism, and overlap the matrix products with the communication "
    "(torch.distributed.tensor.parallel with async tensor parallelism).",
    "ep": "Overlap the exchange of tokens with the shared experts or another microbatch, and keep experts within a node.",
    "pp": "Send activations on a separate stream, and use more microbatches, so that computation hides the sends.",
    "cp": "Overlap each ring exchange with the attention of the current block.",
}
_OPEN_ALL = "Record all ranks and open them together; then holotrace shows how long ranks wait, and for which rank."
_ONE_BROADCAST = (
    "DistributedDataParallel keeps parameters equal, so broadcast them only once, before training. If it broadcasts buffers, "
    "such as those of BatchNorm, pass broadcast_buffers=False, or use SyncBatchNorm."
)
_HIDING_OTHER = "Start the communication earlier, or on another stream, so that computation hides it."


def exposed_transfers(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for each axis of parallelism on which data moves while nothing computes."""
    per_step = evidence.results["parallelism"].per_step.drop_nulls("step")
    share = pl.col("rank").replace_strict(_typical_shares(evidence), default=1.0, return_dtype=pl.Float64)
    typical = per_step.with_columns(pl.col("transfer_ns") * share)
    partial = _partial_axes(evidence)
    for (axis,), rows in typical.group_by("axis", maintain_order=True):
        costs = mean_costs(evidence, rows, "transfer_ns")
        words: dict[str, Any] = {"axis": axis, "collectives": _main_collectives(evidence, axis)}
        if axis in partial:
            words |= {"is_partial": True, "confidence": "low"}
        yield JobCase(costs, share_of_step(evidence, costs), subject=str(axis), words=words)


def _main_collectives(evidence: JobEvidence, axis: str | None) -> list[str]:
    """Return the collectives that take at least a quarter of the transfer time on an axis, the longest first."""
    if "collectives" not in evidence.results:
        return []
    calls = evidence.results["collectives"].per_call.drop_nulls(["step", "transfer_ns"])
    axes = evidence.results["parallelism"].per_group.select("process_group", "axis")
    on_axis = calls.join(axes, on="process_group", how="left").filter(
        pl.col("axis").eq_missing(pl.lit(axis, pl.String))
    )
    sums = on_axis.group_by("collective").agg(pl.col("transfer_ns").sum())
    main = sums.filter(pl.col("transfer_ns") >= _MAIN_SHARE * pl.col("transfer_ns").sum())
    names: list[str] = main.sort("transfer_ns", "collective", descending=[True, False])["collective"].to_list()
    return names


def _partial_axes(evidence: JobEvidence) -> set[str]:
    """Return the axes on which some groups have ranks that were not opened.

    Transfers on these axes include waits for the missing ranks.
    """
    if "collectives" not in evidence.results:
        return set()
    calls = evidence.results["collectives"].per_call
    present = calls.group_by("process_group").agg(
        pl.col("rank").n_unique().alias("present"), pl.col("group_size").max()
    )
    groups = evidence.results["parallelism"].per_group.select("process_group", "axis")
    partial = present.filter(pl.col("present") < pl.col("group_size")).join(groups, on="process_group")
    return set(partial["axis"].drop_nulls())


def _typical_shares(evidence: JobEvidence) -> dict[int, float]:
    """Return, for each rank, the fraction of its transfer time that remains if very slow transfers are capped.

    If a transfer takes many times as long as others of equal size, it was delayed, for example by the sender's host.
    """
    if "collectives" not in evidence.results:
        return {}
    calls = evidence.results["collectives"].per_call.drop_nulls(["step", "transfer_ns"])
    quarter, twentieth = (
        pl.col("transfer_ns").quantile(share).over("process_group", "collective", "message_bytes")
        for share in (_FAST_QUANTILE, _FAST_MESSAGE_QUANTILE)
    )
    fast_ns = pl.when(pl.col("collective").is_in(_BETWEEN_TWO)).then(twentieth).otherwise(quarter)
    sums = (
        calls.with_columns(pl.min_horizontal("transfer_ns", _LONGEST_TRANSFER * fast_ns).alias("kept_ns"))
        .group_by("rank")
        .agg(pl.col("kept_ns", "transfer_ns").sum())
    )
    return {rank: kept / all_ns if all_ns else 1.0 for rank, kept, all_ns in sums.iter_rows()}


def unknown_exposure(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for the exposed communication if only one rank was opened; this time may include waiting."""
    costs = evidence.exposed_ns
    yield JobCase(costs, share_of_step(evidence, costs), words={"ranks": len(costs)})


def pipeline_bubbles(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for the time in which stages of a pipeline wait for each other."""
    stages = evidence.results["parallelism"].per_stage
    if stages.is_empty():
        return
    costs = mean_costs(evidence, stages, "bubble_ns")
    measured, expected = (
        fmean(stages[name].drop_nulls().to_list() or [0.0]) for name in ("bubble_fraction", "expected_fraction")
    )
    words = {
        "measured": measured,
        "expected": expected,
        "stages": stages["stage_count"].max(),
        "microbatches": stages["microbatch_count"].max(),
        "is_balanced": _is_balanced(stages),
    }
    yield JobCase(costs, measured, words=words)


def _is_balanced(stages: pl.DataFrame) -> bool:
    """Return whether the slowest stage computes for at most 25 % longer than the average stage."""
    of_stages = stages.group_by("stage").agg(pl.col("computation_ns").mean())["computation_ns"]
    slowest, mean = of_stages.max(), of_stages.mean()
    return isinstance(slowest, float) and isinstance(mean, float) and slowest <= _BALANCED * mean


def small_calls(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for each kind of collective with several small calls in a row.

    Merging a call into the previous call saves its latency and the usual wait for the other ranks. Merging does not
    shorten the wait for a rank with more work, because this wait is mostly in the first call of the series.
    """
    table = evidence.results["collectives"].per_collective.filter(pl.col("mergeable_count") > 0)
    calls = evidence.results["collectives"].per_call
    for (name,), rows in table.group_by("collective", maintain_order=True):
        saved, count = int(rows["mergeable_ns"].sum()), int(rows["mergeable_count"].sum())
        of_name = calls.filter(pl.col("collective") == name).group_by("rank").agg(_usual_wait())
        usual_ns = {rank: wait_ns or 0.0 for rank, wait_ns in of_name.iter_rows()}
        costs = {rank: (saved + count * usual_ns.get(rank, 0.0)) / steps for rank, steps in evidence.step_count.items()}
        yield JobCase(
            costs, share_of_step(evidence, costs), count=count, subject=str(name), words={"name": name, "count": count}
        )


def _usual_wait() -> pl.Expr:
    return pl.when(pl.col("wait_ns").count() >= _CALLS_WITH_A_USUAL_WAIT).then(pl.col("wait_ns").median())


def slow_parts(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for each host, link or group whose transfers take longer than those of its peers."""
    for row in evidence.results["collectives"].slow.iter_rows(named=True):
        excess_ns = (row["median_transfer_ns"] - row["peer_transfer_ns"]) * row["instance_count"]
        costs = {rank: excess_ns / count for rank, count in evidence.step_count.items()}
        yield JobCase(costs, row["slowdown"], count=row["instance_count"], subject=str(row["part"]), words=row)


def uneven_work(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for waiting that no single rank causes, if most of it is due to operators, kernels and copies."""
    yield from _waiting_in_turn(evidence, is_work=True)


def jitter(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case for waiting that no single rank causes, if Python, data loading and launches cause most of it."""
    yield from _waiting_in_turn(evidence, is_work=False)


def _waiting_in_turn(evidence: JobEvidence, *, is_work: bool) -> Iterator[JobCase]:
    """Yield a case for the waiting that no other rule reports.

    If `is_work` is true, yield a case only if different amounts of work cause at least half of the waiting. If
    `is_work` is false, yield a case only if different amounts of work cause less than half of the waiting.
    """
    causes = evidence.results["wait_causes"]
    named = [*blamed(evidence), *overloaded(evidence)]
    known = causes.per_cause.drop_nulls(["step", "cause_rank"]).filter(
        ~pl.col("cause").is_in(["communication", "unknown"]) & ~pl.col("cause_rank").is_in(named)
    )
    rest = with_own_share(evidence, without_larger_inputs(evidence, known)).with_columns(
        pl.col("cost_ns", "own_ns") * _share_outside_pipelines(evidence)
    )
    total, of_work = rest["own_ns"].sum(), _of_work(evidence, rest)["own_ns"].sum()
    if not total or (2 * of_work >= total) is not is_work:
        return
    first = _most_frequent(rest)
    costs = mean_costs(evidence, rest.rename({"waiting_rank": "rank"}), "cost_ns", step_count=steps_of(causes))
    has_sizes = all(of_rank.input_sizes for of_rank in evidence.ranks.values())
    yield JobCase(
        costs,
        share_of_step(evidence, costs),
        count=wait_count(rest),
        place=Place(source_line=first["frame"]),
        words={
            "cause": _named(first),
            "of_rank": first["rank"],
            "is_training": is_part_of_training(rest, first),
            "kind": first["cause"],
            "others": len(named),
            "has_sizes": has_sizes,
            "has_devices": any(rank.numbers.busy_ns is not None for rank in evidence.ranks.values()),
            **({} if has_sizes or not is_work else {"confidence": "low"}),
        },
        delays={} if is_work else _delays(rest, steps_of(causes)),
    )


def _most_frequent(causes: pl.DataFrame) -> dict[str, Any]:
    """Return the costliest cause; all data loading counts as one cause.

    `rank` is the rank to which at least 80 % of the cost is due, or None if there is no such rank.
    """
    name = pl.when(pl.col("cause") != "data_loading").then("name")
    frame = pl.when(pl.col("cause") != "data_loading").then("frame")
    places = causes.group_by("cause", "name", "frame", "cause_rank", maintain_order=True).agg(pl.col("own_ns").sum())
    total = pl.col("own_ns").sum().over(pl.col("cause").cast(pl.String), name.alias("of_name"), frame.alias("of_frame"))
    first = places.with_columns(total.alias("total_ns")).sort(
        "total_ns", "own_ns", descending=True, maintain_order=True
    )
    most = first.row(0, named=True)
    of_rank = first.filter((pl.col("total_ns") == most["total_ns"]) & (pl.col("cause_rank") == most["cause_rank"]))
    is_one = of_rank["own_ns"].sum() >= _ON_ONE_RANK * most["total_ns"]
    return {**most, "rank": most["cause_rank"] if is_one else None}


def _delays(rest: pl.DataFrame, step_count: int) -> dict[int, Delay]:
    """Return each rank's mean delay per step, with the lines of code that cause it.

    A rank's delay in a step is the longest time for which any other rank waits for it. Waits for computation, copies
    and operators (`WORK`) are not included.
    """
    not_work = rest.filter(~pl.col("cause").is_in(WORK))
    of_waiting = not_work.group_by("cause_rank", "step", "waiting_rank").agg(pl.col("own_ns").sum())
    longest = of_waiting.group_by("cause_rank", "step").agg(pl.col("own_ns").max())
    own = longest.group_by("cause_rank").agg(pl.col("own_ns").sum()).sort("cause_rank")
    lines = dict(not_work.drop_nulls("frame").group_by("cause_rank").agg(pl.col("frame").unique()).iter_rows())
    return {rank: Delay(own_ns / step_count, frozenset(lines.get(rank, ()))) for rank, own_ns in own.iter_rows()}


def _of_work(evidence: JobEvidence, causes: pl.DataFrame) -> pl.DataFrame:
    """Return the causes of waiting that are due to different amounts of work on the ranks.

    Operators on the host are included only if the ranks make different numbers of calls. If these numbers are about
    equal, operators are slow for a reason other than more work.
    """
    times = [times_as_many_calls(evidence, rank) for rank in evidence.ranks]
    is_equal = all(rate is not None and 1 / MORE_CALLS <= rate <= MORE_CALLS for rate in times)
    return causes.filter(pl.col("cause").is_in([kind for kind in WORK if kind != "operator" or not is_equal]))


def _named(cause: Mapping[str, Any]) -> str:
    return cause_text({**cause, "module": None, "name": cause["name"] and short_name(cause["name"])})


def _share_outside_pipelines(evidence: JobEvidence) -> pl.Expr:
    """Return an expression for the fraction of a rank's waiting that is not on the pipeline axis.

    Another rule reports the waits for other pipeline stages.
    """
    if "parallelism" not in evidence.results:
        return pl.lit(1.0)
    waits = evidence.results["parallelism"].per_step.drop_nulls("step")
    exposed = pl.when(pl.col("wait_ns").sum() > 0).then(pl.col("wait_ns")).otherwise(pl.col("exposed_ns"))
    outside = exposed.filter(pl.col("axis").ne_missing("pp")).sum() / exposed.sum()
    shares = dict(waits.group_by("rank").agg(outside.fill_nan(1.0)).iter_rows())
    return pl.col("waiting_rank").replace_strict(shares, default=1.0, return_dtype=pl.Float64)


def _say_transfer(cases: Sequence[RankCase]) -> Said:
    axis = cases[0].words["axis"]
    of = f"on the axis {axis}" if axis in _HIDING else "on an unknown axis"
    if "is_partial" in cases[0].words:
        return Said(
            f"communication {of} moves data while nothing computes, or waits for ranks whose files were not opened",
            _OPEN_ALL,
        )
    collectives = cases[0].words["collectives"]
    by = f" ({' and '.join(collectives)})" if collectives else ""
    advice = [_HIDING.get(axis, _HIDING_OTHER)]
    if axis == "dp" and "broadcast" in collectives:
        advice.append(_ONE_BROADCAST)
    return Said(f"communication {of} moves data while nothing computes{by}", " ".join(advice))


def _say_unknown(_: Sequence[RankCase]) -> Said:
    return Said(
        "no computation hides this rank's communication, which may include waits for ranks that were not opened",
        _OPEN_ALL,
    )


def _say_bubble(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    schedule = (
        f"with {words['stages']} stages and {words['microbatches']} microbatches, the schedule explains "
        f"{percent_text(words['expected'])}"
    )
    if words["measured"] <= 2 * words["expected"]:
        more = "Use more microbatches, or an interleaved or zero-bubble schedule."
    else:
        more = _ORDER if words["is_balanced"] else "Balance the stages: move layers away from the slowest stage."
    return Said(
        f"stages of the pipeline wait for each other for {percent_text(words['measured'])} of the step; {schedule}",
        more,
    )


_ORDER = (
    "The stages compute about equally long, so look at how long sends take and at the order of microbatches: a stage must send the "
    "next microbatch before it waits for a gradient, as the schedules in torch.distributed.pipelining do."
)


def _say_small(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"{words['count']:,} small {words['name']} calls come directly after another such call, and most of their time is latency",
        "Merge them: use larger buckets (bucket_cap_mb), or coalesce or flatten the tensors.",
    )


def _say_slow(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"transfers of {words['kind']} {words['part']} take {number_text(words['slowdown'], digits=2)} times as long as comparable transfers "
        f"({words['collective']})",
        "Compare the network cards, cables, PCIe links and congestion there with those of other hosts and links, and run nccl-tests on the slow part alone.",
    )


def _say_uneven(cases: Sequence[RankCase]) -> Said:
    return Said(
        f"{_in_turn(cases)} takes longer than the others to do its work and keeps them waiting, mostly because of {cases[0].words['cause']}",
        _EQUAL_SIZES if cases[0].words["has_sizes"] else _UNKNOWN_SIZES,
    )


_EQUAL_SIZES = (
    "The recorded inputs of all ranks have about the same size, so look for work that depends on the data, for other processes on "
    "the devices, and for changing device clocks (nvidia-smi -q -d CLOCK)."
)
_UNKNOWN_SIZES = (
    "Record with record_shapes=True to see whether the inputs of the ranks differ. If they do, give all ranks equal work in each step: "
    "pack sequences to equal lengths, or sort samples by cost. Otherwise, look for other processes on the same cores or devices."
)


def _say_jitter(cases: Sequence[RankCase]) -> Said:
    kind, rank = cases[0].words["kind"], cases[0].words["of_rank"]
    where = "" if rank is None else f" (on rank {rank})"
    is_shared = cases[0].words["is_training"] or (kind == "launch_delay" and not cases[0].words["has_devices"])
    return Said(
        f"{_in_turn(cases)} is late and keeps the others waiting, for a reason that changes from step to step, most often "
        f"{cases[0].words['cause']}{where}",
        _calm(cases[0].words) if is_shared else _CALMER.get(kind) or _calm(cases[0].words),
    )


def _in_turn(cases: Sequence[RankCase]) -> str:
    """Return the beginning of the sentence about waiting that no single rank causes."""
    return f"{'apart from what other findings explain, ' if cases[0].words['others'] else ''}each rank in turn"


def _calm(words: Mapping[str, Any]) -> str:
    """Return advice about hosts whose pace varies."""
    cores = "Give each rank its own cores (numactl, taskset) and fewer threads (OMP_NUM_THREADS)"
    return (
        f"{cores}, and launch more work at once (torch.compile, CUDA graphs)." if words["has_devices"] else f"{cores}."
    )


_CALMER = {
    "python": "Move this function out of the step or into a worker process, or run it on all ranks in the same step.",
    "garbage_collection": "Collect garbage on all ranks in the same step (gc.disable(), then gc.collect() every few hundred steps).",
    "data_loading": "Prefetch batches in worker processes (num_workers, prefetch_factor), so that a slow sample delays no rank.",
    "launch_delay": "Give each rank its own GPU, and look for other processes on the GPUs (nvidia-smi).",
}


def _needs_one_rank(evidence: JobEvidence) -> str | None:
    return None if len(evidence.ranks) == 1 else ""


RULES = (
    JobRule(
        "slow_link",
        "hosts, links and groups whose transfers take longer than those of comparable hosts, links and groups",
        threshold=1.25,
        unit="times as long",
        reason="Even over equally fast links, some transfers take up to a quarter longer by chance.",
        source="docs/reference/analyses/collectives.md",
        analyses=("collectives",),
        check=slow_parts,
        say=_say_slow,
        precedence=0,
        needs=needs_results("collectives"),
        confidence="medium",
    ),
    JobRule(
        "pipeline_bubble",
        "waiting between the stages of a pipeline, compared with the waiting that its schedule explains",
        threshold=0.10,
        unit=OF_THE_STEP,
        reason="With a good schedule, stages spend less than a tenth of the step waiting.",
        source="https://arxiv.org/abs/2104.04473",
        analyses=("parallelism",),
        check=pipeline_bubbles,
        say=_say_bubble,
        precedence=1,
        needs=needs_results("parallelism"),
    ),
    JobRule(
        "uneven_work",
        "waiting that no single rank causes and that is mostly due to operators, kernels and copies",
        threshold=_SHARE,
        unit=OF_THE_STEP,
        reason="In every job, work takes a few percent longer on some ranks than on others.",
        source="docs/reference/analyses/wait_causes.md",
        analyses=("wait_causes", "parallelism"),
        check=uneven_work,
        say=_say_uneven,
        precedence=2,
        needs=needs_results("wait_causes"),
        confidence="medium",
    ),
    JobRule(
        "jitter",
        "waiting that no single rank causes and that is mostly due to Python, data loading and launches",
        threshold=_SHARE,
        unit=OF_THE_STEP,
        reason="In every job, hosts differ in speed by a few percent.",
        source="docs/reference/analyses/wait_causes.md",
        analyses=("wait_causes", "parallelism"),
        check=jitter,
        say=_say_jitter,
        precedence=2,
        needs=needs_results("wait_causes"),
        confidence="low",
    ),
    JobRule(
        "small_collectives",
        "small calls in a row that could be merged into one",
        threshold=0.02,
        unit=OF_THE_STEP,
        reason="Merging calls takes extra code, which is not worth the effort if it saves less than 2 % of the step.",
        source="docs/reference/analyses/collectives.md",
        analyses=("collectives",),
        check=small_calls,
        say=_say_small,
        precedence=1,
        needs=needs_results("collectives"),
        confidence="medium",
    ),
    JobRule(
        "exposed_communication",
        "time in which data moves between ranks while no computation runs, for each axis of parallelism",
        threshold=_SHARE,
        unit=OF_THE_STEP,
        reason="The last bucket of gradients can never be hidden, but it takes less than 5 % of a step.",
        source=_TRANSFER,
        analyses=("parallelism",),
        check=exposed_transfers,
        say=_say_transfer,
        precedence=2,
        needs=needs_results("parallelism"),
    ),
    JobRule(
        "exposed_on_one_rank",
        "communication that no computation hides, if only one rank was opened",
        threshold=_SHARE,
        unit=OF_THE_STEP,
        reason="The last bucket of gradients can never be hidden, but it takes less than 5 % of a step.",
        source=_TRANSFER,
        analyses=(),
        check=unknown_exposure,
        say=_say_unknown,
        precedence=2,
        needs=_needs_one_rank,
        confidence="low",
    ),
)
