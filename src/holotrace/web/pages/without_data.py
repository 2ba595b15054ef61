"""The pages that certainly have no data, judging by the recorded events; the navigation dims them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dash import html
from dash.development.base_component import Component

from holotrace.analyses.compiled_regions.compute import has_signs_of_compile
from holotrace.enrich.inference.inference_steps import inference_steps
from holotrace.errors import HolotraceError
from holotrace.schema import DEVICE_WORK_KINDS, EventKind
from holotrace.store.trace import RankTrace, Trace
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Session

WITHOUT_DATA_PART = "without-data"

MOST_RANKS = 64
"""In jobs with more ranks, no page is dimmed: reading all files would take longer than it is worth."""

_COPIES = (EventKind.GPU_MEMCPY, EventKind.GPU_MEMSET)
_NEEDS: dict[str, tuple[EventKind, ...]] = {
    **dict.fromkeys(
        ("temporal_breakdown", "kernel_breakdown", "communication_overlap", "idle_time", "gpu_summary"),
        DEVICE_WORK_KINDS,
    ),
    **dict.fromkeys(("launch_statistics", "queue_length", "operator_kernels", "kernel_sequences"), DEVICE_WORK_KINDS),
    "kernels": (EventKind.KERNEL,),
    "memory_bandwidth": _COPIES,
    "memory_timeline": (EventKind.MEMORY,),
    "operator_memory": (EventKind.MEMORY,),
    "cupti_counters": (EventKind.PROFILER_RANGE,),
    "modules": (EventKind.PYTHON_FUNCTION,),
    "source_lines": (EventKind.PYTHON_FUNCTION,),
}
"""For each page, kinds of events; the page has no data if none of them was recorded. Other pages are never dimmed."""

_OF_SEVERAL_RANKS = ("stragglers",)

_SIGNS: dict[str, Callable[[RankTrace], bool]] = {
    "compiled_regions": has_signs_of_compile,
    "inference": lambda rank_trace: not inference_steps(rank_trace).table.is_empty(),
}
"""For pages whose input is not recorded as a kind of event: whether a rank has the input."""


def without_data_part(session: Session, selection: Selection) -> Component:
    """Return the names of the pages without data, for `assets/shell/navigation.js`; none if the run cannot be opened."""
    try:
        names = session.remembered(selection.scope, WITHOUT_DATA_PART, without_data)
    except HolotraceError:
        names = ()
    attributes: dict[str, Any] = {"data-pages": " ".join(names)}
    return html.Div(id="without-data", hidden=True, **attributes)


def without_data(trace: Trace) -> tuple[str, ...]:
    """Return the names of the pages that certainly have no data."""
    if len(trace.ranks) > MOST_RANKS:
        return ()
    recorded = {kind for rank_trace in trace.ranks.values() for kind in rank_trace.event_counts()}
    lacking = [name for name, kinds in _NEEDS.items() if not recorded.intersection(kinds)]
    lacking += [name for name, has_sign in _SIGNS.items() if not any(map(has_sign, trace.ranks.values()))]
    return (*lacking, *(_OF_SEVERAL_RANKS if len(trace.ranks) == 1 else ()))
