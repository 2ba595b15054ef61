"""Return the kernels with the plugin's float times and the launch shapes in the file."""

from __future__ import annotations

import polars as pl

from holotrace.enrich.kernels.kernel_calls import described_calls, written_shapes
from holotrace.enrich.tensorboard_plugin.events import PluginType, plugin_events
from holotrace.enrich.tensorboard_plugin.tensor_cores import plugin_uses_tensor_cores
from holotrace.store.derived import derived
from holotrace.store.trace import RankTrace


@derived
def plugin_kernel_calls(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the plugin's `kernel_calls`."""
    kernels = plugin_events(rank_trace).filter(pl.col("type") == PluginType.KERNEL)
    shapes = written_shapes(rank_trace.unselected)
    return described_calls(kernels, shapes, plugin_uses_tensor_cores(rank_trace))
