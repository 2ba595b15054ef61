"""Functions that analyse launches and kernel sequences of `analyzer.t`, at HTA's import path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hta.facade.imports.elsewhere import names_of
from hta.facade.imports.modules_later import pd
from hta.facade.trace.trace_view import TraceView
from hta.trace_analysis import TraceAnalysis

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)


class CudaKernelAnalysis:
    """Class methods that take `analyzer.t`; each calls the `TraceAnalysis` method named in its docstring."""

    @classmethod
    def get_frequent_cuda_kernel_sequences(  # noqa: PLR0913, PLR0917 -- HTA's signature
        cls,
        t: TraceView,
        operator_name: str,
        output_dir: str,
        min_pattern_len: int = 3,
        rank: int = 0,
        top_k: int = 5,
        visualize: bool = True,  # noqa: FBT001, FBT002
        compress_other_kernels: bool = True,  # noqa: FBT001, FBT002
    ) -> pd.DataFrame:
        """See `TraceAnalysis.get_frequent_cuda_kernel_sequences`."""
        return TraceAnalysis.of(t).get_frequent_cuda_kernel_sequences(
            operator_name, output_dir, min_pattern_len, rank, top_k, visualize, compress_other_kernels
        )

    @classmethod
    def get_aten_op_kernels_and_delay(
        cls, trace: TraceView, ranks: Iterable[int] | None = None, sort_by: Sequence[str] | None = None
    ) -> dict[int, pd.DataFrame]:
        """See `TraceAnalysis.get_aten_op_kernels_and_delay`."""
        return TraceAnalysis.of(trace).get_aten_op_kernels_and_delay(ranks, sort_by)

    @classmethod
    def cuda_kernel_launch_stats(  # noqa: PLR0913, PLR0917 -- HTA's signature
        cls,
        t: TraceView,
        ranks: Iterable[int] | None = None,
        runtime_cutoff: float = 50,
        launch_delay_cutoff: float = 100,
        include_memory_events: bool = True,  # noqa: FBT001, FBT002
        visualize: bool = True,  # noqa: FBT001, FBT002
    ) -> dict[int, pd.DataFrame]:
        """See `TraceAnalysis.get_cuda_kernel_launch_stats`."""
        return TraceAnalysis.of(t).get_cuda_kernel_launch_stats(
            ranks, runtime_cutoff, launch_delay_cutoff, include_memory_events, visualize
        )
