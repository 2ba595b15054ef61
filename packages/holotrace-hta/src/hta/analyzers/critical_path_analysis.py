"""The graph of the critical path, its nodes and edges, and a function that loads saved graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hta.facade.graphs.critical_path import (
    BoundType,
    CPGraph,
    critical_path_of,
    overlaid_critical_path,
    restore_cpgraph,
)
from hta.facade.graphs.graph_views import CPEdge, CPEdgeType, CPNode
from hta.facade.imports.elsewhere import names_of
from hta.facade.trace.trace_view import TraceView

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

__all__ = ["BoundType", "CPEdge", "CPEdgeType", "CPGraph", "CPNode", "CriticalPathAnalysis", "restore_cpgraph"]


class CriticalPathAnalysis:
    """Static methods that take `analyzer.t`; each calls the `TraceAnalysis` method named in its docstring."""

    @staticmethod
    def critical_path_analysis(
        t: TraceView,
        rank: int,
        annotation: str,
        instance_id: int | tuple[int, int] | None,
        data_load_events: list[str] | None = None,
    ) -> tuple[CPGraph, bool]:
        """See `TraceAnalysis.critical_path_analysis`."""
        return critical_path_of(t, rank, annotation, instance_id, data_load_events)

    @staticmethod
    def overlay_critical_path_analysis(  # noqa: PLR0913, PLR0917 -- HTA's signature
        t: TraceView,
        rank: int,
        critical_path_graph: CPGraph,
        output_dir: str,
        only_show_critical_events: bool,  # noqa: FBT001
        show_all_edges: bool,  # noqa: FBT001
        edge_types_to_viz: set[CPEdgeType] | None = None,
    ) -> str:
        """See `TraceAnalysis.overlay_critical_path_analysis`; draws only edges of the types in `edge_types_to_viz`."""
        return overlaid_critical_path(
            t,
            rank,
            critical_path_graph,
            output_dir,
            only_show_critical_events=only_show_critical_events,
            show_all_edges=show_all_edges,
            edge_types_to_viz=edge_types_to_viz,
        )
