"""Hardware counters of kernels, and how many floating-point operations one count of each counter represents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holotrace.analyses.cupti_counters.compute import FLOP_OF_COUNTER
from hta.facade.answers.cupti_counters import counters_with_operators
from hta.facade.imports.elsewhere import names_of
from hta.facade.imports.modules_later import pd
from hta.facade.trace.trace_view import TraceView

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

CUDA_SASS_INSTRUCTION_COUNTER_FLOPS: dict[str, float] = dict(FLOP_OF_COUNTER)
"""{counter: number of floating-point operations that one count represents}."""


class CuptiCounterAnalysis:
    """The class method takes `analyzer.t` and calls the `TraceAnalysis` method named in its docstring."""

    cuda_profiler_cat = "cuda_profiler_range"

    @classmethod
    def get_counter_data_with_operators(cls, t: TraceView, ranks: list[int] | None = None) -> list[pd.DataFrame]:
        """See `TraceAnalysis.get_cupti_counter_data_with_operators`."""
        return counters_with_operators(t, ranks)
