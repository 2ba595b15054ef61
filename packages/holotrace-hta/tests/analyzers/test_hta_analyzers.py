"""Functions and constants at HTA's import paths."""

from __future__ import annotations

import pandas as pd
import pytest

from hta.analyzers.cupti_counter_analysis import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS
from hta.analyzers.straggler import find_stragglers_with_late_start_comm_kernels
from hta.facade.trace.symbols import TraceSymbolTable

COLUMNS = ["rank", "iteration", "stream", "name", "ts", "dur"]


def scores(
    rows: list[tuple[int, int, int, str, int, int]], wanted: int = 1, *, visualize: bool = False
) -> dict[int, int]:
    """Call HTA's method on events (rank, iteration, stream, name, ts, dur)."""
    symbols = TraceSymbolTable()
    symbols.add_symbols(row[3] for row in rows)
    frame = pd.DataFrame(rows, columns=COLUMNS)
    frame["name"] = frame["name"].map(symbols.get_sym_index()).astype("int64")
    return find_stragglers_with_late_start_comm_kernels(frame, symbols, wanted, visualize).to_dict()


@pytest.mark.parametrize("name", ["ncclKernel_AllReduce", "ncclDevKernel_AllReduce(int)", "hcom_allReduce_"])
def test_the_rank_whose_kernel_starts_last_is_counted(name) -> None:
    """Rank 1 starts last in step 0, and rank 0 starts last in step 1, so each is counted once.

    All kernels are on stream 0. The `gemm` kernel starts even later, but is ignored, because it does not communicate.
    """
    rows = [(0, 0, 0, name, 0, 90), (1, 0, 0, name, 40, 50), (0, 1, 0, name, 130, 50), (1, 1, 0, name, 100, 80)]
    assert scores([*rows, (1, 1, 0, "gemm", 190, 1)]) == {0: 1, 1: 1}


def test_ties_are_all_counted() -> None:
    """If two ranks start at the same time and no rank starts later, both are counted."""
    assert scores([(0, 1, 7, "ncclKernel_A", 5, 9), (1, 1, 7, "ncclKernel_A", 5, 8)]) == {0: 1, 1: 1}


def test_one_rank_or_fewer_than_requested_is_not_an_error() -> None:
    """If three ranks are requested and only one exists, that rank is returned; HTA raises TypeError or IndexError."""
    assert scores([(4, 1, 7, "ncclKernel_A", 5, 9)], wanted=3) == {4: 1}


def test_no_communication_kernels_give_an_empty_answer() -> None:
    """The result for events without communication kernels is empty; HTA raises an error."""
    assert scores([(0, 1, 7, "gemm", 5, 9)]) == {}


def test_figures_are_shown_on_request(monkeypatch) -> None:
    """With `visualize=True`, the figure is shown; its title and the label of its y-axis say what it shows."""
    shown = []
    monkeypatch.setattr("plotly.graph_objects.Figure.show", lambda figure, **_: shown.append(figure))
    scores([(0, 1, 7, "ncclKernel_A", 5, 9), (1, 1, 7, "ncclKernel_A", 6, 8)], visualize=True)
    assert [figure.layout.title.text for figure in shown] == ["Which ranks start the chosen communication kernel last?"]
    assert shown[0].layout.yaxis.title.text == "start (as a multiple of the mean step duration)"
    assert {bars.name for bars in shown[0].data} == {"on time", "among the last"}


def test_weights_of_counters_have_htas_names() -> None:
    """The table has HTA's nine counters; each fused multiply-add counts as two floating-point operations."""
    assert CUDA_SASS_INSTRUCTION_COUNTER_FLOPS["smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"] == 2
    assert len(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS) == 9
