"""Adds likely waits between two streams if timing shows that communication on one waits for work on the other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holotrace.enrich.critical_path.event_graph import EdgeType, PathClass
from holotrace.enrich.critical_path.graph_edges import GraphEdges, graph_edges
from holotrace.enrich.critical_path.window_activities import CLOCK_NOISE_NS, WindowActivities
from holotrace.schema import KernelKind

_Rows = npt.NDArray[np.int64]


def implied_waits(activities: WindowActivities, inferred: GraphEdges) -> GraphEdges:
    """Return the waits of communication kernels that `inferred` lacks because timing does not show them.

    Before each collective, PyTorch makes the communication stream wait for the computation stream (`syncStream` in
    https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp). Timing shows such a
    wait only if the collective begins right after the computation. If the collective begins right after another
    collective, timing does not show whether it also waited for the computation. So if at least one wait between two
    streams has been inferred, each communication kernel on the target stream is assumed to wait for the last work
    on the source stream that was launched before the kernel. But if any communication kernel on the target stream begins
    before the end of the work that it would wait for, no waits are added between the two streams.
    """
    before, after = _waits_of_streams(activities, *_stream_pairs(activities, inferred))
    known = {*zip(inferred.source.tolist(), inferred.target.tolist(), strict=True)}
    source, target = activities.nodes.end[before], activities.nodes.start[after]
    is_new = np.array([pair not in known for pair in zip(source.tolist(), target.tolist(), strict=True)], np.bool_)
    return graph_edges(
        source[is_new],
        target[is_new],
        EdgeType.EVENT_WAIT,
        PathClass.SYNCHRONISATION_WAIT,
        activity=after[is_new],
    )


def _stream_pairs(activities: WindowActivities, inferred: GraphEdges) -> tuple[_Rows, _Rows]:
    """Return the source and target streams of the inferred waits of communication kernels, each pair once."""
    source, target = activities.nodes.activity[inferred.source], activities.nodes.activity[inferred.target]
    is_waiting = activities.column("kernel_kind")[target] == KernelKind.COMMUNICATION
    streams = activities.stream_number[np.stack([source[is_waiting], target[is_waiting]])]
    pairs = np.unique(streams, axis=1).astype(np.int64)
    return pairs[0], pairs[1]


def _waits_of_streams(activities: WindowActivities, sources: _Rows, targets: _Rows) -> tuple[_Rows, _Rows]:
    """Return the awaited work and the communication that waits for it, as two arrays of equal length.

    A communication kernel is assumed to wait for the work on the source stream that was launched last before it. If any
    such kernel begins before that work ends, skip the pair of streams.
    """
    calls = activities.launching_row
    launched = np.flatnonzero(~activities.is_host & (calls >= 0))
    asked_ns, end_ns = activities.column("start_ns")[calls[launched]], activities.column("end_ns")[launched]
    launched = launched[np.lexsort((end_ns, asked_ns))]
    found: list[tuple[_Rows, _Rows]] = [(launched[:0], launched[:0])]
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        before, after = (launched[activities.stream_number[launched] == stream] for stream in (source, target))
        after = after[activities.column("kernel_kind")[after] == KernelKind.COMMUNICATION]
        asked_before, asked_after = (activities.column("start_ns")[calls[rows]] for rows in (before, after))
        place = np.searchsorted(asked_before, asked_after) - 1
        before, after = before[place[place >= 0]], after[place >= 0]
        if (activities.column("end_ns")[before] <= activities.column("start_ns")[after] + CLOCK_NOISE_NS).all():
            found.append((before, after))
    return np.concatenate([rows for rows, _ in found]), np.concatenate([rows for _, rows in found])
