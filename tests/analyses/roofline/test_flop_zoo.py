"""Tests of the FLOPs of small models, recorded on the CPU, against PyTorch's FlopCounterMode.

`scripts/record_flop_zoo.py` recorded the models with PyTorch 2.15.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import holotrace
from holotrace.analyses.roofline.compute import Roofline, roofline

FOLDER = Path(__file__).parent / "flop_zoo"
COUNTED: dict[str, int] = json.loads((FOLDER / "truth.json").read_text())["flops"]

DIFFERENT = {
    # For the weight gradient of a grouped convolution, FlopCounterMode ignores the groups:
    # https://github.com/pytorch/pytorch/blob/main/torch/utils/flop_counter.py, conv_backward_flop
    "conv_grouped": 442_368,
    "conv_depthwise": 221_184,
    "conv_separable": 614_400,
    "conv1d_grouped_dilated": 74_880,
    "conv_transposed_depthwise": 69_984,
    "selective_scan": 161_280,
    # FlopCounterMode has no formula for these operators and does not see the products inside them:
    "lstm": 221_184,  # aten::mkldnn_rnn_layer
    "lstm_bidirectional": 1_161_216,  # aten::mkldnn_rnn_layer
    "bilinear": 3_000,  # aten::_trilinear
    "matrix_vector": 192,  # aten::mv
    "addbmm": 4_320,  # aten::addbmm
    "attention_fast_path": 168_192,  # aten::_native_multi_head_attention
    "int8": 24_576,  # aten::_int_mm
    # FlopCounterMode treats sparse matrices as dense; the trace does not record how many elements they store.
    "sparse": 0,
    # A checkpoint stops recomputing once the backward pass has all the tensors that it needs: here, at the start of
    # another product. The profiler records this product, although it never runs.
    "checkpoint": 5_050_368,
    # A selective checkpoint saves some results; the profiler also records calls that only return a saved result.
    "checkpoint_selective": 827_904,
}
"""The FLOPs that holotrace counts for models where FlopCounterMode's count differs; the comments give the reasons."""


def counted(name: str) -> Roofline:
    """Return the roofline of a model."""
    return roofline(holotrace.open_trace(FOLDER / f"{name}.json.gz", cache=False))


@pytest.mark.parametrize("name", sorted(COUNTED))
def test_operations_equal_those_of_flop_counter_mode(name) -> None:
    """The FLOPs of all products, forward and backward, equal FlopCounterMode's, except for models in `DIFFERENT`."""
    result = counted(name).per_operator
    total = result.select((pl.col("dense_flops") * pl.col("call_count")).sum()).item()
    assert total == DIFFERENT.get(name, COUNTED[name])


RECOMPUTED = {
    "checkpoint": 1_253_376,
    "checkpoint_reentrant": 1_253_376,
    "checkpoint_in_checkpoint": 823_296,  # three layers of 205,824 FLOPs each are recomputed, one of them twice
    "checkpoint_selective": 205_824,
    "checkpoint_by_hand": 576,
    "compiled_checkpoint": 205_824,
}
"""The FLOPs of products that the backward pass recomputes."""


@pytest.mark.parametrize("name", RECOMPUTED)
def test_recomputed_operations_count_for_the_hardware_alone(name) -> None:
    """Forward products that checkpointing recomputes count as hardware FLOPs, not as model FLOPs."""
    result = counted(name)
    again = result.per_operator.filter(phase="recompute").select((pl.col("dense_flops") * pl.col("call_count")).sum())
    assert again.item() == RECOMPUTED[name]
    model, hardware = result.per_step.select("model_flops", "hardware_flops").row(0)
    assert model < hardware


@pytest.mark.parametrize("name", sorted(COUNTED.keys() - RECOMPUTED))
def test_models_without_checkpointing_recompute_nothing(name) -> None:
    """Without checkpointing, no operator counts as recomputation, even for gradients of gradients."""
    assert "recompute" not in counted(name).per_operator["phase"].to_list()


def test_a_rank_on_the_cpu_has_no_utilization() -> None:
    """The peak rate of the CPU is unknown, so MFU and HFU are null, and a finding says why."""
    result = counted("mlp")
    assert result.per_step.select("mfu_fraction", "hfu_fraction").row(0) == (None, None)
    assert any("whose peak rates are unknown" in finding for finding in result.findings)
