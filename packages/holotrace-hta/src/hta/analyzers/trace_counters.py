"""Functions that compute queue lengths and memory bandwidth from `analyzer.t`, at HTA's import path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hta.facade.answers.queue_length import queue_length_summary
from hta.facade.imports.elsewhere import names_of
from hta.facade.imports.modules_later import pd
from hta.facade.trace.trace_view import TraceView
from hta.trace_analysis import TraceAnalysis

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)


class TraceCounters:
    """Class methods that take `analyzer.t`; each calls the `TraceAnalysis` method named in its docstring."""

    @classmethod
    def get_queue_length_time_series(cls, t: TraceView, ranks: Iterable[int] | None = None) -> dict[int, pd.DataFrame]:
        """See `TraceAnalysis.get_queue_length_time_series`."""
        return TraceAnalysis.of(t).get_queue_length_time_series(ranks)

    @classmethod
    def get_queue_length_summary(cls, t: TraceView, ranks: Iterable[int] | None = None) -> pd.DataFrame:
        """See `TraceAnalysis.get_queue_length_summary`."""
        return TraceAnalysis.of(t).get_queue_length_summary(ranks)

    @classmethod
    def get_queue_length_summary_from_time_series(cls, queue_length_dict: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
        """See `TraceAnalysis.get_queue_length_summary_from_time_series`."""
        return queue_length_summary(queue_length_dict)

    @classmethod
    def get_time_spent_blocked_on_full_queue(
        cls, t: TraceView, queue_length_dict: Mapping[int, pd.DataFrame], max_queue_length: int
    ) -> pd.DataFrame:
        """See `TraceAnalysis.get_time_spent_blocked_on_full_queue`."""
        return TraceAnalysis.of(t).get_time_spent_blocked_on_full_queue(queue_length_dict, max_queue_length)

    @classmethod
    def get_memory_bw_time_series(cls, t: TraceView, ranks: Iterable[int] | None = None) -> dict[int, pd.DataFrame]:
        """See `TraceAnalysis.get_memory_bw_time_series`."""
        return TraceAnalysis.of(t).get_memory_bw_time_series(ranks)

    @classmethod
    def get_memory_bw_summary(cls, t: TraceView, ranks: Iterable[int] | None = None) -> pd.DataFrame:
        """See `TraceAnalysis.get_memory_bw_summary`."""
        return TraceAnalysis.of(t).get_memory_bw_summary(ranks)
