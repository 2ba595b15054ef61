"""Tests that operators and modules with `compat="torch_tb_profiler"` equal the plugin's."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from holotrace.analyses.modules.compute import modules
from holotrace.analyses.operators.compute import operators
from holotrace.enrich.compat import attribution_of
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.host.host_nodes import node_texts
from holotrace.enrich.host.node_times import device_durations
from holotrace.ingest.open_trace import open_trace
from tb_goldens import EACH_CASE, LOST, Case, case

COMPAT = "torch_tb_profiler"
PLUGIN = attribution_of(COMPAT)


@pytest.fixture(params=EACH_CASE, scope="module")
def answered(request, goldens, real_traces) -> Case:
    """Return a trace and the plugin's results for it."""
    return case(request.param, goldens, real_traces)


def microseconds(duration_ns: int | None) -> int:
    """Convert to whole µs, like the plugin's tables; null becomes 0."""
    return round((duration_ns or 0) / 1_000)


def percent(fraction: float | None) -> float:
    """Convert to a percentage with two decimals, like the plugin's tables; null becomes 0."""
    return round(100 * (fraction or 0), 2)


def printed(row: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    """Return one of our rows with the plugin's names and rounding."""
    return {
        **{key: row[key] for key in keys},
        "calls": row["call_count"],
        "host_self_duration": microseconds(row["host_self_ns"]),
        "host_total_duration": microseconds(row["host_total_ns"]),
        "device_self_duration": microseconds(row["device_self_ns"]),
        "device_total_duration": microseconds(row["device_total_ns"]),
        "tc_eligible": "Yes" if row["is_tensor_core_eligible"] else "No",
        "tc_self_ratio": percent(row["tensor_core_self_fraction"]),
        "tc_total_ratio": percent(row["tensor_core_total_fraction"]),
    }


def in_one_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows sorted, without `has_call_stack`, and with missing device times set to 0."""
    dropped = {"has_call_stack"}
    filled = [{"device_self_duration": 0, "device_total_duration": 0, **row} for row in rows]
    return sorted(
        ({k: v for k, v in row.items() if k not in dropped} for row in filled),
        key=lambda row: sorted(map(str, row.items())),
    )


def test_operators_by_name_and_shape(answered):
    """The tables by name and by input shape equal the plugin's."""
    tables = operators(answered.trace, compat=COMPAT)

    for view, table, keys in (
        ("operation_table", tables.per_operator, ["name"]),
        ("operation_table_by_input", tables.per_input_shape, ["name", "input_shape"]),
    ):
        expected = answered.view(view)["data"]
        ours = table.rename({"operator": "name"}).to_dicts()
        assert in_one_order([printed(row, keys) for row in ours]) == in_one_order(expected)
        stacked = {tuple(row[key] for key in keys) for row in expected if row["has_call_stack"]}
        assert {tuple(row[key] for key in keys) for row in ours if row["has_call_stack"]} == stacked


def test_call_stacks(answered):
    """The table by call stack equals the plugin's."""
    expected = answered.view("operation_stack_by_input") or {}
    table = operators(answered.trace, compat=COMPAT).per_call_stack.rename({"operator": "name"})

    ours = [printed(row, ["name", "input_shape", "call_stack"]) for row in table.to_dicts()]
    if expected or not table.is_empty():
        assert in_one_order(ours) == in_one_order([row for rows in expected.values() for row in rows["data"]])


def test_unrounded_sums(answered):
    """The sums of every operator equal the plugin's to within a nanosecond per call."""
    rank_trace = next(iter(answered.trace.ranks.values()))
    nodes = PLUGIN.host_nodes(rank_trace).hstack(PLUGIN.node_times(rank_trace)).filter("is_counted")
    sums = (
        nodes.with_columns(node_texts(rank_trace, nodes))
        .group_by("name")
        .agg(pl.len().alias("call_count"), pl.col("^.*_(total|self)_ns$").sum() / 1_000)
    )
    ours = {row["name"]: row for row in sums.to_dicts()}
    expected = {row["name"]: row for row in answered.view("internals")["op_list_groupby_name"]}

    assert set(ours) == set(expected)
    columns = {
        "host": "host_total_ns",
        "host_self": "host_self_ns",
        "device": "device_total_ns",
        "device_self": "device_self_ns",
        "tc_self": "tensor_core_self_ns",
        "tc_total": "tensor_core_total_ns",
    }
    for name, row in expected.items():
        assert ours[name]["call_count"] == row["calls"]
        for theirs, column in columns.items():
            assert ours[name][column] == pytest.approx(row[theirs], abs=0.001 * row["calls"] + 0.01)


def test_trees(answered):
    """The root of each thread's tree has the same start, end and number of children as in the plugin."""
    rank_trace = next(iter(answered.trace.ranks.values()))
    nodes = PLUGIN.host_nodes(rank_trace)
    lightning = nodes.filter(pl.col("node_class") == NodeClass.LIGHTNING_PROFILE)["tree"]
    roots = nodes.filter((pl.col("node_class") == NodeClass.ROOT) & ~pl.col("tree").is_in(lightning.implode()))
    children = nodes["parent"].value_counts(name="children").rename({"parent": "node"})
    joined = roots.with_columns(pl.col("node").cast(pl.Int64)).join(
        children, on="node", how="left", maintain_order="left"
    )
    base_ns = rank_trace.header.base_time_ns

    expected = answered.view("internals")["trees"]
    ours = joined.select("start_ns", "end_ns", "children").rows()
    assert len(ours) == len(expected)
    for (start_ns, end_ns, count), tree in zip(ours, expected, strict=True):
        assert (start_ns - base_ns) / 1_000 == pytest.approx(tree["start"], abs=0.001, rel=0)
        assert (end_ns - base_ns) / 1_000 == pytest.approx(tree["end"], abs=0.001, rel=0)
        assert count == tree["children"]


def below(nodes: list[dict[str, Any]]) -> list[tuple[str, int, int, int]]:
    """Return the name, depth, start and end of each node in a tree of the plugin, parents first."""
    return [
        line
        for node in nodes
        for line in [
            (node["name"], 0, node["start_time"], node["end_time"]),
            *((name, depth + 1, start, end) for name, depth, start, end in below(node["children"])),
        ]
    ]


def test_the_whole_first_tree(answered):
    """If the golden file has a tree, our first tree equals it, including the nodes of backward modules."""
    expected = answered.view("tree")
    if expected is None:
        return
    rank_trace = next(iter(answered.trace.ranks.values()))
    nodes = PLUGIN.host_nodes(rank_trace)
    # For the trace of Lightning, the plugin shows the tree of Lightning's hooks; holotrace lists this tree last.
    first = nodes.filter(
        pl.col("tree") == nodes["tree"].max() if answered.answers.parent.name == "lightning" else pl.col("tree") == 0
    )
    texts = node_texts(rank_trace, first).str.strip_prefix("[pl][profile]")
    times = [first[column] / 1_000 for column in ("start_ns", "end_ns")]

    assert list(zip(texts, first["depth"], *times, strict=True)) == below([expected])


def test_by_default_every_trace_has_an_answer(answered):
    """Without `compat`, every trace has a result; the sum of device self times never exceeds all device work."""
    tables = operators(answered.trace)
    (rank_trace,) = answered.trace.ranks.values()

    ran_ns = device_durations(rank_trace)["duration_ns"].sum()
    assert (tables.per_operator["device_self_ns"].sum() or 0) <= ran_ns
    assert tables.per_input_shape["call_count"].sum() == tables.per_operator["call_count"].sum()
    assert tables.per_input_shape["device_self_ns"].sum() == tables.per_operator["device_self_ns"].sum()
    busy, total = (
        tables.per_operator["device_self_busy_ns"].sum() or 0,
        tables.per_operator["device_self_ns"].sum() or 0,
    )
    assert busy <= total
    assert modules(answered.trace).per_module["host_self_ns"].fill_null(0).ge(0).all()


def rows_of(modules_of_plugin: list[dict[str, Any]], depth: int = 0) -> list[tuple[Any, ...]]:
    """Return the rows of the plugin's module view, parents first."""
    keys = ("name", "id", "occurences", "operators", "host_duration", "self_host_duration", "device_duration")
    return [
        row
        for module in modules_of_plugin
        for row in [
            (depth, *(module[key] for key in keys), module["self_device_duration"]),
            *rows_of(module["children"], depth + 1),
        ]
    ]


def test_modules(answered):
    """The module table equals the plugin's, including the order of the rows."""
    expected = answered.view("module")
    per_module = modules(answered.trace, compat=COMPAT).per_module.with_columns(pl.col("^.*_ns$").fill_null(0) / 1_000)
    columns = ("depth", "module", "module_id", "call_count", "operator_call_count", "host_total_ns", "host_self_ns")
    ours = per_module.select(*columns, "device_total_ns", "device_self_ns").rows()

    assert ours == (rows_of(expected["data"]) if expected else [])


@pytest.mark.parametrize("compat", [None, COMPAT])
@pytest.mark.parametrize("name", LOST)
def test_a_file_that_the_plugin_fails_on_has_a_result(goldens, name, compat):
    """The plugin fails on files with one defective event; we still list operators and modules."""
    trace = open_trace(next((goldens / "tb_edge" / name).glob("input*")), cache=False)

    assert operators(trace, compat=compat).per_operator["call_count"].sum() > 0
    modules(trace, compat=compat)


def test_of_two_arrows_to_one_backward_operator_the_first_counts(goldens):
    """Two forward operators point to one backward operator; its 60 µs (9 µs on the device) are counted once."""
    folder = goldens / "tb_edge" / "fwdbwd_two_forward_ops_same_backward_root"
    table = modules(open_trace(folder / "input.pt.trace.json", cache=False)).per_module

    columns = ("path", "backward_host_total_ns", "backward_device_total_ns")
    assert table.select(columns).rows() == [("Net_0", 60_000, 9_000)]
