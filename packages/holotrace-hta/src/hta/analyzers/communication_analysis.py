"""A function that computes the overlap of communication and computation from `analyzer.t`, at HTA's import path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hta.facade.imports.elsewhere import names_of
from hta.facade.imports.modules_later import pd
from hta.facade.trace.trace_view import TraceView
from hta.trace_analysis import TraceAnalysis

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)


class CommunicationAnalysis:
    """The class method takes `analyzer.t` and calls the `TraceAnalysis` method named in its docstring."""

    @classmethod
    def get_comm_comp_overlap(cls, t: TraceView, visualize: bool = True) -> pd.DataFrame:  # noqa: FBT001, FBT002
        """See `TraceAnalysis.get_comm_comp_overlap`."""
        return TraceAnalysis.of(t).get_comm_comp_overlap(visualize)
