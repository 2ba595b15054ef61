"""Functions that find the steps and stragglers of `analyzer.t`, at HTA's import path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hta.facade import answers
from hta.facade.imports.elsewhere import names_of
from hta.facade.trace.trace_view import TraceView
from hta.trace_analysis import TraceAnalysis

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)


class StragglerAnalysis:
    """Class methods that take `analyzer.t`; each calls the `TraceAnalysis` method named in its docstring."""

    @classmethod
    def get_profiler_steps(cls, t: TraceView) -> list[int]:
        """See `TraceAnalysis.get_profiler_steps`."""
        return TraceAnalysis.of(t).get_profiler_steps()

    @classmethod
    def get_potential_stragglers(
        cls,
        t: TraceView,
        profiler_steps: list[int] | None = None,
        num_candidates: int = 2,
        visualize: bool = False,  # noqa: FBT001, FBT002
        straggler_identification_impl: answers.stragglers.StragglerMethod | None = None,
    ) -> list[int]:
        """See `TraceAnalysis.get_potential_stragglers`."""
        return TraceAnalysis.of(t).get_potential_stragglers(
            profiler_steps, num_candidates, visualize, straggler_identification_impl
        )
