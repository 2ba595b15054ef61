"""Functions that compute breakdowns from `analyzer.t`, at HTA's import path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hta.facade.imports.elsewhere import names_of
from hta.facade.imports.modules_later import pd
from hta.facade.trace.trace_view import TraceView
from hta.trace_analysis import TraceAnalysis

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)


class BreakdownAnalysis:
    """Class methods that take `analyzer.t`; each calls the `TraceAnalysis` method named in its docstring."""

    @classmethod
    def get_gpu_kernel_breakdown(  # noqa: PLR0913, PLR0917 -- HTA's signature
        cls,
        t: TraceView,
        visualize: bool = True,  # noqa: FBT001, FBT002
        duration_ratio: float = 0.8,
        num_kernels: int = 10,
        include_memory_kernels: bool = False,  # noqa: FBT001, FBT002
        image_renderer: str = "notebook",
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """See `TraceAnalysis.get_gpu_kernel_breakdown`."""
        return TraceAnalysis.of(t).get_gpu_kernel_breakdown(
            visualize, duration_ratio, num_kernels, include_memory_kernels, image_renderer
        )

    @classmethod
    def get_gpu_kernels_with_user_annotations(
        cls,
        t: TraceView,
        rank: int,
        expand_names: bool = True,  # noqa: FBT001, FBT002
        shorten_names: bool = True,  # noqa: FBT001, FBT002
    ) -> pd.DataFrame:
        """See `TraceAnalysis.get_gpu_kernels_with_user_annotations`."""
        return TraceAnalysis.of(t).get_gpu_kernels_with_user_annotations(rank, expand_names, shorten_names)

    @classmethod
    def get_gpu_user_annotation_breakdown(  # noqa: PLR0913, PLR0917 -- HTA's signature
        cls,
        t: TraceView,
        use_gpu_annotation: bool = True,  # noqa: FBT001, FBT002
        visualize: bool = True,  # noqa: FBT001, FBT002
        duration_ratio: float = 0.8,
        num_kernels: int = 1000,
        allowlist_patterns: list[str] | None = None,
        image_renderer: str | None = None,
    ) -> pd.DataFrame:
        """See `TraceAnalysis.get_gpu_user_annotation_breakdown`."""
        return TraceAnalysis.of(t).get_gpu_user_annotation_breakdown(
            use_gpu_annotation, visualize, duration_ratio, num_kernels, allowlist_patterns, image_renderer
        )

    @classmethod
    def get_temporal_breakdown(cls, t: TraceView, visualize: bool = True) -> pd.DataFrame:  # noqa: FBT001, FBT002
        """See `TraceAnalysis.get_temporal_breakdown`."""
        return TraceAnalysis.of(t).get_temporal_breakdown(visualize)

    @classmethod
    def get_idle_time_breakdown(  # noqa: PLR0913, PLR0917 -- HTA's signature
        cls,
        t: TraceView,
        consecutive_kernel_delay: float,
        rank: int = 0,
        streams: Iterable[int] | None = None,
        visualize: bool = True,  # noqa: FBT001, FBT002
        visualize_pctg: bool = True,  # noqa: FBT001, FBT002
        show_idle_interval_stats: bool = False,  # noqa: FBT001, FBT002
    ) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """See `TraceAnalysis.get_idle_time_breakdown`; this method analyses only one rank."""
        return TraceAnalysis.of(t).get_idle_time_breakdown(
            [rank], streams, visualize, visualize_pctg, show_idle_interval_stats, consecutive_kernel_delay
        )
