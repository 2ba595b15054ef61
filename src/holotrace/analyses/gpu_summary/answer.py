"""GPU summary: the answer in one sentence."""

from __future__ import annotations

from holotrace.analyses.gpu_summary.compute import GpuSummary
from holotrace.questions.answers import total
from holotrace.units import percent_text


def answer(result: GpuSummary) -> str:
    """Say how busy the devices are, and which device is the least busy."""
    busy = result.per_device.drop_nulls("utilization_fraction").sort("utilization_fraction")
    if busy.is_empty():
        return "The utilization of the devices is unknown."
    least = busy.row(0, named=True)
    unknown = total(busy, "unknown_fraction") / len(busy)
    more = f"; for {percent_text(unknown)} of the time, it is unknown whether a kernel runs" if unknown else ""
    if len(busy) == 1:
        return f"The device is busy {percent_text(least['utilization_fraction'])} of the time{more}."
    return (
        f"The devices are busy {percent_text(total(busy, 'utilization_fraction') / len(busy))} of the time on average; the least busy device, "
        f"on rank {least['rank']}, is busy {percent_text(least['utilization_fraction'])}{more}."
    )
