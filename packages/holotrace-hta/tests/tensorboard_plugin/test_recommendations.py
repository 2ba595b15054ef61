"""`get_recommendations` returns the diagnosis or, with `compat`, what the TensorBoard plugin recommended."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from holotrace.errors import InvalidOptionError
from holotrace.testing.builder import TraceBuilder
from hta.tensorboard_plugin.recommendations import plugin_recommendations
from hta.trace_analysis import TraceAnalysis
from tb_goldens import EACH_CASE, case

PLUGINS_WORDS = {
    "data_loading": "input data loading",
    "data_parallel": "instead of DataParallel",
    "ddp_backend": "Nccl backend",
    "communication": "time cost on communication",
    "low_utilization": "low utilization",
    "mixed_precision": "Tensor Cores eligible",
    "memory_limit": "memory capacity",
}
"""Words that identify the plugin's sentence for each rule."""


@pytest.fixture
def slow_loading(tmp_path: Path) -> TraceAnalysis:
    """Open a rank that waits 30 of 100 µs for its data loader."""
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    builder = TraceBuilder().step(1, 0, 100).annotation(name, start_us=0, duration_us=30)
    builder.operator("aten::relu", start_us=40, duration_us=50).write(tmp_path)
    return TraceAnalysis(trace_dir=str(tmp_path))


def test_the_findings_of_the_diagnosis(slow_loading: TraceAnalysis) -> None:
    """The first row is the first finding of the diagnosis; `stake(us)`, the time at stake, is in microseconds."""
    frame = slow_loading.get_recommendations()
    assert frame.loc[0, ["rule", "stake(us)"]].tolist() == ["data_loading", 30]
    assert "num_workers" in frame["advice"][0]


def test_the_recommendations_of_the_plugin(slow_loading: TraceAnalysis) -> None:
    """With `compat`, a row has the plugin's rule, the measured fraction and the limit."""
    frame = slow_loading.get_recommendations(compat="torch_tb_profiler")
    assert frame.loc[0, ["rule", "rank", "value_fraction", "limit_fraction"]].tolist() == [
        "data_loading",
        0,
        pytest.approx(0.3),
        0.05,
    ]


def test_an_unknown_compat_is_named(slow_loading: TraceAnalysis) -> None:
    """An unknown value of `compat` raises an error."""
    with pytest.raises(InvalidOptionError, match="compat='plugin' is not a known value"):
        slow_loading.get_recommendations(compat="plugin")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", EACH_CASE)
def test_compat_gives_the_plugins_rules_with_its_numbers(name: str, goldens: Path, real_traces: Path) -> None:
    """With `compat`, the rules, percentages and GPUs equal the plugin's."""
    one = case(name, goldens, real_traces)
    (answer,) = [(one.view("overview") or {}).get("recommendations") or "<ul></ul>"]
    theirs = {
        rule: re.sub(r"<[^>]*>", "", sentence)
        for sentence in re.findall(r"<li>(.*?)</li>", answer)
        for rule, words in PLUGINS_WORDS.items()
        if words in sentence
    }
    ours = plugin_recommendations(one.trace)
    if name.endswith("gpu_only_trace"):  # without kernels, the plugin's step time is -2**64 + 1 µs
        assert (list(theirs), ours.height) == (["low_utilization"], 0)
        return
    assert set(ours["rule"]) == set(theirs)
    for rule, sentence in theirs.items():
        rows = ours.filter(pl.col("rule") == rule)
        if rule == "low_utilization":
            assert rows["device"].to_list() == [int(number) for number in re.findall(r"\d+", sentence)]
        elif rule not in {"data_parallel", "ddp_backend"}:
            decimals = 0 if rule == "mixed_precision" else 1
            assert f"{100 * rows['value_fraction'].item():.{decimals}f}%" in sentence
