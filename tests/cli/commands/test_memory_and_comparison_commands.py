"""`holotrace operator-memory` and `holotrace compare-operators`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from holotrace.cli.group import app
from holotrace.testing.builder import TraceBuilder


@pytest.fixture
def pair(tmp_path, monkeypatch) -> tuple[str, str]:
    """Write two traces in which aten::mm allocates 1 KiB; its gemm takes 10 µs in `control`, 40 µs in `test`."""
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    args = {"Device Type": 1, "Device Id": 0, "Bytes": 1024, "Addr": 1}
    for name, duration in (("control", 10), ("test", 40)):
        builder = TraceBuilder().step(1, 0, 50).operator("aten::mm", start_us=1, duration_us=9)
        builder.kernel("gemm", start_us=5, duration_us=duration, launch_us=2)
        builder.event(ph="i", s="t", cat="cpu_instant_event", name="[memory]", pid=1000, tid=1, ts=3, args=args)
        builder.write(tmp_path / name)
    return str(tmp_path / "control"), str(tmp_path / "test")


def run(*arguments: str) -> str:
    """Run a command that succeeds; return its stdout."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_comparison_prints_its_tables(pair) -> None:
    """`compare-operators` prints its question, the tree of operators and the difference of 30 µs."""
    output = run("compare-operators", *pair)
    assert output.startswith("Where do control and test differ?")
    assert "· · gemm" in output
    assert "30 µs" in output


def test_the_comparison_prints_json_and_writes_its_figure(pair, tmp_path) -> None:
    """With `--by host`, the JSON compares host times, which are equal here, and `--figure` writes the figure."""
    options = ("--control-ranks", "0", "--test-ranks", "0", "--by", "host", "--figure", str(tmp_path / "figure.html"))
    answer = json.loads(run("compare-operators", *pair, *options, "--json"))
    assert list(answer) == ["comparison", "tree", "per_operator", "sides", "findings"]
    assert [row["difference_ns_per_step"] for row in answer["tree"]] == [0, 0, 0]
    assert (tmp_path / "figure.html").is_file()


def test_the_comparison_can_follow_the_plugin(pair) -> None:
    """With `--compat torch_tb_profiler`, the tree contains only aten::mm of both traces."""
    answer = json.loads(run("compare-operators", *pair, "--compat", "torch_tb_profiler", "--json"))
    assert [(row["kind"], row["name"]) for row in answer["tree"]] == [("pair", "aten::mm")]


def test_operator_memory_takes_a_time_window(pair) -> None:
    """`operator-memory` prints 1 KiB; for a window that ends before the allocation, the table is empty."""
    assert "1 KiB" in run("operator-memory", pair[0])
    answer = json.loads(run("operator-memory", pair[0], "--end-ns", "2000", "--json"))
    assert (answer["per_operator"], answer["blocks"]) == ([], [])
