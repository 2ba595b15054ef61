"""Tests of whether kernels run on tensor or matrix cores, and whether operators could."""

from __future__ import annotations

import json

import polars as pl
import pytest

from holotrace.enrich.kernels import kernel_kind
from holotrace.enrich.kernels.tensor_cores import (
    RULES,
    RULES_VARIABLE,
    SCANNED_LENGTH,
    active_rules,
    add_rule,
    answer_of_name,
    is_tensor_core_eligible,
    remove_added_rules,
    uses_tensor_cores,
)
from holotrace.enrich.tensorboard_plugin.tensor_cores import plugin_is_eligible, plugin_uses_tensor_cores
from holotrace.errors import InvalidOptionError
from holotrace.execution.processes import processes
from holotrace.store.trace import RankTrace
from holotrace.testing.builder import TraceBuilder

ON_TENSOR_CORES = (
    "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn",
    "volta_h884cudnn_256x64_ldg8_relu_exp_interior_nhwc_tn_v1",
    "turing_h1688gemm_128x128_ldg8_nn",
    "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_tn",
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>(cutlass_80_tensorop_s1688gemm::Params)",
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_32x1_nn_align8>(Params)",
    "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_tensor16x8x8",
    "sm80_xmma_gemm_i8i8_i8i32_f32_tn_n_tilesize128x128x64_stage3_warpsize2x2x1_tensor16x8x32_kernel",
    "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc",
    "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT",
    "nvjet_sm103_qqtst_mma_128x248x128_6_32x248x64",
    "cutlass3x_sm100_tensorop_s128x256x16gemm_bf16_bf16_f32",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<3>>>",
    "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cute::SM90_64x128x16_F32BF16BF16_SS<0>>>",
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::half_t>, false>(Flash_fwd_params)",
    "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64>>(Flash_bwd_params)",
    "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2>>>(Params)",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80(Params)",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_6_64x128x64_4x1x1_kernel0_0",
    "Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT64x16x16_MI16x16x1_SN_LDSB0_AFC1",
    "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<half>>(Argument)",
    "igemm_fwd_gtcx3_nhwc_fp16_bx0_ex1_bt256x256x32",
    "void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<Pipeline>>(Kargs)",
    "attn_fwd.kd",
    "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu",
    "kernel_unified_attention_2d",
    "kernel_unified_attention_3d",
    "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x8x512_s3_et128x8_m128x8x32_cga1x1x1_16dp256b_rM_TN_transOut_schedS_sm100f",
    "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s4_et128x16_m128x16x32_sm100f",
    "fmhaSm100fKernel_QkvBfloat16OBfloat16HQk192HV128PackedQkvCausal",
    "void grouped_gemm::device::GemmKernel<cutlass::bfloat16_t>(Params)",
    "void flash::compute_attn_ws<Flash_fwd_kernel_traits<128, 128, 128> >(Params)",
    "void paged_attention_ll4mi_QKV_mfma16_kernel<__hip_bfloat16>(int)",
    "ck::tensor_operation::device::DeviceGemmXdl<ck::half_t>",
    "void deep_gemm::sm90_fp8_gemm_1d2d_impl<1u>(float*)",
    "_w8a8_block_fp8_matmul",
    "void cutlass::gemm::kernel::Kernel<cutlass::arch::OpClassTensorOp>(Params)",
)
ON_ORDINARY_CORES = (
    "volta_sgemm_128x64_nn",
    "ampere_sgemm_32x32_sliced1x4_tn",
    "volta_scudnn_128x64_relu_small_nn_v1",
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel",
    "void cutlass::Kernel<cutlass_70_simt_sgemm_128x128_8x2_nn_align1>(Params)",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm70(Params)",
    "void flash_bwd_dot_do_o_kernel<true>(Flash_bwd_params)",
    "void flash_fwd_splitkv_combine_kernel<traits>(Flash_fwd_params)",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "triton_poi_fused_add_cos_sin_0",
    "triton_red_fused__to_copy_gemma_rms_norm_3",
    "void gemmk1_kernel<float, 256, 5, false, false, false, false>(cublasGemvParams)",
    "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false>(Params)",
    "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float, float>(long, long)",
    "void splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams<float>)",
    "Cijk_Ailk_Bljk_SB_MT64x64x16_SE_K1",
    "SubTensorOpWithScalar1d",
    "SubTensorOpWithCastTensor1d",
    "MIOpenBatchNormFwdTrainSpatial",
    "Cijk_SB_PostGSU4",
    "void at::native::vectorized_elementwise_kernel<4, at::native::mm_functor>(int)",
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(float*)",
    "void cub::DeviceRadixSortOnesweepKernel<Policy800>(int)",
    "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16>(int)",
    "void vllm::paged_attention_v2_kernel<float>(float*)",
    "std::enable_if<(((8)>(0))), void>::type vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*)",
    "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib",
    "void ck_tile::kentry<1, ck_tile::Rmsnorm2dFwd<ck_tile::bfloat16_t> >(Kargs)",
    "void ck::kernel_gemm_dl_v1r3<ck::GridwiseGemmDl_km_kn_mn<float> >(Argument)",
    "void cudnn::ops::nchwToNhwcKernel<float>(float*)",
    "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(long)",
    "split_embedding_backward_codegen_adagrad_unweighted_find_long_segments(int)",
    "_finalize_matmul_scatter_bf16",
    "void cask_plugin::xmma::init_device_workspace_kernel<xmma::implicit_gemm::wgrad_indexed::Warp_specialized_params<int> >(int)",
    "_gemm_splitk_reduce_kernel",
    "reduce_segments",
    "moe_align_block_size_kernel",
    "void moeA2ADispatchKernel<float>(int)",
    "void deep_ep::intranode::dispatch<8, 768>(int4*, float*)",
    "__amd_rocclr_copyBuffer",
    "_topk_forward",
)
UNKNOWN = (
    "triton_tem_fused_mm_3",
    "matmul_kernel_persistent",
    "_attn_fwd",
    "fused_moe_kernel",
    "my_kernel_16816",
    "mystery",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int> >(Params)",
    "wvSplitK_hf_sml_",
    "_chunk_scan_fwd_kernel",
    "pa_prefill_16mx8_32nx1_kernel",
    "rms_norm_linear_kernel",
    "",
)


@pytest.fixture(autouse=True)
def _no_rules_of_other_tests(monkeypatch):
    """Run each test with the built-in rules only."""
    monkeypatch.delenv(RULES_VARIABLE, raising=False)
    yield
    remove_added_rules()


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        *((name, True) for name in ON_TENSOR_CORES),
        *((name, False) for name in ON_ORDINARY_CORES),
        *((name, None) for name in UNKNOWN),
    ],
)
def test_names_give_the_cores(name: str, uses: bool | None) -> None:  # noqa: FBT001 -- a parameter of the test
    """A known name shows whether a kernel uses tensor cores (Volta to Blackwell, CDNA); else the answer is None."""
    assert answer_of_name(name) is uses


@pytest.mark.parametrize("part", ["aiter", "matmul_", "Cijk_", "Cijk_MT1x1x1_", "ck_tile::", "fp8_", "pa_", "xxxx"])
def test_only_the_beginning_of_a_name_is_read(part: str) -> None:
    """The rules read only the first 8,000 characters, because the traced program can choose names of any length."""
    beginning = part * (SCANNED_LENGTH // len(part))
    assert answer_of_name(beginning) is not True
    assert answer_of_name(f"{beginning[: SCANNED_LENGTH - 10]}_s884gemm_") is True
    assert answer_of_name(f"{part * (200_000 // len(part))}_s884gemm_") is not True


def test_every_rule_has_a_reason_and_all_are_in_force() -> None:
    """All built-in rules are active and give a reason."""
    assert active_rules() == RULES
    assert all(rule.reason for rule in RULES)


def test_kernels_are_in_file_order_and_null_if_unknown() -> None:
    """A copy has no row. The TensorBoard plugin returns false instead of null, and does not know Hopper's nvjet."""
    builder = TraceBuilder()
    for name in ("nvjet_tst_64x8", "triton_tem_fused_mm_0", "relu", "volta_h884gemm"):
        builder.kernel(name, start_us=0, duration_us=1)
    (rank_trace,) = builder.copy(start_us=5, duration_us=1).build().ranks.values()

    assert uses_tensor_cores(rank_trace).rows() == [(0, True), (1, None), (2, False), (3, True)]
    assert plugin_uses_tensor_cores(rank_trace)["uses_tensor_cores"].to_list() == [False] * 3 + [True]
    assert uses_tensor_cores(rank_trace).schema == {"event_index": pl.UInt32, "uses_tensor_cores": pl.Boolean}


OLD = (
    "aten::mm",
    "aten::conv3d",
    "aten::prelu",
    "aten::cudnn_convolution_backward_weight",
    "BmmBackward0",
    "MmBackward",
)
NEW = (
    "aten::convolution_backward",
    "aten::_scaled_mm",
    "aten::_grouped_mm",
    "aten::scaled_dot_product_attention",
    "aten::_scaled_dot_product_flash_attention_backward",
    "aten::_efficient_attention_forward",
    "flash_attn::_flash_attn_forward",
    "AddmmBackward0",
    "ConvolutionBackward0",
    "ScaledDotProductFlashAttentionBackward0",
)
NOT = ("aten::relu", "aten::mm_x", "my::aten::mm", "aten::conv1d_weight_norm", "DropoutBackward0", "")


def test_operators_that_could_use_tensor_cores() -> None:
    """`aten::mm` is eligible, but longer names that contain it are not; the plugin recognises only `OLD`."""
    names = pl.Series([*OLD, *NEW, *NOT])

    assert names.filter(is_tensor_core_eligible(names)).to_list() == [*OLD, *NEW]
    assert names.filter(plugin_is_eligible(names)).to_list() == list(OLD)


def test_the_last_added_rule_decides_until_removed() -> None:
    """The later of two added rules decides; after both are removed, the built-in rules decide."""
    (rank_trace,) = TraceBuilder().kernel("my_gemm", start_us=0, duration_us=1).build().ranks.values()
    assert uses_tensor_cores(rank_trace)["uses_tensor_cores"].to_list() == [None]

    add_rule("^my_", "ordinary")
    add_rule("^my_gemm", "tensor", reason="ours")
    assert uses_tensor_cores(rank_trace)["uses_tensor_cores"].to_list() == [True]

    remove_added_rules()
    assert uses_tensor_cores(rank_trace)["uses_tensor_cores"].to_list() == [None]


def test_communication_kernels_are_not_on_tensor_cores() -> None:
    """If a rule classifies my_ring as communication, `uses_tensor_cores` changes from null to false."""
    (rank_trace,) = TraceBuilder().kernel("my_ring", start_us=0, duration_us=1).build().ranks.values()
    assert uses_tensor_cores(rank_trace)["uses_tensor_cores"].to_list() == [None]

    kernel_kind.add_rule("^my_ring", "communication")
    try:
        assert uses_tensor_cores(rank_trace)["uses_tensor_cores"].to_list() == [False]
    finally:
        kernel_kind.remove_added_rules()


@pytest.mark.parametrize(
    ("pattern", "cores", "message"),
    [
        ("(", "tensor", "not a regular expression"),
        ("", "tensor", "must be a string that is not empty"),
        ("gemm", "quantum", "not one of: tensor, ordinary, unknown"),
        ("gemm", ["tensor"], "not one of: tensor, ordinary, unknown"),
    ],
)
def test_an_invalid_rule_is_refused_with_the_reason(pattern, cores, message) -> None:
    """`add_rule` refuses an invalid or empty pattern, and an unknown type of core."""
    with pytest.raises(InvalidOptionError, match=message):
        add_rule(pattern, cores)


def test_rules_of_a_file(tmp_path, monkeypatch) -> None:
    """The environment variable names a file whose rules take precedence over the built-in ones."""
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"rules": [{"pattern": "^relu", "cores": "tensor"}]}), encoding="utf-8")
    monkeypatch.setenv(RULES_VARIABLE, str(path))
    assert answer_of_name("relu") is True

    path.write_text(json.dumps({"rules": [{"pattern": "^relu", "uses": True}]}), encoding="utf-8")
    with pytest.raises(InvalidOptionError, match="rule 1: cores='' is not one of"):
        answer_of_name("relu")
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(InvalidOptionError, match="has no list `rules` of objects with `pattern` and `cores`"):
        active_rules()


@pytest.mark.slow
def test_rules_travel_to_other_processes() -> None:
    """A worker process uses a rule added in this process."""
    add_rule("^my_gemm", "tensor")
    trace = TraceBuilder().kernel("my_gemm", start_us=0, duration_us=1).build()
    with processes(1) as executor:
        assert trace.map(_answers, executor) == {0: [True]}


def _answers(rank_trace: RankTrace) -> list[bool | None]:
    return uses_tensor_cores(rank_trace)["uses_tensor_cores"].to_list()
