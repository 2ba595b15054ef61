"""Critical paths of the real traces, compared with HTA's.

HTA leaves out the gaps between operators, so its path is shorter than the window. The path of `holotrace`
includes these gaps, so it is as long as the window.
docs/explanation/critical_path_differences.md compares the two methods.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import polars as pl
import pytest

from holotrace.errors import InvalidOptionError
from hta.trace_analysis import TraceAnalysis
from hta_goldens import FILES
from matrices import slow_except
from pages import ROOT

_FORWARD = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
WINDOWS = {
    "full": ("", None),
    "step0": ("ProfilerStep", 0),
    "step1": ("ProfilerStep", 1),
    "step0_1": ("ProfilerStep", (0, 1)),
    "fwd0": (_FORWARD, 0),
    "fwd1": (_FORWARD, 1),
}
"""{window in the names of the goldens: (annotation, instance) that select it}."""

NO_SUCH_INSTANCE = {("amd_trace", "step1"), ("trace_filter", "step1")}
"""Calls that request a second step of a one-step trace.

HTA takes the step's GPU annotation for a second step (amd_trace) or fails (trace_filter).
"""

_SYNCHRONISATION = 13
_CALL = re.compile(r"critical_path_analysis\.(\w+)\.rank(\d+)")
_FOLDERS = [*FILES, *(f"{name}__last" for name in ("trace_diff_control", "trace_filter", "ns_resolution_trace"))]


@pytest.mark.parametrize("folder", slow_except(_FOLDERS, _FOLDERS[::4]))
def test_each_path_covers_its_window_and_the_events_of_htas_graph(real_traces, goldens, folder) -> None:
    """A path covers its whole window; except for synchronisations, its graph has every event of HTA's graph."""
    name, _, suffix = folder.partition("__")
    files = {rank: str(next(real_traces.glob(pattern))) for rank, pattern in FILES[name].items()}
    analyzer = TraceAnalysis(files, include_last_profiler_step=suffix == "last")
    for call, window, rank in _calls(goldens / "hta" / folder):
        if (name, window) in NO_SUCH_INSTANCE:
            with pytest.raises(InvalidOptionError, match="has 1 instance of 'ProfilerStep'"):
                analyzer.critical_path_analysis(rank, *WINDOWS[window])
            continue
        graph, succeeded = analyzer.critical_path_analysis(rank, *WINDOWS[window])
        measured = graph.path_graph.graph
        window_us = (measured.window_end_ns - measured.window_start_ns) / 1_000
        assert succeeded
        assert graph.get_critical_path_breakdown()["duration"].sum() == pytest.approx(window_us, abs=1e-3)
        assert window_us >= _length_in_hta(goldens / "hta" / folder, call)
        missing = _events_in_hta(goldens / "hta" / folder, call) - set(measured.activities["event_index"])
        events = analyzer.t.trace.ranks[rank].table("events", ["event_index", "kind"])
        kinds = events.filter(pl.col("event_index").is_in(list(missing)))["kind"]
        assert set(kinds) <= {_SYNCHRONISATION}


ON_THE_PAGE = {
    "simple_add": ("critical_path_simple_add", "fwd1"),
    "alexnet": ("critical_path_alexnet", "fwd1"),
    "event_sync": ("critical_path_cuda_event_sync", "step0"),
    "two_rank_128": ("trace_filter", "step0"),
}
"""For each section of the page: HTA's folder with the trace, and the window."""


@pytest.mark.parametrize("section", ON_THE_PAGE)
def test_the_page_shows_the_numbers_of_both_tools(real_traces, goldens, section) -> None:
    """The page's tables show the µs of each `bound_by` value, as computed by HTA and by holotrace."""
    folder, window = ON_THE_PAGE[section]
    path = str(next(real_traces.glob(FILES[folder][0])))
    graph, _ = TraceAnalysis({0: path}).critical_path_analysis(0, *WINDOWS[window])
    (golden,) = (goldens / "hta" / folder).glob(f"critical_path_analysis.{window}.rank0.breakdown.csv*")
    here = graph.get_critical_path_breakdown()
    there = pl.read_csv(golden, infer_schema_length=None).drop_nulls("bound_by").group_by("bound_by")

    holotrace, ours = _on_the_page(section)

    assert ours == {**here.groupby("bound_by")["duration"].sum().to_dict(), "sum": here["duration"].sum()}
    sums = dict(there.agg(pl.col("duration").sum()).iter_rows())
    assert holotrace == {**sums, "sum": sum(sums.values())}


def _on_the_page(section: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the nonzero values in a section's tables, for HTA and for this package."""
    text = (ROOT / "docs" / "explanation" / "critical_path_differences.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `?(\w+)`? \| ([\d,]*) ?\| ([\d,]+) \|$", text.split(f"### {section}\n")[1].split("### ")[0], re.MULTILINE
    )
    columns = [{row[0]: int(row[column].replace(",", "") or 0) for row in rows} for column in (1, 2)]
    holotrace, ours = ({key: value for key, value in column.items() if value} for column in columns)
    return holotrace, ours


def _calls(folder: Path) -> list[tuple[str, str, int]]:
    """Return the name, window and rank of each recorded call of `critical_path_analysis` with default options."""
    (path,) = folder.glob("_calls.json*")
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    matches = [(call, _CALL.fullmatch(call)) for call in json.loads(text)]
    return [(call, match[1], int(match[2])) for call, match in matches if match]


def _length_in_hta(folder: Path, call: str) -> float:
    path = folder / f"{call}.status.csv"
    return float(pl.read_csv(path)["value"][-1]) if path.is_file() else 0.0


def _events_in_hta(folder: Path, call: str) -> set[int]:
    paths = list(folder.glob(f"{call}.nodes.csv*"))
    return set(pl.read_csv(paths[0], infer_schema_length=None)["ev_idx"]) if paths else set()
