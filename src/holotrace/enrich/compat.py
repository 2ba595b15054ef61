"""The option `compat`: whose numbers an analysis gives."""

from __future__ import annotations

from typing import Literal, TypeAlias

from holotrace.enrich.attribution import Attribution
from holotrace.enrich.tensorboard_plugin.attribution import PluginAttribution

Compat: TypeAlias = Literal["torch_tb_profiler"]
"""Whose numbers to give instead of ours: those of the last source of PyTorch's TensorBoard plugin."""

_ATTRIBUTIONS = {None: Attribution(), "torch_tb_profiler": PluginAttribution()}


def attribution_of(compat: Compat | None) -> Attribution:
    """Return the attribution of the option `compat`; None stands for ours."""
    return _ATTRIBUTIONS[compat]
