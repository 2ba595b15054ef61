"""Tests of the rules about processes with several GPUs and about collectives through the hosts."""

from __future__ import annotations

import polars as pl
import pytest

import holotrace
from device_jobs import H100, cases_of, said
from holotrace.testing.builder import TraceBuilder


def wrapped(name: str, *devices: int) -> holotrace.Trace:
    """Return two steps of a model in the wrapper `name`; each step runs one kernel on each of `devices`."""
    trace = TraceBuilder().header(deviceProperties=[{**H100, "id": device} for device in devices])
    for begin in (0, 100):
        trace.step(begin // 100, begin, 100).annotation(name, start_us=begin + 1, duration_us=98)
        for device in devices:
            trace.kernel("relu", start_us=begin + 10, duration_us=80, device=device, launch_us=begin + 5)
    return trace.build()


def test_data_parallel_on_two_devices() -> None:
    """The finding about DataParallel on two devices points to the first call; the cost is unknown."""
    trace = wrapped("DataParallel.forward", 0, 1)
    case = cases_of(trace, "data_parallel")[""]

    assert (case.value, case.count, case.place.at_ns, case.explained_ns) == (2, 2, 1_000, 0)
    assert "DistributedDataParallel" in said(trace, "data_parallel").advice


@pytest.mark.parametrize(
    ("name", "devices"), [("DataParallel.forward", (0,)), ("DistributedDataParallel.forward", (0, 1))]
)
def test_other_wrappers_and_one_device_are_fine(name: str, devices: tuple[int, ...]) -> None:
    """Neither DataParallel on a single device nor DistributedDataParallel is reported."""
    assert not cases_of(wrapped(name, *devices), "data_parallel")


def reducing_job(collective: str, *, on_gpu: bool = True, ranks: int = 2) -> holotrace.Trace:
    """Return steps of 100 µs in which every rank computes for 50 µs and reduces for 40 µs on the host."""
    trace = TraceBuilder()
    for rank in range(ranks):
        trace.rank(rank)
        for begin in (0, 100, 200):
            trace.step(begin // 100, begin, 100).operator("aten::mm", start_us=begin + 1, duration_us=50)
            if on_gpu:
                trace.kernel("gemm", start_us=begin + 5, duration_us=45, launch_us=begin + 3)
            trace.annotation(collective, start_us=begin + 55, duration_us=40, thread=2)
    return trace.build()


def finding(trace: holotrace.Trace) -> dict[str, object] | None:
    """Return the finding about collectives that go through the hosts, or None."""
    rows = holotrace.diagnosis(trace).per_finding.filter(pl.col("rule") == "host_collectives")
    return rows.row(0, named=True) if len(rows) else None


@pytest.mark.slow
def test_gloo_between_gpus_costs_its_transfers() -> None:
    """The finding names gloo and recommends NCCL; `exposed_communication` does not report the same transfers."""
    trace = reducing_job("gloo:all_reduce")
    found = finding(trace)

    assert found is not None
    assert str(found["finding"]).startswith("gloo communicates through the hosts")
    assert "nccl" in str(found["advice"])
    assert found["stake_ns"] == pytest.approx(40_000, rel=0.01)
    assert "exposed_communication" not in holotrace.diagnosis(trace).per_finding["rule"].to_list()


def test_gloo_also_costs_the_copies_that_it_launches() -> None:
    """Gloo costs 40 µs: it reduces for 30 µs and copies the result for 10 µs; another thread's copies do not count."""
    trace = TraceBuilder()
    for rank in range(2):
        trace.rank(rank)
        for begin in (0, 100, 200):
            trace.step(begin // 100, begin, 100).kernel("gemm", start_us=begin + 5, duration_us=45, launch_us=begin + 3)
            trace.annotation("gloo:all_reduce", start_us=begin + 52, duration_us=30, thread=2)
            trace.copy(
                "Memcpy HtoD (Pinned -> Device)", start_us=begin + 84, duration_us=10, launch_us=begin + 80, thread=2
            )
            trace.copy("Memcpy HtoD (Pinned -> Device)", start_us=begin + 95, duration_us=3, launch_us=begin + 81)
    found = finding(trace.build())

    assert found is not None
    assert found["stake_ns"] == pytest.approx(40_000, rel=0.01)


def test_gloo_between_processors_is_fine() -> None:
    """Without a GPU, gloo is the right library, so nothing is reported."""
    assert finding(reducing_job("gloo:all_reduce", on_gpu=False)) is None


@pytest.mark.slow
def test_devices_that_communicate_are_fine() -> None:
    """A job with NCCL kernels uses gloo only for data on the hosts, so nothing is reported."""
    trace = TraceBuilder()
    for rank in range(2):
        trace.rank(rank)
        for begin in (0, 100, 200):
            trace.step(begin // 100, begin, 100).kernel("gemm", start_us=begin + 5, duration_us=45, launch_us=begin + 3)
            trace.annotation("gloo:all_reduce", start_us=begin + 55, duration_us=10, thread=2)
            trace.collective("allreduce", start_us=begin + 70, duration_us=20, group_ranks=range(2))
    assert finding(trace.build()) is None
