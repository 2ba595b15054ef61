"""Compares two runs, for scripts in HTA's style."""

from __future__ import annotations

from collections.abc import Sequence

import holotrace
from holotrace import figures, open_trace
from holotrace.analyses.compare_operators.compute import Measure, OperatorComparison
from holotrace.enrich.compat import Compat
from holotrace.store.trace import Trace
from hta.facade.imports.modules_later import go, pd
from hta.facade.results.times import frame_in_microseconds


class RunDiff:
    """Align two runs by phase, module and call path; returns tables of `holotrace.compare_operators`.

    Args:
        baseline: the run to compare with: a folder, a file, or an open trace.
        experiment: the run to examine: a folder, a file, or an open trace.
        ranks: the ranks of both runs to include.
        by: compare time on the `device` or on the `host`; by default on the device if both runs have device time.
        compat: "torch_tb_profiler" to align runs as PyTorch's TensorBoard plugin did.

    Raises:
        MissingDataError: a run has neither operators nor device work.
    """

    def __init__(
        self,
        baseline: str | Trace,
        experiment: str | Trace,
        *,
        ranks: Sequence[int] | None = None,
        by: Measure | None = None,
        compat: Compat | None = None,
    ) -> None:
        runs = [open_trace(run) if isinstance(run, str) else run for run in (baseline, experiment)]
        chosen = runs if ranks is None else [run.select(ranks) for run in runs]
        self.result: OperatorComparison = holotrace.compare_operators(*chosen, by=by, compat=compat)

    def get_tree(self) -> pd.DataFrame:
        """Return the call paths, largest change first: the table `tree`, with times in µs."""
        return frame_in_microseconds(self.result.tree)

    def get_operators(self) -> pd.DataFrame:
        """Return the operators, largest change first: the table `per_operator`, with times in µs."""
        return frame_in_microseconds(self.result.per_operator)

    def plot(self) -> go.Figure:
        """Return the figure of the call paths whose self time changed most."""
        return figures.plot_compare_operators(self.result)
