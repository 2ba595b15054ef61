"""Tests of the collectives of a rank."""

from __future__ import annotations

import pytest

from holotrace.enrich.collectives.collectives import (
    collective_family,
    collectives,
    communication,
    host_collectives,
)
from holotrace.testing.builder import TraceBuilder


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
        ("ncclSymkDevKernel_AllGather_LL(ncclSymkDevWorkArgs4K)", "all_gather"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "send_recv"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce_scatter"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL", "reduce"),
        ("ncclDevKernel_Broadcast_RING_LL", "broadcast"),
        ("allreduce", "all_reduce"),
        ("allreduce_coalesced", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("allgather_into_tensor_coalesced", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("_broadcast_oop", "broadcast"),
        ("gather", "gather"),
        ("scatter", "scatter"),
        ("send", "send"),
        ("recv", "recv"),
        ("barrier", "barrier"),
        ("gloo:all_reduce", "all_reduce"),
        ("nccl:recv 0<-1", "recv"),
        ("hcom_allReduce__042_1_1", "all_reduce"),
        ("hccl::all_to_all", "all_to_all"),
        ("HcclBroadcast", "broadcast"),
        ("void cross_device_reduce_2stage<float>(int)", "all_reduce"),
        ("void vllm::cross_device_reduce_1stage<c10::BFloat16, 8>(vllm::RankData*)", "all_reduce"),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)", "all_reduce"),
        ("void (anonymous namespace)::multimem_one_shot_reduce_scatter<float>(int)", "reduce_scatter"),
        ("void quickreduce::allreduce_prototype_twoshot<half>(half const*)", "all_reduce"),
        ("one_shot_param_kernel", "all_reduce"),
        ("rmsNormLamport", "all_reduce"),
        ("userbuffers_fp16_sum_inplace_gpu_rw", "all_reduce"),
        ("userbuffers_fp16_sum_inplace_gpu_mc_ag", "all_gather"),
        ("userbuffers_fp16_sum_inplace_gpu_rr_rs_oop", "reduce_scatter"),
        ("kuserbuffers_pushsend", "send"),
        ("kuserbuffers_pushrecv", "recv"),
        ("rdxn_on_stream_kernel", "all_reduce"),
        ("fcollect_on_stream_kernel", "all_gather"),
        ("barrier_on_stream_kernel_threadgroup", "barrier"),
        ("void deep_ep::intranode::dispatch<8, 768>(int4*, float*)", "all_to_all"),
        ("void dpsk::ep::internode::combine<true>(void*)", "all_to_all"),
        ("void moeA2ADispatchKernel<float>(int)", "all_to_all"),
        ("all2all_v2", "all_to_all"),
        ("void hybrid_ep::device_sync_kernel<8>(int)", "barrier"),
        ("put_signal_kernel", "send"),
        ("_ZN7deep_ep9intranode8dispatchILi8ELi768EEEvP4int4Pf", "all_to_all"),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", None),
        ("coalesced", None),
        ("", None),
    ],
)
def test_names_of_all_libraries_give_pytorchs_name_of_the_collective(name, family) -> None:
    """Names of kernels and API functions map to the names of collectives in torch.distributed; other names do not."""
    assert collective_family(name) == family


@pytest.mark.parametrize(
    ("kernel", "collective", "family"),
    [
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "_allgather_base", "all_gather"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "all_to_allv", "all_to_all"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "coalesced", "all_gather"),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "coalesced", "unknown"),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", None, "unknown"),
    ],
)
def test_args_decide_the_collective_before_the_name(kernel: str, collective: str | None, family: str) -> None:
    """The kind of collective is taken from the args or, if they do not show it, from the kernel's name.

    RCCL runs all collectives in one kernel, whose name does not show which collective it runs.
    """
    args = {} if collective is None else {"Collective name": collective}
    builder = TraceBuilder().kernel(kernel, start_us=0, duration_us=5, args=args)
    assert communication(builder.build().ranks[0])["family"].to_list() == [family]


def test_args_describe_a_collective() -> None:
    """The row of a collective contains the values that identify the same collective on other ranks.

    `asked_ns` is the start of the collective's launch call.
    """
    builder = TraceBuilder().collective(start_us=10, duration_us=5, launch_us=2, elements=64, sequence=9)
    (row,) = collectives(builder.build().ranks[0]).to_dicts()
    assert row == {
        "event_index": 1,
        "described_index": 1,
        "start_ns": 10_000,
        "end_ns": 15_000,
        "asked_ns": 2_000,
        "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "recorded_collective": "allreduce",
        "family": "all_reduce",
        "group": "[0, 1] 2 default_pg  ",
        "sequence": 9,
        "communication_id": None,
        "dtype": "Float",
        "byte_count": 256,
    }


def test_annotations_of_the_host_count_only_without_kernels() -> None:
    """`nccl:` ranges only launch work and are never listed; `gloo:` ranges are listed on ranks without NCCL kernels."""
    builder = TraceBuilder().annotation("gloo:all_reduce", start_us=0, duration_us=5, args={"Input Dims": [[8]]})
    builder.annotation("nccl:all_reduce", start_us=10, duration_us=5)
    operations = collectives(builder.build().ranks[0])
    assert operations["name"].to_list() == ["gloo:all_reduce"]
    with_kernel = builder.collective(start_us=20, duration_us=5).build().ranks[0]
    assert collectives(with_kernel)["family"].to_list() == ["all_reduce"]
    assert collectives(with_kernel)["start_ns"].to_list() == [20_000]


def test_a_group_without_ranks_is_known_only_as_the_whole_job() -> None:
    """If the ranks of a group were not recorded, the group is null unless it contains all ranks of the job.

    Its number does not identify it, because each process numbers its groups independently.
    """
    without = {"Process Group Ranks": None}
    builder = TraceBuilder().collective(start_us=0, duration_us=1, args=without)
    builder.collective(
        start_us=5, duration_us=1, args={**without, "Process Group Description": "mesh_tp", "Group size": 3}
    )
    assert collectives(builder.build().ranks[0])["group"].to_list() == ["all", None]


def test_a_rank_without_collectives_has_an_empty_table() -> None:
    """For a rank without events, the table is empty but has all columns."""
    operations = communication(TraceBuilder().build().ranks[0])
    with_rows = communication(TraceBuilder().collective(start_us=0, duration_us=5).build().ranks[0])
    assert operations.is_empty()
    assert operations.schema == with_rows.schema


def old_kernel(name: str, host_call: str, **args: object) -> TraceBuilder:
    """Return a kernel without args, as recorded before NCCL 2.20, and the host call that launches it."""
    builder = TraceBuilder().annotation(host_call, start_us=0, duration_us=10, args=args)
    return builder.kernel(name, start_us=20, duration_us=5, launch_us=4)


def test_the_host_call_around_the_launch_describes_a_silent_kernel() -> None:
    """NCCL runs an all-to-all as sends and receives, so only the host call shows its kind, type and size."""
    shapes = {"Input Dims": [[6, 4]], "Input type": ["long int"]}
    builder = old_kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(int)", "nccl:all_to_all", **shapes)
    operations = communication(builder.build().ranks[0])
    assert operations.select("family", "dtype", "byte_count").rows() == [("all_to_all", "long int", 192)]


def test_a_host_call_with_args_has_priority_over_an_annotation() -> None:
    """`record_param_comms` takes precedence over the annotation, which lacks the sequence number of the kernel."""
    args = {
        "Collective name": "_reduce_scatter_base",
        "dtype": "BFloat16",
        "In msg nelems": 8,
        "Process Group Ranks": "[0, 1]",
        "Group size": 2,
        "Seq": 7,
    }
    builder = old_kernel("ncclKernel_ReduceScatter(int)", "nccl:_reduce_scatter_base")
    builder.operator("record_param_comms", start_us=0, duration_us=12, args=args)
    operations = communication(builder.build().ranks[0])
    columns = ("family", "dtype", "byte_count", "sequence")
    assert operations.select(columns).rows() == [("reduce_scatter", "BFloat16", 16, 7)]


def test_without_a_description_type_and_size_are_null() -> None:
    """An annotation on a different thread from the launch is ignored; the kernel's type and size are null, not 0."""
    builder = TraceBuilder().kernel("ncclKernel_AllReduce(int)", start_us=20, duration_us=5, launch_us=4)
    shapes = {"Input Dims": [[6]], "Input type": ["float"]}
    builder.annotation("nccl:all_reduce", start_us=0, duration_us=10, thread=2, args=shapes)
    operations = communication(builder.build().ranks[0])
    assert operations.select("family", "dtype", "byte_count").rows() == [("all_reduce", None, None)]


def test_sends_are_communication_but_not_collectives() -> None:
    """A send is communication but not a collective, so `collectives` does not list it."""
    rank_trace = TraceBuilder().collective("send", start_us=0, duration_us=5).build().ranks[0]
    assert communication(rank_trace).select("family", "byte_count").rows() == [("send", 4096)]
    assert collectives(rank_trace).is_empty()


def test_host_collectives_are_listed_besides_kernels() -> None:
    """`host_collectives` lists gloo collectives even if NCCL kernels run on the device."""
    builder = TraceBuilder().annotation("gloo:broadcast", start_us=0, duration_us=5)
    builder.collective(start_us=0, duration_us=5)
    assert host_collectives(builder.build().ranks[0])["family"].to_list() == ["broadcast"]
