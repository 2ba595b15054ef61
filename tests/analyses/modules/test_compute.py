"""Tests of the modules analysis: the forward and backward time of each module."""

from __future__ import annotations

import pytest

from holotrace.analyses.modules.compute import modules, summed_modules
from holotrace.testing.builder import TraceBuilder
from recordings import opened

COMPAT = "torch_tb_profiler"
FUNCTION = "autograd::engine::evaluate_function: "


def module(builder: TraceBuilder, name: str, start: int, duration: int, **ids: int) -> TraceBuilder:
    """Add a call of a module on thread 1; `python_id` and `parent` are the ids of the call and of its caller."""
    args = {"Python id": ids.get("python_id"), "Python parent id": ids.get("parent"), "Python module id": 0}
    place = {"ph": "X", "cat": "python_function", "pid": 1000, "tid": 1, "ts": start, "dur": duration}
    return builder.event(name=f"nn.Module: {name}", args=args, **place)


def arrow(builder: TraceBuilder, number: int, start_us: int, end_us: int) -> TraceBuilder:
    """Add a flow event from a forward operator on thread 1 to a backward operator on thread 2."""
    common = {"id": number, "pid": 1000, "cat": "fwdbwd", "name": "fwdbwd"}
    builder.event(ph="s", tid=1, ts=start_us, **common)
    return builder.event(ph="f", tid=2, ts=end_us, bp="e", **common)


def model() -> TraceBuilder:
    """Return Net_0 with a backward pass; its layers Linear_0 and Linear_1 each run an operator and a kernel."""
    builder = module(module(module(TraceBuilder(), "Net_0", 0, 100), "Linear_0", 10, 30), "Linear_1", 50, 40)
    builder.operator("aten::mm", start_us=12, duration_us=20)
    builder.kernel("gemm", start_us=200, duration_us=7, launch_us=14)
    builder.operator("aten::mm", start_us=55, duration_us=30)
    builder.kernel("gemm", start_us=210, duration_us=8, launch_us=60)
    builder.operator(f"{FUNCTION}MmBackward0", start_us=300, duration_us=20, thread=2)
    builder.operator("MmBackward0", start_us=301, duration_us=18, thread=2)
    builder.kernel("gemm_t", start_us=400, duration_us=11, launch_us=305, thread=2)
    builder.operator(f"{FUNCTION}torch::autograd::AccumulateGrad", start_us=320, duration_us=5, thread=2)
    builder.operator(f"{FUNCTION}MmBackward0", start_us=330, duration_us=10, thread=2)
    builder.operator("MmBackward0", start_us=331, duration_us=8, thread=2)
    return arrow(arrow(builder, 1, 55, 301), 2, 12, 331)


def test_modules_have_forward_and_backward_times() -> None:
    """Backward times include gradient accumulation; the backward time of Net_0 includes that of the modules in it."""
    table = modules(model().build()).per_module

    net = {
        "rank": 0,
        "path": "Net_0",
        "module": "Net_0",
        "module_id": 0,
        "depth": 0,
        "call_count": 1,
        "operator_call_count": 0,
        "host_total_ns": 100_000,
        "host_self_ns": 30_000,
        "device_total_ns": 15_000,
        "device_self_ns": 0,
        "backward_host_total_ns": 35_000,
        "backward_host_self_ns": 0,
        "backward_device_total_ns": 11_000,
        "backward_device_self_ns": 0,
    }
    inner = {**net, "depth": 1, "operator_call_count": 1, "host_self_ns": 10_000}
    assert table.to_dicts() == [
        net,
        {
            **inner,
            "path": "Net_0 > Linear_0",
            "module": "Linear_0",
            "host_total_ns": 30_000,
            "device_total_ns": 7_000,
            "device_self_ns": 7_000,
            "backward_host_total_ns": 10_000,
            "backward_host_self_ns": 10_000,
            "backward_device_total_ns": 0,
        },
        {
            **inner,
            "path": "Net_0 > Linear_1",
            "module": "Linear_1",
            "host_total_ns": 40_000,
            "device_total_ns": 8_000,
            "device_self_ns": 8_000,
            "backward_host_total_ns": 25_000,
            "backward_host_self_ns": 25_000,
            "backward_device_self_ns": 11_000,
        },
    ]


def test_a_module_called_twice_in_its_parent_is_one_row() -> None:
    """Block_0 runs twice in Net_0 and once in Other_0, so it has two rows, one for each path."""
    builder = module(module(module(TraceBuilder(), "Net_0", 0, 100), "Block_0", 10, 20), "Block_0", 40, 30)
    module(module(builder, "Other_0", 200, 50), "Block_0", 210, 5)

    table = modules(builder.build()).per_module
    assert table.select("path", "call_count", "host_total_ns").rows() == [
        ("Net_0", 1, 100_000),
        ("Net_0 > Block_0", 2, 50_000),
        ("Other_0", 1, 50_000),
        ("Other_0 > Block_0", 1, 5_000),
    ]


def test_a_module_that_appears_in_a_later_call_follows_its_parent() -> None:
    """Only the second call of Net_0 contains Extra_0, but the row of Extra_0 still comes before the row of Loss_0."""
    builder = module(module(TraceBuilder(), "Net_0", 0, 10), "Linear_0", 1, 5)
    module(builder, "Loss_0", 20, 5)
    module(module(builder, "Net_0", 30, 10), "Extra_0", 31, 5)

    paths = modules(builder.build()).per_module["path"].to_list()
    assert paths == ["Net_0", "Net_0 > Linear_0", "Net_0 > Extra_0", "Loss_0"]


def test_work_launched_in_an_annotation_belongs_to_the_module() -> None:
    """Net_0 launches a kernel in an annotation but in no operator; Net_0's device self time includes the kernel."""
    builder = module(TraceBuilder(), "Net_0", 0, 100).annotation("part", start_us=10, duration_us=50)
    builder.kernel("custom", start_us=200, duration_us=7, launch_us=20)

    table = modules(builder.build()).per_module
    assert table.select("device_total_ns", "device_self_ns", "host_self_ns").rows() == [(7_000, 7_000, 50_000)]


def test_only_outermost_operators_count() -> None:
    """Net_0 has one operator call, aten::linear; neither the annotation around it nor aten::mm inside it counts."""
    builder = module(TraceBuilder(), "Net_0", 0, 100).annotation("part", start_us=10, duration_us=50)
    builder.operator("aten::linear", start_us=11, duration_us=20).operator("aten::mm", start_us=12, duration_us=5)

    assert modules(builder.build()).per_module["operator_call_count"].to_list() == [1]


@pytest.mark.parametrize("kind", ["cpu_op", "user_annotation"])
def test_ranges_of_lightning_are_modules_and_hooks(kind) -> None:
    """The ranges that Lightning records become modules and hooks.

    Before PyTorch 1.12, they are recorded as operators; since then, as annotations.
    """
    builder = TraceBuilder().header(Framework="pytorch-lightning")
    for name, start, duration in (
        ("[pl][profile]run_training_batch", 0, 90),
        ("[pl][module]my.Net: net", 10, 50),
        ("[pl][module]torch.nn.modules.linear.Linear: net.fc", 20, 30),
    ):
        builder.event(ph="X", cat=kind, name=name, pid=1000, tid=1, ts=start, dur=duration)
    builder.operator("aten::mm", start_us=25, duration_us=5)

    result = modules(builder.build())

    columns = ("path", "call_count", "operator_call_count", "host_total_ns", "host_self_ns")
    assert result.per_module.select(columns).rows() == [
        ("net", 1, 0, 50_000, 20_000),
        ("net > net.fc", 1, 1, 30_000, 25_000),
    ]
    assert result.lightning_hooks.select(columns).rows() == [("run_training_batch", 1, 1, 90_000, 40_000)]


def test_a_finding_names_what_was_not_recorded() -> None:
    """Findings report that modules, device work, or links from backward to forward operators were not recorded."""
    nothing = modules(TraceBuilder().operator("aten::mm", start_us=0, duration_us=5).build())
    assert nothing.per_module.is_empty()
    assert nothing.lightning_hooks.is_empty()
    assert nothing.findings == ("rank 0: no module calls were recorded; record with with_stack=True",)

    assert modules(module(TraceBuilder(), "Net_0", 0, 100).build()).findings == (
        "rank 0: no device work was recorded; if the job used a device, record with ProfilerActivity.CUDA",
        "rank 0: no backward operator is linked to a forward operator, so backward times are unknown",
    )


def test_without_links_the_backward_columns_are_unknown() -> None:
    """Without forward-backward links, backward times are null, not 0."""
    table = modules(module(TraceBuilder(), "Net_0", 0, 100).build()).per_module

    assert table.select("backward_host_total_ns", "backward_device_self_ns").row(0) == (None, None)


def test_ranks_are_summed_for_people() -> None:
    """A module called on two ranks is one row with two calls."""
    result = modules(module(module(TraceBuilder(), "Net_0", 0, 100).rank(1), "Net_0", 0, 50).build())

    assert result.per_module["rank"].to_list() == [0, 1]
    assert summed_modules(result.per_module).select("path", "call_count", "host_total_ns").rows() == [
        ("Net_0", 2, 150_000)
    ]


def test_compat_lists_a_module_for_each_call_with_the_totals_of_all() -> None:
    """Block_0 is called twice; with `compat`, it has a row for each call, and each row has the totals of both calls."""
    builder = module(TraceBuilder(), "Net_0", 0, 100, python_id=1)
    module(module(builder, "Block_0", 10, 20, python_id=2, parent=1), "Block_0", 40, 30, python_id=3, parent=1)

    table = modules(builder.build(), compat=COMPAT).per_module
    assert table.select("path", "call_count", "host_total_ns").rows() == [
        ("Net_0", 1, 100_000),
        ("Net_0 > Block_0", 2, 50_000),
        ("Net_0 > Block_0", 2, 50_000),
    ]


def test_a_recorded_model_has_its_modules_and_backward_pass(real_traces) -> None:
    """A GPT with DDP has 29 module paths on each of 4 ranks.

    The backward time of the whole GPT exceeds the sum over its blocks.
    """
    table = modules(opened(real_traces / "ddp_gloo_4rank")).per_module

    assert table["rank"].value_counts(sort=True)["count"].to_list() == [29] * 4
    assert table["call_count"].unique().to_list() == [3]
    blocks = table.filter(table["path"].str.contains(r"> Block_\d$") & (table["rank"] == 0))
    whole = table.filter((table["module"] == "GPT_0") & (table["rank"] == 0))
    assert 0 < blocks["backward_host_total_ns"].sum() < whole["backward_host_total_ns"].item()


def test_the_tables_equal_their_golden_copies(golden) -> None:
    """The table of a small model equals its golden copy."""
    golden.check(modules(model().build()).per_module, "modules/small_model")
