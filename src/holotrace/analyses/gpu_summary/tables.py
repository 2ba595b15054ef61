"""GPU summary: the printed tables."""

from __future__ import annotations

import polars as pl

from holotrace.analyses.gpu_summary.compute import GpuSummary
from holotrace.questions.tables import View, one_device_hidden, with_bounds, without_wholly_known


def use_per_device(result: GpuSummary) -> pl.DataFrame:
    """Return the properties and the utilization of each device.

    If a value is known only for part of the time, another column shows how large this part is.
    """
    known = [] if result.per_device["unknown_fraction"].sum() else ["unknown_fraction"]
    table = without_wholly_known(result.per_device.drop("start_ns", "end_ns", "is_estimated", *known))
    return one_device_hidden(with_bounds(table, "tensor_core_fraction", "tensor_core_unknown_fraction"))


VIEWS = (View("Each device, over its steps", use_per_device, "utilization_fraction"),)
