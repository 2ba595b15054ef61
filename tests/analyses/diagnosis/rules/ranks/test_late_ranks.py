"""Tests of the rules about late ranks, uneven work and jitter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import holotrace
from holotrace.analyses.diagnosis.compute import shown_findings
from holotrace.testing.builder import TraceBuilder

ROOT = Path(__file__).parents[5]
GPU = ROOT / "examples" / "gpu" / "traces"
CPU = ROOT / "tests" / "reference" / "traces" / "planted_causes"
WAITING = {"late_rank", "uneven_work", "jitter"}


def rules_of(trace: holotrace.Trace) -> set[str]:
    """Return the rules in `WAITING` whose finding is not part of another finding."""
    return {row["rule"] for row in shown_findings(holotrace.diagnosis(trace))} & WAITING


def reducing_job(computing_us: Sequence[Sequence[int]]) -> holotrace.Trace:
    """Return steps of 1 ms: in step s, rank r computes for `computing_us[s][r]`, then all ranks reduce until 980 µs."""
    trace = TraceBuilder()
    ranks = range(len(computing_us[0]))
    for rank in ranks:
        trace.rank(rank)
        for number, of_ranks in enumerate(computing_us):
            begin, end = 1000 * number, 1000 * number + 980
            trace.step(number, begin, 1000)
            trace.operator("aten::mm", start_us=begin + 2, duration_us=10)
            trace.kernel("gemm", start_us=begin + 10, duration_us=of_ranks[rank], launch_us=begin + 5)
            start = begin + 12 + of_ranks[rank]
            placement = {"start_us": start, "duration_us": end - start, "launch_us": begin + 15}
            trace.collective(group_ranks=ranks, sequence=number, **placement)
            trace.runtime("cudaDeviceSynchronize", start_us=begin + 17, duration_us=end - begin - 15)
    return trace.build()


@pytest.mark.slow
def test_a_rank_that_always_computes_longer_is_late() -> None:
    """In every step, rank 2 computes 300 µs longer than the other ranks, so it is late."""
    assert rules_of(reducing_job([[400, 400, 700, 400]] * 4)) == {"late_rank"}


def test_ranks_with_more_work_in_turn_have_uneven_work() -> None:
    """In each step, a different rank computes 300 µs longer, so the work is uneven but no rank is late."""
    turns = [[700 if rank == step else 400 for rank in range(4)] for step in range(4)]

    assert rules_of(reducing_job(turns)) == {"uneven_work"}


@pytest.mark.slow
def test_equal_ranks_are_silent() -> None:
    """The ranks differ by only 1 % of the step, so nothing is reported."""
    turns = [[410 if rank == step else 400 for rank in range(4)] for step in range(4)]

    assert not rules_of(reducing_job(turns))


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (CPU / "1f1b_healthy", set()),  # the stages wait because of the pipeline bubble
        pytest.param(CPU / "zero_bubble_healthy", set(), marks=pytest.mark.slow),
        pytest.param(CPU / "pipeline_dp_healthy", set(), marks=pytest.mark.slow),
        pytest.param(GPU / "two_ranks-pipeline", set(), marks=pytest.mark.slow),
        pytest.param(GPU / "two_ranks-sharded", set(), marks=pytest.mark.slow),  # two ranks take turns on one GPU
        pytest.param(CPU / "ddp_healthy", {"jitter"}, marks=pytest.mark.slow),  # three ranks run on two cores
    ],
)
def test_healthy_jobs_have_no_late_rank(job: Path, expected: set[str]) -> None:
    """In recordings of healthy jobs, no rank is reported as late."""
    assert rules_of(holotrace.open_trace(job, cache=False)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("train.py(9): save_checkpoint", "async_save"),
        ("<built-in function sleep>", "out of the step"),
        ("<built-in method acquire of _thread.lock object at 0x7f25>", "holds the lock"),
    ],
)
def test_the_advice_fits_the_cause(name: str, advice: str) -> None:
    """Rank 1 is late because it runs a function for 300 µs; the advice depends on the function."""
    trace = TraceBuilder()
    for rank in range(3):
        trace.rank(rank)
        for number in range(3):
            begin, late = 1000 * number, 300 if rank == 1 else 0
            trace.step(number, begin, 1000).python("train.py(3): step", start_us=begin + 1, duration_us=998)
            if late:
                trace.python(name, start_us=begin + 3, duration_us=late)
            trace.kernel("gemm", start_us=begin + late + 10, duration_us=200, launch_us=begin + late + 5)
            start = begin + late + 220
            placement = {"start_us": start, "duration_us": begin + 900 - start, "launch_us": begin + late + 8}
            trace.collective(group_ranks=range(3), sequence=number, **placement)
            trace.runtime("cudaDeviceSynchronize", start_us=begin + late + 12, duration_us=890 - late)
    found = holotrace.diagnosis(trace.build()).per_finding
    (row,) = [row for row in found.to_dicts() if row["rule"] == "late_rank"]

    assert (row["rank"], advice in row["advice"]) == (1, True)


def test_what_slows_all_ranks_alike_makes_none_of_them_late() -> None:
    """A function takes 340 µs on rank 1 and 300 µs on the two other ranks, so rank 1 is late by only 40 µs."""
    trace = TraceBuilder()
    for rank in range(3):
        trace.rank(rank)
        for number in range(3):
            begin, late = 1000 * number, 340 if rank == 1 else 300
            trace.step(number, begin, 1000).python("train.py(3): step", start_us=begin + 1, duration_us=998)
            trace.python("train.py(9): mix_samples", start_us=begin + 3, duration_us=late)
            trace.kernel("gemm", start_us=begin + late + 10, duration_us=200, launch_us=begin + late + 5)
            start = begin + late + 220
            placement = {"start_us": start, "duration_us": begin + 900 - start, "launch_us": begin + late + 8}
            trace.collective(group_ranks=range(3), sequence=number, **placement)
            trace.runtime("cudaDeviceSynchronize", start_us=begin + late + 12, duration_us=890 - late)
    found = {row["rule"]: row for row in holotrace.diagnosis(trace.build()).per_finding.to_dicts()}

    assert found["slow_function"]["rank_count"] == 3
    assert found["late_rank"]["stake_ns"] == pytest.approx(40_000, rel=0.02)


def multiplying_job(calls: Sequence[Sequence[int]], host_us: Sequence[Sequence[int]]) -> holotrace.Trace:
    """Return steps of 1 ms: matrix products on the host, then an all-reduce that ends after 980 µs.

    In step s, rank r spends `host_us[s][r]` on `calls[s][r]` products of equal size.
    """
    trace = TraceBuilder()
    ranks = range(len(host_us[0]))
    for rank in ranks:
        trace.rank(rank)
        for number, (counts, times) in enumerate(zip(calls, host_us, strict=True)):
            begin, each = 1000 * number, times[rank] // counts[rank]
            trace.step(number, begin, 1000)
            for call in range(counts[rank]):
                dims = {"Input Dims": [[8, 8], [8, 8]]}
                trace.operator("aten::mm", start_us=begin + 2 + call * each, duration_us=each, args=dims)
            start = begin + 12 + times[rank]
            placement = {"start_us": start, "duration_us": begin + 980 - start, "launch_us": start - 5}
            trace.collective(group_ranks=ranks, sequence=number, **placement)
            trace.runtime("cudaDeviceSynchronize", start_us=start + 5, duration_us=begin + 985 - start)
    return trace.build()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("calls", "sentence", "advice"),
    [
        ((1, 1, 1), "", "as many matrix products and convolutions"),
        ((1, 4, 1), "; it runs 4 times as many matrix products and convolutions as the other ranks", "Move layers"),
    ],
)
def test_a_rank_with_more_layers_learns_that(calls: Sequence[int], sentence: str, advice: str) -> None:
    """Rank 1 computes 300 µs longer; the finding and the advice say whether it also runs more products."""
    found = holotrace.diagnosis(multiplying_job([calls] * 4, [[200, 500, 200]] * 4)).per_finding
    (row,) = [row for row in found.to_dicts() if row["rule"] == "late_rank"]

    assert row["finding"].endswith(f"operator mm{sentence}")
    assert advice in row["advice"]


@pytest.mark.slow
def test_operators_with_equal_inputs_that_are_slow_in_turn_are_no_uneven_work() -> None:
    """In each step, a different rank takes 300 µs longer for the same product, which is jitter, not uneven work."""
    turns = [[500 if rank == step else 200 for rank in range(3)] for step in range(3)]

    assert rules_of(multiplying_job([[1, 1, 1]] * 3, turns)) == {"jitter"}


@pytest.mark.parametrize(("late", "expected"), [("110101", "jitter"), ("111111", "late_rank")])
def test_a_rank_that_chance_makes_the_latest_is_not_late(late: str, expected: str) -> None:
    """A slow product delays rank 1 in the steps marked 1, and rank 0 in the steps marked 0.

    If two ranks are equal, the probability that one of them is the latest in at least four of six steps is
    2 * 22/64 = 69 %; the probability for all six steps is 3 %.
    """
    turns = [[500 if rank == int(step) else 200 for rank in range(2)] for step in late]

    assert rules_of(multiplying_job([[1, 1]] * 6, turns)) == {expected}


def test_a_rank_counts_once_in_a_finding() -> None:
    """`rank_count` counts each of three ranks once, even if a rank has several cases."""
    found = holotrace.diagnosis(multiplying_job([[1, 1, 1]] * 4, [[200, 500, 200]] * 4)).per_finding

    assert found.filter(rule="late_rank")["rank_count"].to_list() == [3]


def delayed_job(*calls: str, on_all_ranks: bool, kind: str = "python") -> holotrace.Trace:
    """Return steps of 1 ms on three ranks: rank 1 runs the nested `calls` for 300 µs before it launches work.

    If `on_all_ranks`, the other ranks run the same calls, but only for 20 µs.
    """
    trace = TraceBuilder()
    for rank in range(3):
        trace.rank(rank)
        for number in range(3):
            begin, late = 1000 * number, 300 if rank == 1 else 20
            trace.step(number, begin, 1000)
            if kind == "python":
                trace.python("train.py(3): step", start_us=begin + 1, duration_us=998)
            for depth, call in enumerate(calls if rank == 1 or on_all_ranks else ()):
                add = trace.python if kind == "python" else trace.annotation
                add(call, start_us=begin + 3 + depth, duration_us=late - 2 * depth)
            trace.kernel("gemm", start_us=begin + late + 10, duration_us=200, launch_us=begin + late + 5)
            start = begin + late + 220
            placement = {"start_us": start, "duration_us": begin + 900 - start, "launch_us": begin + late + 8}
            trace.collective(group_ranks=range(3), sequence=number, **placement)
            trace.runtime("cudaDeviceSynchronize", start_us=begin + late + 12, duration_us=890 - late)
    return trace.build()


@pytest.mark.slow
@pytest.mark.parametrize(("on_all_ranks", "line"), [(False, "train.py(9): evaluate"), (True, "train.py(7): predict")])
def test_the_cause_of_a_delay_is_the_function_that_no_other_rank_runs(*, on_all_ranks: bool, line: str) -> None:
    """If only rank 1 calls `evaluate`, the cause is `evaluate`; if all ranks call it, the cause is `predict` in it."""
    calls = ("train.py(9): evaluate", "train.py(7): predict")
    found = holotrace.diagnosis(delayed_job(*calls, on_all_ranks=on_all_ranks)).per_finding
    (row,) = found.filter(rule="late_rank").to_dicts()

    assert row["source_line"] == line
    assert ("(mostly train.py(7): predict), which no other rank runs" in row["finding"]) is not on_all_ranks


@pytest.mark.slow
def test_without_lines_the_loading_of_a_late_rank_is_one_finding() -> None:
    """Rank 1 loads data for 280 µs longer than the others; only a late rank is reported, not data loading.

    No Python functions were recorded.
    """
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    trace = delayed_job(loader, on_all_ranks=True, kind="annotation")

    assert {row["rule"] for row in shown_findings(holotrace.diagnosis(trace))} & {"late_rank", "data_loading"} == {
        "late_rank"
    }
