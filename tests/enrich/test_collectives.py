"""Collectives, and the key by which ranks know the same one."""

from __future__ import annotations

import pytest

from hta.enrich.collectives import collective_family, collectives, matchable_collectives
from hta.testing.builder import TraceBuilder


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "allreduce"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "sendrecv"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reducescatter"),
        ("_allgather_base", "allgather"),
        ("all_to_allv", "alltoall"),
        ("gloo:all_reduce", "allreduce"),
        ("hcom_allReduce__042_1_1", "allreduce"),
        ("HcclBroadcast", "broadcast"),
        ("void cross_device_reduce_2stage<float>(int)", "reduce"),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "nccldevkernel_generic_"),
    ],
)
def test_names_of_all_libraries_tell_the_kind(name, family) -> None:
    """Arguments and template arguments do not."""
    assert collective_family(name) == family


def test_a_collective_is_told_by_its_args() -> None:
    """One row with all that other ranks can know it by; asked for when its launch began."""
    builder = TraceBuilder().collective(start_us=10, duration_us=5, launch_us=2, elements=64, sequence=9)
    (row,) = collectives(builder.build().ranks[0]).to_dicts()
    assert row == {
        "event_index": 1,
        "start_ns": 10_000,
        "end_ns": 15_000,
        "asked_ns": 2_000,
        "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "family": "allreduce",
        "group": "[0, 1] 2 default_pg  ",
        "sequence": 9,
        "communication_id": None,
        "content": "Float 64",
    }


def test_sizes_that_differ_between_ranks_do_not_count() -> None:
    """In an all-to-all each rank gives what it has."""
    builder = TraceBuilder().collective("all_to_allv", start_us=10, duration_us=5, elements=64)
    assert collectives(builder.build().ranks[0])["content"].to_list() == ["Float "]


def test_annotations_of_the_host_count_only_without_kernels() -> None:
    """`nccl:` hands work over and never counts; `gloo:` does where no device communicates."""
    builder = TraceBuilder().annotation("gloo:all_reduce", start_us=0, duration_us=5, args={"Input Dims": [[8]]})
    builder.annotation("nccl:all_reduce", start_us=10, duration_us=5)
    found = collectives(builder.build().ranks[0])
    assert found.select("name", "content").rows() == [("gloo:all_reduce", " [[8]]")]
    with_kernel = builder.collective(start_us=20, duration_us=5).build().ranks[0]
    assert collectives(with_kernel)["family"].to_list() == ["allreduce"]
    assert collectives(with_kernel)["start_ns"].to_list() == [20_000]


def test_a_group_without_ranks_is_known_only_as_the_whole_job() -> None:
    """A number of a process says nothing on another."""
    without = {"Process Group Ranks": None}
    builder = TraceBuilder().collective(start_us=0, duration_us=1, args=without)
    builder.collective(
        start_us=5, duration_us=1, args={**without, "Process Group Description": "mesh_tp", "Group size": 3}
    )
    assert collectives(builder.build().ranks[0])["group"].to_list() == ["all", None]


def test_several_operations_with_one_number_have_places() -> None:
    """Coalesced collectives share a sequence number; they are told apart by their order."""
    builder = TraceBuilder()
    for start in (0, 10):
        builder.collective(start_us=start, duration_us=1, sequence=4)
    found = matchable_collectives(builder.build().ranks[0])
    assert found.select("number", "place", "by_order").rows() == [(4, 0, False), (4, 1, False)]
    assert found["key"].n_unique() == 1


def test_a_rank_without_collectives_has_an_empty_table() -> None:
    """With all columns."""
    found = matchable_collectives(TraceBuilder().build().ranks[0])
    assert found.is_empty()
    assert found.columns == ["key", "number", "window", "start_ns", "duration_ns", "by_order", "place"]
