"""The figures of steps, GPUs and kernels hold the numbers of their results."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.analyses.gpu_summary.compute import GpuSummary, gpu_summary
from holotrace.analyses.gpu_summary.figure import plot_gpu_summary
from holotrace.analyses.kernels.compute import Kernels, kernels
from holotrace.analyses.kernels.figure import plot_kernels
from holotrace.analyses.step_time.compute import StepTime, step_time
from holotrace.analyses.step_time.figure import plot_step_time
from holotrace.errors import UnknownRankError
from holotrace.testing.builder import TraceBuilder
from jobs import MARKUP


def job(ranks: int = 1) -> TraceBuilder:
    """Steps of 10 and 20 ms; each has a kernel of 4 ms and an operator of 2 ms beside it."""
    builder = TraceBuilder()
    for rank in range(ranks):
        builder.rank(rank)
        for number, start, length in ((1, 0, 10_000), (2, 10_000, 20_000)):
            builder.step(number, start, length).operator("aten::mm", start_us=start, duration_us=2_000)
            args = {"blocks per SM": 0.5, "est. achieved occupancy %": 25}
            builder.kernel(
                f"relu{MARKUP}",
                start_us=start + 3_000,
                duration_us=4_000,
                launch_us=start,
                launch_duration_us=0,
                args=args,
            )
    return builder


def bars(figure) -> dict[str, list[float]]:
    """Return the values of each part that the legend shows."""
    return {bar.name: list(bar.x) for bar in figure.data if bar.showlegend is not False}


def test_the_steps_of_one_rank_are_stacked() -> None:
    """In ms, one bar a step; what has no time is in no legend."""
    figure = plot_step_time(step_time(job().build()))

    assert bars(figure) == {"kernel": [4, 4], "operators on the host": [2, 2], "other": [4, 14]}
    assert list(figure.data[0].y) == ["step 1", "step 2"]
    assert figure.layout.xaxis.title.text == "ms"
    assert figure.data[0].customdata[0] == "40.0 % · 4 ms (4,000,000 ns)"


def test_of_several_ranks_the_mean_step_is_drawn_and_one_can_be_named() -> None:
    """15 ms each; rank 1 has its own steps."""
    result = step_time(job(2).build())

    assert bars(plot_step_time(result))["other"] == [9, 9]
    assert bars(plot_step_time(result, rank=1))["other"] == [4, 14]
    with pytest.raises(UnknownRankError, match="no rank 5"):
        plot_step_time(result, rank=5)


def test_steps_of_one_number_stay_apart() -> None:
    """The plugin's steps may repeat a number; bars of one name would be stacked on each other."""
    result = step_time(job().build())
    twice = StepTime(result.per_step.with_columns(step=pl.lit(1, pl.Int64)), result.mean)

    assert list(plot_step_time(twice).data[0].y) == ["step 1", "step 1 (2)"]


def test_no_step_is_said() -> None:
    """An empty result has a figure too."""
    result = step_time(job().build())
    (note,) = plot_step_time(StepTime(result.per_step.clear(), result.mean.clear())).layout.annotations
    assert note.text == "There is no step."


def test_one_device_is_drawn_over_time() -> None:
    """Three parts of 10 ms; lines reach to the end of the last, and start at the first step."""
    figure = plot_gpu_summary(gpu_summary(job().build(), parts=3))

    lines = {line.name: list(line.y) for line in figure.data}
    assert list(figure.data[0].x) == [0, 10, 20, 30]
    assert lines["utilization"] == pytest.approx([40, 40, 0, 0])
    assert lines["est. SM efficiency"] == pytest.approx([20, 20, 0, 0])
    assert lines["est. achieved occupancy"][:2] == pytest.approx([25, 25])


def test_several_devices_stand_side_by_side_and_one_can_be_named() -> None:
    """A marker for each metric that is known."""
    result = gpu_summary(job(2).build(), parts=2)

    assert {line.name: len(line.y) for line in plot_gpu_summary(result).data} == {
        "utilization": 2,
        "est. SM efficiency": 2,
        "est. achieved occupancy": 2,
        "kernel time on tensor cores": 2,
    }
    assert len(plot_gpu_summary(result, device=(1, 0)).data[0].x) == 3
    (note,) = plot_gpu_summary(result, device=(9, 0)).layout.annotations
    assert "No such device" in note.text


def test_no_device_is_said() -> None:
    """An empty result has a figure too."""
    result = gpu_summary(job().build())
    empty = GpuSummary(result.per_device.clear(), result.series.clear())
    assert plot_gpu_summary(empty).layout.annotations[0].text.startswith("No such device")


def test_kernels_lie_in_the_colour_of_their_cores() -> None:
    """16 ms of one kernel on two ranks; its name is spelled out, no markup."""
    builder = job(2)
    builder.kernel("nvjet_tst_64x8", start_us=0, duration_us=6_000)
    figure = plot_kernels(kernels(builder.build()))

    assert bars(figure) == {
        "on tensor or matrix cores": [0, 6],
        "on ordinary cores": [16, 0],
        "unknown": [0, 0],
    }
    assert "<script>" not in figure.data[0].customdata[0]
    assert "mean blocks per SM 0.50" in figure.data[0].customdata[0]
    assert figure.layout.title.subtitle.text == "27.3 % of all kernel time is on tensor cores"


def test_kernels_whose_names_do_not_tell_are_named_in_the_subtitle() -> None:
    """A share of which a part is unknown is a bound."""
    builder = TraceBuilder().kernel("nvjet_tst_64x8", start_us=0, duration_us=60)
    builder.kernel("mystery", start_us=60, duration_us=30).kernel("relu", start_us=90, duration_us=10)

    figure = plot_kernels(kernels(builder.build()))

    told = "At least 60.0 % of all kernel time is on tensor cores; of 30.0 % the kernel's name does not tell"
    assert figure.layout.title.subtitle.text == told


def test_a_share_of_which_a_part_is_unknown_is_a_bound_over_time_too() -> None:
    """40 of 100 µs are on tensor cores, of 50 µs it is not known."""
    builder = TraceBuilder().step(1, 0, 100).kernel("nvjet_tst_64x8", start_us=0, duration_us=40)
    builder.kernel("relu", start_us=40, duration_us=10).kernel("mystery", start_us=50, duration_us=50)

    line = plot_gpu_summary(gpu_summary(builder.build(), parts=1)).data[-1]

    assert line.name == "kernel time on tensor cores"
    assert line.customdata[0] == "at least 40.0 % (50.0 % of the kernel time unknown)"


def test_kernels_beyond_the_top_are_counted_and_none_is_said() -> None:
    """The figure does not pretend to be complete."""
    builder = TraceBuilder()
    for name in "abc":
        builder.kernel(name, start_us=0, duration_us=1)
    result = kernels(builder.build())

    assert "1 more are left out" in plot_kernels(result, top=2).layout.title.subtitle.text
    empty = Kernels(result.per_kernel.clear(), result.per_launch_shape.clear())
    assert plot_kernels(empty).layout.annotations[0].text == "No rank runs a kernel."
