"""Files in the Chrome trace format that were written by programs other than PyTorch's profiler.

VizTracer, Chrome, JAX and many others write this format. The reader accepts their files, but these contain no
operators, kernels or steps, so an analysis would report that the job did nothing.
"""

from __future__ import annotations

from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace

_HEADER_KEYS = frozenset(
    {"schemaVersion", "deviceProperties", "distributedInfo", "traceName", "baseTimeNanoseconds", "trace_id"}
)
"""Top-level keys of Kineto; every file that it has written since 2020 has at least one of them:
https://github.com/pytorch/kineto/blob/main/libkineto/src/output_json.cpp."""

_ANY_PROGRAM = {EventKind.OTHER, EventKind.INSTANT}
_TORCH_NAME = r"^(aten|c10|torch|autograd)::|^ProfilerStep"
_ASCEND_PROCESS = "Ascend Hardware"
_WRITERS = {"viztracer_metadata": "VizTracer"}
"""For each top-level key that only one program writes, the name of the program."""


def other_writer(rank_trace: RankTrace) -> str:
    """Return the program that wrote a file; an empty string for PyTorch's profiler.

    A file is from PyTorch's profiler if it has one of the profiler's top-level keys or event categories, or contains
    the name of a PyTorch operator or training step.
    """
    header = rank_trace.header.raw
    if not _HEADER_KEYS.isdisjoint(header):
        return ""
    names = rank_trace.strings
    if (names == _ASCEND_PROCESS).any():
        return "Ascend's profiler"
    kinds = set(rank_trace.unselected.event_counts())
    if not kinds or kinds - _ANY_PROGRAM or names.str.contains(_TORCH_NAME).any():
        return ""
    return next((writer for key, writer in _WRITERS.items() if key in header), "another program")


def other_writer_text(writer: str) -> str:
    """Return the words after "The file was": they name the program that wrote it and the data that are missing."""
    if writer == "Ascend's profiler":
        return f"written by {writer}, not by PyTorch's profiler: the operators are read, but not the work on the device"
    return (
        f"written by {writer}, not by PyTorch's profiler: without PyTorch's operators, kernels and steps, only the timeline, "
        "sql and export can show its events"
    )
