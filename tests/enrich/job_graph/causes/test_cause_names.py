"""The Python functions of a thread show what it does, such as waiting in PyTorch or loading data from a data set."""

from __future__ import annotations

import pytest

from holotrace.enrich.job_graph.causes.cause_names import host_ranges
from holotrace.testing.builder import TraceBuilder

WAIT = "<built-in method wait of pybind11_builtins.pybind11_detail_function_record_v1 object at 0x7f25>"
LOCK = "<built-in method acquire of _thread.lock object at 0x7f25>"
LOADER = "torch/utils/data/dataloader.py(720): __next__"
TOKENISE = "data.py(9): tokenise"


def causes_of(*functions: str) -> list[tuple[str, str]]:
    """Return (cause, name of the cause) for each of these Python functions, each of which calls the next one."""
    trace = TraceBuilder().operator("aten::add", start_us=900, duration_us=1)
    for depth, name in enumerate(functions):
        trace.python(name, start_us=10 + depth, duration_us=100 - 2 * depth)
    known = host_ranges(trace.build().ranks[0])
    causes = known.causes[known.cause_row[: len(functions)]]
    return causes.select("cause", "name").rows()


@pytest.mark.parametrize(("name", "cause"), [(WAIT, "host_idle"), (LOCK, "python")])
def test_a_wait_of_pytorch_is_no_python_code(name: str, cause: str) -> None:
    """A thread in PyTorch's wait function is idle; waiting for a user's lock is attributed to the user's code."""
    assert causes_of("train.py(3): step", name)[1][0] == cause


def test_a_function_that_builds_a_batch_is_named_and_not_its_loader() -> None:
    """While the user's `tokenise` runs, the cause is named after it, not after the data loader that calls it."""
    assert causes_of("train.py(3): step", LOADER, TOKENISE)[1:] == [
        ("data_loading", LOADER),
        ("data_loading", TOKENISE),
    ]


def test_a_function_that_asks_for_a_batch_is_not_the_loader() -> None:
    """The user's `step` calls the loader, which calls a function of PyTorch; the cause is named after the loader."""
    fetch = "torch/utils/data/_utils/fetch.py(48): fetch"

    assert causes_of("train.py(3): step", LOADER, fetch)[1:] == [("data_loading", LOADER), ("data_loading", LOADER)]
