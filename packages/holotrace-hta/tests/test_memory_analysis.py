"""MemoryAnalysis reads raw memory timelines and returns HTA's numbers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest

from holotrace.errors import NotATraceError, TraceNotFoundError, UnreadableTraceError
from hta.memory_analysis import CATEGORIES, MemoryAnalysis


def written(path: Path, content: object) -> str:
    """Write content as JSON; return the path."""
    path.write_text(json.dumps(content))
    return str(path)


def test_the_timeline_equals_htas(real_traces, goldens) -> None:
    """The bytes of every category at every time equal HTA's."""
    ours = MemoryAnalysis(str(real_traces / "memory_timeline" / "memory_timeline.raw.gz")).get_memory_timeline()
    theirs = pd.read_csv(goldens / "hta" / "_misc" / "memory_timeline.csv.gz", index_col=0)
    pd.testing.assert_frame_equal(ours.drop(columns="Total"), theirs)
    assert (ours["Total"] == theirs[list(CATEGORIES)].sum(axis=1)).all()


def test_the_state_after_each_time(tmp_path) -> None:
    """The first row shows the memory allocated before the recording; after it, there is one row per time of a change."""
    path = written(tmp_path / "raw.json", [[-1, 0, 5, 0], [7, 1, 3, 4], [7, 1, 2, 7], [9, 3, -3, 4]])
    analysis = MemoryAnalysis(path)
    frame = analysis.get_memory_timeline()
    assert frame[["ts", "Parameter", "Activation", "Unknown", "Total"]].to_numpy().tolist() == [
        [7, 5, 0, 0, 5],
        [7, 5, 3, 2, 10],
        [9, 5, 0, 2, 7],
    ]
    assert analysis.get_peak()["Total"] == 10


def test_an_empty_timeline_has_all_columns(tmp_path) -> None:
    """An empty timeline has all columns, no rows and no peak."""
    analysis = MemoryAnalysis(written(tmp_path / "raw.json", []))
    assert list(analysis.get_memory_timeline()) == ["ts", *CATEGORIES, "Total"]
    assert analysis.get_peak().empty


def test_the_figure_is_shown_and_written(tmp_path, monkeypatch) -> None:
    """`plot_memory_timeline` shows the figure; `save_graph` also writes it to a file, replacing an earlier file."""
    monkeypatch.chdir(tmp_path)
    shown: list[int] = []
    monkeypatch.setattr(go.Figure, "show", lambda figure: shown.append(len(figure.data)))
    analysis = MemoryAnalysis(written(tmp_path / "raw.json", [[7, 1, 3, 4]]))
    assert len(analysis.plot_memory_timeline(save_graph=True)) == 1
    assert shown == [len(CATEGORIES)]
    assert Path("images/memory_plot.html").is_file()
    Path("images/memory_plot.html").write_text("")
    analysis.plot_memory_timeline(save_graph=True)
    assert Path("images/memory_plot.html").stat().st_size


@pytest.mark.parametrize("content", [{"traceEvents": []}, [[1, 2]], [[1, 1, 1, 9]], ["a"], 5])
def test_another_file_is_an_error(tmp_path, content) -> None:
    """For a file that is not a raw memory timeline, the error says so."""
    with pytest.raises(NotATraceError, match="is not a raw memory timeline"):
        MemoryAnalysis(written(tmp_path / "raw.json", content))


def test_a_file_that_cannot_be_read_is_an_error(tmp_path) -> None:
    """A missing file and a truncated file raise different errors."""
    with pytest.raises(TraceNotFoundError):
        MemoryAnalysis(str(tmp_path / "missing"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"[" + b" " * 999)[:20])
    with pytest.raises(UnreadableTraceError):
        MemoryAnalysis(str(tmp_path / "cut.gz"))
