"""`worker_of` finds the name of the worker in a file name."""

from __future__ import annotations

import pytest

from holotrace.ingest.worker_names import worker_and_stamp, worker_of


@pytest.mark.parametrize(
    ("name", "worker"),
    [
        ("host_4711.1694128201545.pt.trace.json.gz", "host_4711"),
        ("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", "rank-0.Apr_03_18_51_38"),
        ("worker0.pt.trace.json", "worker0"),
        ("a.1.2.pt.trace.json", "a.1"),
        ("TP-0.trace.json.gz", "TP-0"),
        ("rank3_trace.json", "rank3_trace"),
        ("kineto.chrome", "kineto.chrome"),
    ],
)
def test_a_worker_is_the_name_before_the_number(name, worker) -> None:
    """A worker's name is the part of the file name before the last number between dots.

    If there is no number between dots, the worker's name is the part before the suffix.
    """
    assert worker_of(f"log/{name}") == worker


def test_the_number_tells_recordings_apart() -> None:
    """A recording's number is the last number between dots in the file name, or None if there is no such number."""
    assert worker_and_stamp("rank0.Apr.1102.pt.trace.json") == ("rank0.Apr", 1102)
    assert worker_and_stamp("rank0.json.gz") == ("rank0", None)
