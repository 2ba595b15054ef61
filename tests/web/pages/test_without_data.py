"""The navigation dims exactly the pages without data."""

from __future__ import annotations

import polars as pl
import pytest

pytest.importorskip("dash", reason="the extra web is not installed")
pytest.importorskip("dash_mantine_components", reason="the extra web is not installed")

from holotrace.catalogue import analysis
from holotrace.errors import MissingDataError
from holotrace.testing.builder import TraceBuilder
from holotrace.web.pages.without_data import MOST_RANKS, WITHOUT_DATA_PART, without_data
from jobs import cpu_job, gpu_job
from web_client import WebClient

JOBS = {
    "GPU": gpu_job(),
    "CPU": cpu_job(),
    "one rank": TraceBuilder().kernel("gemm", start_us=0, duration_us=5),
    "copies": TraceBuilder().copy("Memcpy HtoD", start_us=0, duration_us=5),
}
WITH_SIGNS = {
    "compiled_regions": (
        "Torch-Compiled Region: 0/0",
        "TorchDynamo Cache Lookup",
        "_compile.compile_inner (dynamo_timed)",
        "triton_poi_fused_add_0",
    ),
    "inference": ("step[DECODE bs=32]",),
}


@pytest.mark.parametrize("name", JOBS)
def test_dimmed_pages_have_no_data(name) -> None:
    """If the page of an analysis is dimmed, the analysis raises MissingDataError or has only empty tables."""
    trace = JOBS[name].build()
    dimmed = without_data(trace)
    assert "memory_timeline" in dimmed
    assert ("idle_time" in dimmed) == (name == "CPU")
    assert set(WITH_SIGNS) <= set(dimmed)
    for question in dimmed:
        try:
            result = analysis(question).compute(trace)
        except MissingDataError:
            continue
        assert not any(len(table) for table in vars(result).values() if isinstance(table, pl.DataFrame)), question


@pytest.mark.parametrize(("page", "name"), [(page, name) for page, names in WITH_SIGNS.items() for name in names])
def test_pages_of_named_events_are_not_dimmed(page, name) -> None:
    """A page has data if one annotation or operator on any rank has a matching name."""
    two_ranks = gpu_job().rank(1)
    (two_ranks.annotation if page == "inference" else two_ranks.operator)(name, start_us=0, duration_us=5)
    assert page not in without_data(two_ranks.build())


def test_the_navigation_knows_the_pages_without_data(tmp_path) -> None:
    """The navigation receives the names of pages without data, or no names if there are more than MOST_RANKS ranks."""
    cpu_job().write(tmp_path)
    client = WebClient(tmp_path)
    part = client.part(f"?view=overview&run={client.session.runs[0].id}", WITHOUT_DATA_PART)
    assert "idle_time" in part["props"]["data-pages"].split()
    many = TraceBuilder()
    for rank in range(MOST_RANKS + 1):
        many.rank(rank).kernel("gemm", start_us=0, duration_us=5)
    assert without_data(many.build()) == ()
