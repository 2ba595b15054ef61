"""The files that `holotrace critical-path` writes for each rank: an overlay for Perfetto, and the graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import typer

from holotrace.cli.options import Target
from holotrace.enrich.critical_path.path_graph import PathGraph
from holotrace.errors import InvalidOptionError
from holotrace.export.critical_path_overlay import overlaid_path_name, write_critical_path_overlay
from holotrace.export.new_file import expect_writable
from holotrace.export.saved_path_graph import save_path_graph
from holotrace.locations import Location, expect_writable_folder, located
from holotrace.store.trace import RankTrace, Trace

Overlay = Annotated[
    Target | None,
    typer.Option(
        "--overlay",
        parser=located,
        metavar="FOLDER",
        help="For Perfetto, also write copies of the trace files with the critical path marked.",
    ),
]
AllEvents = Annotated[
    bool, typer.Option("--all-events", help="In the copies, also keep events that are not on the path.")
]
AllEdges = Annotated[
    bool, typer.Option("--all-edges", help="In the copies, draw all edges of the graph, and keep all events.")
]
Save = Annotated[
    Target | None,
    typer.Option(
        "--save",
        parser=located,
        metavar="FOLDER",
        help="Also save the graph of each rank, so that you can restore it later.",
    ),
]


@dataclass(frozen=True)
class OutputOptions:
    """The folders to write to, and what the overlays contain."""

    overlay: Overlay = None
    all_events: AllEvents = False
    all_edges: AllEdges = False
    save: Save = None

    @property
    def are_wanted(self) -> bool:
        """Whether files were requested."""
        return self.overlay is not None or self.save is not None

    def check(self, trace: Trace, *, overwrite: bool) -> None:
        """Raise InvalidOptionError, before any work, if a file cannot be written; create missing folders."""
        for folder in (folder for folder in (self.overlay, self.save) if folder is not None):
            expect_writable_folder(folder if folder.exists() else folder.absolute().parent)
        paths = [path for rank_trace in trace.ranks.values() for path in self._paths(rank_trace).values()]
        if len(set(paths)) < len(paths):
            message = (
                "the files of several ranks have the same name, so their copies would clash; write one rank at a time"
            )
            raise InvalidOptionError(message)
        for path in paths:
            path.parent.mkdir(exist_ok=True)
            expect_writable(path, overwrite=overwrite)

    def write(self, rank_trace: RankTrace, path_graph: PathGraph, *, overwrite: bool) -> Iterator[Location]:
        """Write the files of a rank; yield their paths."""
        paths = self._paths(rank_trace)
        if "overlay" in paths:
            write_critical_path_overlay(
                rank_trace,
                path_graph,
                paths["overlay"],
                only_critical=not (self.all_events or self.all_edges),
                all_edges=self.all_edges,
                overwrite=overwrite,
            )
            yield paths["overlay"]
        if "save" in paths:
            save_path_graph(rank_trace, path_graph, paths["save"], overwrite=overwrite)
            yield paths["save"]

    def _paths(self, rank_trace: RankTrace) -> dict[str, Location]:
        overlay = None if self.overlay is None else self.overlay / overlaid_path_name(rank_trace.source)
        save = None if self.save is None else self.save / f"critical_path_rank{rank_trace.rank}.zip"
        return {name: path for name, path in (("overlay", overlay), ("save", save)) if path is not None}
