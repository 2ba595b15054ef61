"""Tests of the user_annotations figure."""

from __future__ import annotations

from holotrace.analyses.user_annotations.compute import user_annotations
from holotrace.analyses.user_annotations.figure import plot_user_annotations
from holotrace.testing.builder import TraceBuilder
from jobs import MARKUP


def test_annotations_are_split_into_their_own_and_inner_time() -> None:
    """The annotation `outer` takes 100 µs, 40 µs of them in another annotation; names are escaped."""
    builder = TraceBuilder().gpu_annotation("outer", start_us=0, duration_us=100)
    builder.gpu_annotation(MARKUP, start_us=10, duration_us=40)
    figure = plot_user_annotations(user_annotations(builder.build()))
    assert {bar.name: list(bar.x) for bar in figure.data} == {
        "the part itself": [60, 40],
        "annotated parts inside it": [40, 0],
    }
    assert "<script>" not in figure.to_json()


def test_the_host_is_shown_where_there_is_no_gpu_side() -> None:
    """Without GPU annotations, the host is shown by default, and `side="gpu"` shows a message."""
    result = user_annotations(TraceBuilder().annotation("load", start_us=0, duration_us=5).build())
    assert list(plot_user_annotations(result).data[0].x) == [5]
    assert plot_user_annotations(result, side="gpu").layout.annotations[0].text == "No user annotations were recorded."
