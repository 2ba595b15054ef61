"""The notebooks run from top to bottom, and their results match the text."""

from __future__ import annotations

import ast
import json
from typing import Any

import plotly.graph_objects as go
import pytest

from pages import ROOT

EXAMPLES = ROOT / "examples"
FOLDER = EXAMPLES / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))


def cells(name: str) -> list[dict[str, Any]]:
    """Return the cells of a notebook."""
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs a notebook; it returns the notebook's variables and {cell id: last value}."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(go.Figure, "show", lambda figure: pytest.fail(f"{figure.layout.title.text} opens a window"))

    def run_notebook(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        names: dict[str, Any] = {"__name__": "__main__"}
        code = [cell for cell in cells(name) if cell["cell_type"] == "code"]
        return names, {cell["id"]: run_cell("".join(cell["source"]), names) for cell in code}

    return run_notebook


def run_cell(source: str, names: dict[str, Any]) -> object:
    """Run a cell; return the value of its last expression, or None."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102 -- notebooks of this repository
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None  # noqa: S307


def test_what_trace_analysis_shows(run) -> None:
    """Each breakdown adds up to its total, the slow rank 3 computes longest, and figures are drawn."""
    names, shown = run("trace_analysis")
    breakdown = names["breakdown"]
    parts = breakdown[["idle_time(us)", "compute_time(us)", "non_compute_time(us)"]].sum(axis=1)
    assert (parts - breakdown["kernel_time(us)"]).abs().max() <= 2
    assert breakdown.loc[breakdown["compute_time(us)"].idxmax(), "rank"] == 3
    assert shown["facade"]["comp_comm_overlap_pctg"].between(0, 100).all()
    assert "COMPUTATION" in set(shown["kernels"]["kernel_type"])
    assert isinstance(shown["busy"], go.Figure)
    assert isinstance(shown["idle"], go.Figure)


def test_what_trace_diff_shows(run) -> None:
    """The comparison shows that a model with one more layer runs more kernels and takes longer."""
    names, shown = run("trace_diff")
    assert {"before_counts", "after_counts"} <= set(names["kernels"])
    assert names["kernels"]["diff_counts"].sum() > 0
    assert shown["changes"]["increased"] > 0
    assert names["comparison"].per_name["difference_ns"].sum() > 0
    assert isinstance(shown["native"], go.Figure)


def test_what_stragglers_shows(run, capsys) -> None:
    """HTA's method and our own both identify rank 3, which sleeps in every step, as the straggler."""
    names, shown = run("stragglers")
    assert names["straggler"] == 3
    assert shown["native"].filter("is_straggler")["rank"].to_list() == [3]
    assert shown["steps"]["step"].to_list() == [2, 3, 4]
    printed = capsys.readouterr().out
    assert "The others wait for rank 3." in printed
    assert "rank 3 is late" in printed
    assert isinstance(shown["figure"], go.Figure)


def test_what_memory_shows(run) -> None:
    """All four ranks have a peak of 2,405,416 bytes, and the parts of the peak add up to it."""
    names, shown = run("memory")
    assert shown["timeline"]["peak_bytes"].to_list() == [2_405_416] * 4
    assert names["at_peak"]["bytes"].sum() == 2_405_416
    assert shown["at-peak"]["operator"][0] == "aten::addmm"
    assert shown["peak"].to_dict() == {"Parameter": 64, "Activation": 80, "Gradient": 64, "Total": 208}
    assert isinstance(shown["figure"], go.Figure)


def test_what_counters_shows(run) -> None:
    """Each kernel has an operator, and the FLOPs of each operator add up to the expected sum."""
    names, shown = run("counters")
    assert shown["facade"]["top_level_op"].to_list() == ["aten::mm", "aten::add", "aten::mm"]
    assert names["per_operator"].rows() == [("aten::mm", 24_000_000.0), ("aten::add", 50_000.0)]
    assert isinstance(shown["figure"], go.Figure)


def test_what_timelines_shows(run, monkeypatch) -> None:
    """The cells draw both ranks, the call stack of an operator with its kernels, and layers beside annotations."""
    figures: list[go.Figure] = []
    monkeypatch.setattr(go.Figure, "show", lambda figure, **_: figures.append(figure))
    names, _ = run("timelines")
    rows = [figure.layout.yaxis.categoryarray for figure in figures]
    assert {row[: len("rank 000")] for row in rows[0]} == {"rank 000", "rank 001"}
    assert any(row.startswith("cpu level") for row in rows[1])
    assert any(row.startswith("gpu stream") for row in rows[1])
    assert rows[2][0] == "gpu annotate"
    assert (names["under"].timeline_events["name"] == "DistributedDataParallel.forward").sum() == 1


def test_what_critical_path_shows(run, capsys) -> None:
    """The times of the classes on the critical path add up to the step, and both changes are predicted to save time."""
    names, shown = run("critical_path")
    durations = names["result"].per_rank["duration_ns"].to_list()
    assert (
        shown["path"].group_by("rank", maintain_order=True).agg("total_ns")["total_ns"].list.sum().to_list()
        == durations
    )
    halved, hidden = (answer.saved_ns for answer in names["answers"].values())
    assert halved > 0
    assert hidden > 0
    assert names["succeeded"]
    assert shown["facade"].sum() == pytest.approx(100)
    assert "overlaid_critical_path_" in capsys.readouterr().out
    assert isinstance(shown["figure"], go.Figure)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_has_no_outputs(path) -> None:
    """A notebook has five to nine cells with unique ids, and no outputs or execution counts."""
    content = json.loads(path.read_text(encoding="utf-8"))
    cells = content["cells"]
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert 5 <= len(cells) <= 9
    assert len({cell["id"] for cell in cells}) == len(cells)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["id"] for cell in code if cell["outputs"] or cell["execution_count"]] == []


def test_every_notebook_is_listed_and_tested() -> None:
    """The README of the examples lists each notebook, and a test in this module runs it."""
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [path.stem for path in PATHS if f"](notebooks/{path.name})" not in page] == []
    assert {f"test_what_{path.stem}_shows" for path in PATHS} <= set(globals())
