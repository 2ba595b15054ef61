"""If a server has several runs, its first page lists them with the main facts of each run."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("dash", reason="the extra web is not installed")
pytest.importorskip("dash_ag_grid", reason="the extra web is not installed")
pytest.importorskip("dash_mantine_components", reason="the extra web is not installed")

from dash import html

from holotrace.web.pages import runs
from jobs import cpu_job, gpu_job
from web_client import WebClient, components, page_links, texts


@pytest.fixture
def client(tmp_path) -> WebClient:
    """Serve two runs; the older one ran on the CPU."""
    gpu_job().write(tmp_path / "gpu")
    for path in cpu_job().write(tmp_path / "the cpu"):
        os.utime(path, (86_400, 86_400))
    return WebClient(tmp_path)


def test_several_runs_are_listed_first_the_newest_on_top(client) -> None:
    """An address without a page shows a list of both runs with links, tick boxes and dates."""
    shown = client.page("")
    assert texts(shown["page"])[0] == "Runs"
    gpu, cpu = (run.id for run in client.session.runs)
    links = {link["href"]: link["children"] for link in components(shown["page"], "Link")}
    assert list(links.items())[1:] == [(f"?view=overview&run={gpu}", "gpu"), (f"?view=overview&run={cpu}", "the cpu")]
    assert [tick["id"]["name"] for tick in components(shown["page"], "Checkbox")] == [gpu, cpu]
    assert "1970-01-02 00:00 UTC" in texts(shown["page"])
    assert [link["title"] for link in page_links(shown)] == ["Runs"]


def test_each_run_has_its_numbers_and_verdict(client) -> None:
    """For the CPU job, the list shows a step of 20 µs, no GPU work, two ranks, and the verdict of the diagnosis."""
    _, cpu = (run.id for run in client.session.runs)
    said = texts(client.part("", f"run.{cpu}"))
    assert said[:4] == ["20 µs", "no GPU work", "2 ranks", "GPU not recorded"]
    assert said[4].startswith("A step takes 20 µs")


def test_a_large_run_is_not_read_unasked(client, monkeypatch) -> None:
    """A run above the size limit is listed as not read, because large runs are not read for the list."""
    monkeypatch.setattr(runs, "MOST_BYTES_READ", 1)
    _, cpu = (run.id for run in client.session.runs)
    assert texts(client.part("", f"run.{cpu}"))[0].startswith("Not read yet, because it is large")


def test_small_runs_are_summarised_first(client, monkeypatch) -> None:
    """The large run is the newest, so it is listed first, but the other runs are summarised before it."""
    named = {run.name: run for run in client.session.runs}
    sizes = {named["gpu"].id: 2_000, named["the cpu"].id: 1_000}
    monkeypatch.setattr(type(named["gpu"]), "file_bytes", property(lambda run: sizes[run.id]))
    summarised: list[str] = []

    def note(run_id: str, *_: object) -> html.Div:
        summarised.append(run_id)
        return html.Div()

    monkeypatch.setattr(runs, "_summary", note)
    client.page("")
    client.part("", f"run.{named['gpu'].id}")
    assert summarised == [named["the cpu"].id, named["gpu"].id]


def test_one_run_has_no_list_in_front(tmp_path) -> None:
    """A server with one run begins with its overview, which links to the list."""
    gpu_job().write(tmp_path / "gpu")
    shown = WebClient(tmp_path).page("")
    assert texts(shown["page"])[0] == "Overview"
    assert page_links(shown)[0]["title"] == "Runs"
