"""Findings about compiled regions: recompilations, graph breaks, and missing recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from holotrace.units import counted, duration_text

_RECOMPILE_LIMIT = 8
"""Default of `torch._dynamo.config.recompile_limit`: if a frame has this many versions, calls whose inputs fit none of
them run uncompiled.
https://github.com/pytorch/pytorch/blob/main/torch/_dynamo/config.py"""

_MOST_FRAMES = 3


def findings_of(
    regions: pl.DataFrame, frames: pl.DataFrame, costs: pl.DataFrame, entered: int, *, has_log: bool
) -> Iterator[str]:
    """Yield the findings about the regions of one rank."""
    known = costs.row(0, named=True)
    if known["compilation_count"]:
        times = counted(known["compilation_count"], "time")
        yield f"torch.compile ran the compiler {times} in the recording, for {duration_text(known['compilation_ns'])}"
    yield from _recompilations(regions, frames, has_log=has_log)
    if known["graph_break_count"]:
        yield f"{counted(known['graph_break_count'], 'function')} continued after a graph break"
    if entered and regions.is_empty():
        yield (
            f"{counted(entered, 'call')} of functions under torch.compile ran no compiled region, because "
            "graph breaks left nothing to compile, or because compiling failed"
        )


def findings_on_lines(kernels: pl.DataFrame) -> Iterator[str]:
    """If no source line of a rank's generated kernels is known, say how to record source lines."""
    if not kernels.is_empty() and not kernels["source_line"].count():
        yield (
            "the profiler does not record the source lines of generated kernels; to see them, set TORCH_TRACE=FOLDER and "
            "INDUCTOR_PROVENANCE=1, and pass the folder as compile_log= (--compile-log)"
        )


def _recompilations(regions: pl.DataFrame, frames: pl.DataFrame, *, has_log: bool) -> Iterator[str]:
    again = regions.filter("is_recompiled").height
    if again:
        yield f"{counted(again, 'region')} had been recompiled, because a guard failed"
    worst = frames.filter(pl.col("recompilation_count") > 0)
    for frame in worst.head(_MOST_FRAMES).iter_rows(named=True):
        yield _of_frame(frame)
    if not worst.is_empty() and not has_log:
        yield (
            "the profiler does not record which guards failed; set TORCH_LOGS=recompiles,guards to print them, or set "
            "TORCH_TRACE=FOLDER and pass the folder as compile_log= (--compile-log)"
        )


def _of_frame(frame: dict[str, Any]) -> str:
    function = f" ({frame['compiled_function']})" if frame["compiled_function"] else ""
    reasons = f": {'; '.join(frame['recompile_reason'].splitlines())}" if frame["recompile_reason"] else ""
    limit = (
        f". By default, torch.compile stops recompiling a frame after {_RECOMPILE_LIMIT} versions "
        "(torch._dynamo.config.recompile_limit); calls whose inputs fit none of these versions run uncompiled"
        if frame["recompilation_count"] + 1 == _RECOMPILE_LIMIT
        else ""
    )
    return f"frame {frame['compiled_frame']}{function} was recompiled {counted(frame['recompilation_count'], 'time')}{reasons}{limit}"
