"""Operations of small models, recorded on the CPU, equal those that PyTorch's FlopCounterMode counts.

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
    # FlopCounterMode takes the filter of a grouped convolution for a full one in the gradient of the filter:
    # https://github.com/pytorch/pytorch/blob/main/torch/utils/flop_counter.py, conv_backward_flop
    "conv_grouped": 442_368,
    "conv_depthwise": 221_184,
    "conv_separable": 614_400,
    # FlopCounterMode has no formula for these operators, or does not see the products inside them:
    "lstm": 221_184,  # aten::mkldnn_rnn_layer
    "bilinear": 3_000,  # aten::_trilinear
    "matrix_vector": 192,  # aten::mv
    # Recomputation stops once it has all it needs; then the profiler has begun the event of a last product that never runs.
    "checkpoint": 5_050_368,
}
"""Our counts where they differ, with the reason."""


def counted(name: str) -> Roofline:
    """Return the roofline of a model."""
    return roofline(holotrace.open_trace(FOLDER / f"{name}.json.gz", cache=False))


@pytest.mark.parametrize("name", sorted(COUNTED))
def test_operations_equal_those_of_flop_counter_mode(name) -> None:
    """Forward and backward, the products of every model cost what FlopCounterMode counts, or differ for a known reason."""
    result = counted(name).per_operator
    total = result.select((pl.col("dense_flops") * pl.col("call_count")).sum()).item()
    assert total == DIFFERENT.get(name, COUNTED[name])


@pytest.mark.parametrize("name", ["checkpoint", "checkpoint_reentrant"])
def test_recomputed_operations_count_for_the_hardware_alone(name) -> None:
    """Checkpointing runs the forward products twice: 1,253,376 operations that are not the model's."""
    result = counted(name)
    again = result.per_operator.filter(phase="recompute").select((pl.col("dense_flops") * pl.col("call_count")).sum())
    assert again.item() == 1_253_376
    model, hardware = result.per_step.select("model_flops", "hardware_flops").row(0)
    assert model < hardware


def test_models_without_checkpointing_recompute_nothing() -> None:
    """Backward operators that compute gradients are not taken for recomputation."""
    for name in ("transformer_decoder", "vision_transformer", "unet", "gru", "mixture_of_experts"):
        assert "recompute" not in counted(name).per_operator["phase"].to_list()


def test_a_rank_on_the_cpu_has_no_utilization() -> None:
    """The peak of the CPU is unknown, so MFU and HFU are null, and a finding says why."""
    result = counted("mlp")
    assert result.per_step.select("mfu_fraction", "hfu_fraction").row(0) == (None, None)
    assert any("whose peak rates are unknown" in finding for finding in result.findings)
