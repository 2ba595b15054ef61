"""Tests of the kind of a kernel, which follows from its name, event kind and args."""

from __future__ import annotations

import json
import sys

import polars as pl
import pytest

from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.kernels.kernel_kind import (
    RULES,
    RULES_VARIABLE,
    active_rules,
    add_rule,
    kind_of_name,
    remove_added_rules,
)
from holotrace.errors import InvalidOptionError
from holotrace.execution.processes import processes
from holotrace.schema import EventKind, KernelKind
from holotrace.testing.builder import TraceBuilder

COMPUTATION, COMMUNICATION, MEMORY, OTHER = KernelKind


@pytest.fixture(autouse=True)
def _no_rules_of_other_tests(monkeypatch):
    """Run each test with the built-in rules only."""
    monkeypatch.delenv(RULES_VARIABLE, raising=False)
    yield
    remove_added_rules()


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        "void my_ncclKernel_wrapper<float>(float*)",
        "mscclKernel_Sum_float_Simple(ncclDevComm*)",
        "void mscclpp::collective::allreduceNvls<float>(float*)",
        "rcclGenericKernel",
        "hccl::all_reduce",
        "hcom_allReduce__123_0_1",
        "xccl::allreduce",
        "oneccl_allreduce_small",
        "void ccl::v1::ring_kernel<float>()",
        "nvshmemi_proxy_kernel",
        "void (anonymous namespace)::nvshmem_all_to_all_kernel<float>()",
        "rocshmem_barrier_all",
        "void deep_ep::intranode::dispatch<8, 768>(int4*, float*)",
        "void deep_ep::internode_ll::combine<true>(void*)",
        "void vllm::cross_device_reduce_1stage<c10::BFloat16, 8>(vllm::RankData*)",
        "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<half>>(half const*)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        "two_shot_all_reduce_kernel",
        "void c10d::intra_node_comm::hybridCubeMeshAllReduceKernel<32ul>(int)",
        "void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>(tensorrt_llm::kernels::AllReduceParams)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<half>(int)",
        "(anonymous namespace)::barrier_kernel(unsigned int**, int)",
        "void userbuffers_fp16_sum_inplace_gpu_rw<2>(int)",
        "moeAllToAllKernel(int*)",
        "dpsk::ep::internode::dispatch<int>(x)",
        "void dpsk::ep::internode::combine<true>(x)",
        "void dpsk::ep::internode::notify_dispatch<false,8>(x)",
        "void dpsk::ep::internode::cached_notify<false>(x)",
        "void dpsk::ep::intranode::dispatch<8>(x)",
        "void dpsk::ep::internode_ll::combine(x)",
        "void hybrid_ep::dispatch_kernel<bf16>(x)",
        "void hybrid_ep::combine_kernel<1>(x)",
        "void hybrid_ep::device_sync_kernel<8>(x)",
        "void uccl::internode::dispatch<true>(x)",
        "void uccl::internode_ll::combine<true>(x)",
        "void uccl::intranode::cached_notify_combine<8>(x)",
        "kernel_dispatch_token",
        "kernel_combine_token_intra_node",
        "kernel_dispatch_intranode",
        "moeA2ADispatchKernel",
        "void tensorrt_llm::kernels::moe_alltoall::moeA2ACombineKernel<1>(x)",
        "void moeA2ADispatchKernel<a>(x)",
        "a2a_dispatch_send_kernel",
        "a2a_combine_recv_kernel",
        "void (anonymous namespace)::dispatchKernel<1>(x)",
        "void deep_ep::intranode::barrier<8>(int**, int)",
        "void deep_ep::elastic::hybrid_dispatch_impl<1>()",
        "void deep_ep::elastic::pp_send_impl<1>()",
        "void deep_ep::elastic::barrier_impl<1>()",
        "deep_ep::legacy::internode_ll::clean_low_latency_buffer(x)",
        "void nccl_ep::internode_ll::dispatch<1>(x)",
        "nccl_ep_jit_ht_combine_kernel",
        "EpDispatchIntraNodeKernel_bf16",
        "void mori::moe::EpCombineInterNodeV1Kernel<a>(x)",
        "mori_shmem_barrier_all_block",
        "OneShotAll2allSdmaKernel",
        "AllGatherRingKernel",
        "void mscclpp::executionKernel<__half>(x)",
        "exchangeSplitAndOffset(long*, int, int)",
        "void exchangeSplitAndOffset_2d<true>(long*)",
        "allToAllV(void*)",
        "c10d::nvshmem_extension::tile_reduce_kernel",
        "helixAllToAllKernel",
        "ipc_rsag_push_param_kernel",
        "ipc_tp2_remote_push_kernel",
        "push_oneshot_param_kernel",
        "allreduce_fusion_kernel_oneshot_lamport",
        "minimax_reduce_rms_kernel_lamport",
        "rmsNormLamport",
        "ulysses_a2a_kernel",
        "kuserbuffers_pushsend",
        "userbuffers_fp16_sum_inplace_gpu_mc_rs_oop",
        "wait_until_on_stream_and_reset",
        "void barrier_on_stream_kernel_threadgroup<1>(x)",
        "alltoall_on_stream_kernel",
        "nvshmemi_signal_wait_until_on_stream_kernel",
        "CudaIpcBarrierAllKernel",
        "a2a_single_kernel_v2",
        "all2all_v2",
        "post_attn_all2all_transpose_kernel",
        "ep_topk_gather_rs_kernel_v2",
        "p2p_copy_kernel",
        "barrier_all_intra_node_kernel",
        "_multimem_all_gather_kernel",
        "_multimem_reduce_scatter_residual_add_kernel",
        "push_pull_halos_1d_kernel",
        "oneRankReduce",
        "ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16",
        "_all_gather_kernel",
        "_reduce_scatter_kernel",
        "ubx_kernel_a2av_token_bf16_mxfp8",
        "nvshmem_device_producer_all_gather_2d_put_block_kernel",
        "lsa_simple_alltoall_kernel",
        "cross_device_reduce_2stage_write_mode",
        "MoeDistributeDispatch",
        "_ZN7deep_ep9intranode8dispatchILi8ELi768EEEvP4int4Pf",
    ],
)
def test_kernels_of_every_communication_library_communicate(name: str) -> None:
    """NCCL, RCCL, HCCL, XCCL, oneCCL, MSCCL, SHMEM, DeepEP, symmetric memory and custom all-reduces are communication."""
    assert kind_of_name(name) is COMMUNICATION


@pytest.mark.parametrize(
    "name",
    [
        "ampere_sgemm_128x64_nn",
        "void at::native::elementwise_kernel<128, 2, at::native::copy_dma_functor>(int)",
        "void flash::SyncMemcpy_fwd_kernel<float>(float*)",
        "triton_poi_fused_all_gather_into_tensor_wait_tensor_0",
        "void split_embedding_backward_codegen_rowwise_adagrad<float>(float*)",
        "_combined_routing_memset",
        "void deep_ep::layout::get_dispatch_layout<256>(long const*)",
        "void vectorized<nvshmem::Functor>(int)",
        "hipblaslt_gemm_kernel",
        "merge",
        "",
        "void deep_ep::layout::get_dispatch_layout<256>(long)",
        "uccl::layout::get_dispatch_layout",
        "moe_align_block_size_kernel",
        "void vllm::moe::moe_align_block_size_kernel<int>(x)",
        "void at::native::dispatch_foo<int>(x)",
        "void flash::flash_fwd_splitkv_combine_kernel<1>(x)",
        "flash_fwd_splitkv_combine_kernel",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<1>(x)",
        "void at::native::_scatter_gather_elementwise_kernel<128, 8>(x)",
        "void at::native::small_reduce_all(x)",
        "small_reduce_kernel",
        "smallReduce",
        "smallreduce_kernel",
        "wallreduce",
        "groupnorm_kernel_dispatch_up",
        "scatter_reduce_kernel_impl",
        "kn_mla_reduce_v1",
        "gather_topk_values_kernel",
        "computeSendRecvIndicesKernel",
        "allToAllMetadataDevice",
        "moeA2APrepareDispatchKernel",
        "moeA2ASanitizeExpertIdsKernel",
        "mori::moe::ConvertDispatchOutputKernel",
        "LocalExpertCountKernel",
        "deep_ep::elastic::dispatch_copy_epilogue_impl",
        "deep_ep::elastic::combine_reduce_epilogue_impl",
        "deepep_permute_triton_kernel",
        "moe_ag_scatter_align_block_size_kernel",
        "_combined_routing",
        "_sum_combine",
        "kernel_gqa_fwd_batch_decode_combine_kv",
        "merge_attn_states_kernel",
        "permute_kernel",
        "unpermute_kernel",
        "moe_permute_topK_kernel",
        "_permute_kernel",
        "hybrid_ep::scan",
        "hybrid_ep::permute_kernel",
        "mega_kernel_dispatch_token_moe_grouped_gemm",
        "FlashAttnFwdCombine",
        "splitKreduce_kernel",
        "multi_tensor_apply_kernel",
        "multimodal_kernel",
        "broadcast_kernel",
        "recat_copy_async_kernel",
        "sendto_kernel",
        "softmax_shmem_kernel",
        "reduce_shmem",
        "barrier_stress",
        "finalizeMoeRoutingKernel",
        "expandInputRowsKernel",
        "doActivationKernel",
        "sort_scatter_index_to_per_expert_kernel",
        "calc_gather_index_kernel",
        "kernel_get_dispatch_send_reqs",
        "append_paged_kv_cache",
        "compute_block_mask_peer",
        "fused_moe_kernel",
        "_ZN2at6native13reduce_kernelIfEEvv",
        "parallel_reduce_kernel",
        "triton_red_fused_all_reduce_0",
        "triton_poi_fused__to_copy_all_gather_into_tensor_0",
        "combine_topk_swa_indices_ragged_kernel",
        "token_dispatcher_index_select",
        "pipeline_combine_kernel",
        "embedding_bag_combine",
    ],
)
def test_other_kernels_compute(name: str) -> None:
    """Kernels that sort, permute, gather, reduce or combine on one device, or prepare an exchange, are computation."""
    assert kind_of_name(name) is COMPUTATION


@pytest.mark.parametrize(
    "name",
    [
        "Memcpy HtoD (Pageable -> Device)",
        "Memset (Device)",
        "hipMemcpyAsync",
        "CopyHostToDevice",
        "CopyDeviceToDevice",
        "FillBuffer",
        "__amd_rocclr_copyBuffer",
        "__amd_rocclr_fillBufferAligned(void*)",
    ],
)
def test_copies_written_as_kernels_are_memory(name: str) -> None:
    """ROCm copies data with kernels, and old files record copies as kernels; all these kernels have the kind MEMORY."""
    assert kind_of_name(name) is MEMORY


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("dma_request", MEMORY),
        ("hccl::all_to_all", COMMUNICATION),
        ("pe_exe", OTHER),
        ("job_exe", OTHER),
        ("collective_subgraph_execution", OTHER),
        ("remote", COMPUTATION),
        ("event_wait", None),
        ("event_record", None),
    ],
)
def test_mtia_rows(name: str, kind: KernelKind | None) -> None:
    """On MTIA, `dma_request` is memory, `remote` is computation, and waits and event records have no kind."""
    assert kind_of_name(name, EventKind.ACCELERATOR) is kind


def test_mtia_rules_do_not_apply_to_gpu_kernels() -> None:
    """CUDA kernels named packet_sort, dma_gather and event_wait are computation."""
    assert [kind_of_name(name) for name in ("packet_sort", "dma_gather", "event_wait")] == [COMPUTATION] * 3


def test_every_rule_has_a_reason() -> None:
    """Every rule states its reason, and every communication rule has a link to its library."""
    assert all(rule.reason for rule in RULES)
    assert all("https://" in rule.reason for rule in RULES if rule.kind is COMMUNICATION)


@pytest.mark.parametrize("part", ["dispatch_", "a2a_", "ep::", "p2p_", "mori_", "all_to_all_", "_Z1f", "a<"])
def test_only_the_beginning_of_a_name_is_classified(part: str) -> None:
    """Only the beginning of a name with millions of characters is used for classification."""
    long = part * 1_000_000
    assert kind_of_name(f"{long}_ncclDevKernel_AllReduce_Sum_f32") == kind_of_name(long)


def test_the_event_kind_decides_before_the_name() -> None:
    """Copies and memsets with any name are classified as memory, and so is a kernel named Memcpy."""
    trace = (
        TraceBuilder()
        .copy("ncclMemcpy", start_us=0, duration_us=1)
        .memset("gemm", start_us=1, duration_us=1)
        .kernel("Memcpy DtoD", start_us=2, duration_us=1)
        .event(ph="X", cat="collective_comm", name="x", pid=0, tid=1, ts=3, dur=1, args={})
        .build()
    )

    assert device_work(trace.ranks[0])["kernel_kind"].to_list() == [MEMORY, MEMORY, MEMORY, COMMUNICATION]


def test_collective_arguments_make_a_kernel_communicate() -> None:
    """A kernel with an unknown name is communication if it has the arg "Collective name"; a copy never is."""
    trace = (
        TraceBuilder()
        .kernel("my_kernel", start_us=0, duration_us=1, args={"Collective name": "allreduce", "Group size": 2})
        .kernel("my_kernel", start_us=1, duration_us=1)
        .copy("Memcpy PtoP", start_us=2, duration_us=1, args={"Collective name": "allreduce", "Group size": 2})
        .build()
    )

    assert device_work(trace.ranks[0])["kernel_kind"].to_list() == [COMMUNICATION, COMPUTATION, MEMORY]


def test_an_added_rule_comes_first_and_the_latest_first_of_all() -> None:
    """The rule added last takes precedence over rules added before and over built-in rules."""
    add_rule("^gemm", "communication", reason="a fused gemm and all-reduce")
    assert kind_of_name("gemm_ar") is COMMUNICATION

    add_rule("^gemm", KernelKind.OTHER)
    assert kind_of_name("gemm_ar") is OTHER

    add_rule("^gemm", None)
    assert kind_of_name("gemm_ar") is None


def test_an_added_rule_applies_to_traces_already_analysed() -> None:
    """Adding or removing a rule changes the kinds in a trace that is already open."""
    rank_trace = TraceBuilder().kernel("my_ring", start_us=0, duration_us=1).build().ranks[0]
    assert device_work(rank_trace)["kernel_kind"].to_list() == [COMPUTATION]

    add_rule("my_ring", "communication")
    assert device_work(rank_trace)["kernel_kind"].to_list() == [COMMUNICATION]

    remove_added_rules()
    assert device_work(rank_trace)["kernel_kind"].to_list() == [COMPUTATION]


def _kinds(rank_trace) -> list[int]:
    return device_work(rank_trace)["kernel_kind"].to_list()


@pytest.mark.slow
def test_added_rules_travel_to_worker_processes() -> None:
    """A worker process uses the added rule although it never called `add_rule`."""
    trace = TraceBuilder().kernel("my_ring", start_us=0, duration_us=1).build()
    add_rule("my_ring", "communication")

    with processes(1) as pool:
        assert trace.map(_kinds, pool) == {0: [COMMUNICATION]}


@pytest.mark.parametrize("ending", ["json", "toml"])
def test_a_file_of_rules(tmp_path, monkeypatch, ending: str) -> None:
    """The environment variable names a JSON or TOML file; its rules take precedence over the built-in ones."""
    if ending == "toml" and sys.version_info < (3, 11):
        pytest.skip("TOML needs Python 3.11")
    texts = {
        "json": json.dumps({"rules": [{"pattern": "gemm", "kind": "communication", "reason": "fused"}]}),
        "toml": '[[rules]]\npattern = "gemm"\nkind = "communication"\nreason = "fused"\n',
    }
    path = tmp_path / f"rules.{ending}"
    path.write_text(texts[ending])
    monkeypatch.setenv(RULES_VARIABLE, str(path))

    rule = active_rules()[0]
    assert (rule.pattern, rule.kind, rule.reason) == ("gemm", COMMUNICATION, "fused")
    assert active_rules() == (rule, *RULES)
    assert kind_of_name("gemm") is COMMUNICATION


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "is not valid JSON"),
        ("[]", "has no list `rules`"),
        ('{"rules": [3]}', "has no list `rules`"),
        ('{"rules": [{"kind": "memory"}]}', "rule 1: the pattern of a rule must be"),
        ('{"rules": [{"pattern": "(", "kind": "memory"}]}', "rule 1: '(' is not a regular expression"),
        ('{"rules": [{"pattern": "a", "kind": "memory"}, {"pattern": "a"}]}', "rule 2: '' is not a kind of kernel"),
    ],
)
def test_a_bad_rule_file_is_refused_with_the_rule(tmp_path, monkeypatch, text: str, part: str) -> None:
    """The message names the file and, if one of its rules is wrong, the number of that rule."""
    path = tmp_path / "rules.json"
    path.write_text(text)
    monkeypatch.setenv(RULES_VARIABLE, str(path))

    with pytest.raises(InvalidOptionError) as caught:
        active_rules()

    assert str(path) in str(caught.value)
    assert part in str(caught.value)


def test_a_missing_file_of_rules_is_an_error(tmp_path, monkeypatch) -> None:
    """If the file does not exist, an error is raised; built-in rules are not used silently."""
    monkeypatch.setenv(RULES_VARIABLE, str(tmp_path / "none.json"))

    with pytest.raises(InvalidOptionError, match="cannot be read"):
        kind_of_name("gemm")


@pytest.mark.parametrize(
    ("pattern", "kind", "part"),
    [
        ("(", "memory", "is not a regular expression"),
        ("", "memory", "must be a string that is not empty"),
        ("a", "network", "not a kind of"),
    ],
)
def test_a_bad_added_rule_is_refused(pattern: str, kind: str, part: str) -> None:
    """`add_rule` refuses an invalid or empty pattern and an unknown kind."""
    with pytest.raises(InvalidOptionError, match=part):
        add_rule(pattern, kind)


def test_each_distinct_name_is_classified_once(monkeypatch) -> None:
    """For 20 calls of two kernels, the rules are applied only twice."""
    classified_names: list[str] = []

    def classifier(_event_kind):
        return lambda name: classified_names.append(name) or COMPUTATION

    monkeypatch.setattr("holotrace.enrich.device.device_work.name_classifier", classifier)
    builder = TraceBuilder()
    for place in range(20):
        builder.kernel(f"k{place % 2}", start_us=place, duration_us=1)

    work = device_work(builder.build().ranks[0])

    assert sorted(classified_names) == ["k0", "k1"]
    assert work["kernel_kind"].dtype == pl.UInt8
