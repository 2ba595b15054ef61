"""A finding on the overview expands to its ranks, events and rule."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("dash", reason="the extra web is not installed")
pytest.importorskip("dash_mantine_components", reason="the extra web is not installed")

import holotrace
from holotrace.testing.synthetic import write_job
from holotrace.web.pages.found import MOST_RANKS, found_block
from holotrace.web.session.selection import Selection
from reference_data import IN_THE_REPOSITORY
from web_client import WebClient, texts


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> WebClient:
    """Serve a job in which rank 3 sleeps."""
    folder = tmp_path_factory.mktemp("sleeping")
    shutil.copytree(IN_THE_REPOSITORY / "traces" / "ddp_gloo_4rank", folder / "ddp_gloo_4rank")
    return WebClient(folder)


def details_of(part: object) -> list[dict[str, object]]:
    """Return the properties of all findings in a part of a page."""
    if isinstance(part, list):
        return [found for child in part for found in details_of(child)]
    if not isinstance(part, dict):
        return []
    known = part["props"]
    own = [known] if "data-finding" in known else []
    return own + details_of(known.get("children"))


def links_of(part: object) -> dict[str, str]:
    """Return {text: address} of all links in a part of a page."""
    if isinstance(part, list):
        return {text: href for child in part for text, href in links_of(child).items()}
    if not isinstance(part, dict):
        return {}
    known = part["props"]
    own = {str(known["children"]): known["href"]} if "href" in known else {}
    return own | links_of(known.get("children"))


@pytest.mark.slow
def test_the_finding_in_the_address_is_open(client) -> None:
    """With `finding=late_rank`, only this finding is open; without it, all are closed."""
    run = client.session.runs[0].id
    opened = details_of(client.part(f"?view=overview&run={run}&finding=late_rank", "advice"))
    closed = details_of(client.part(f"?view=overview&run={run}", "advice"))

    assert [known["data-finding"] for known in opened if known["open"]] == ["late_rank"]
    assert not any(known["open"] for known in closed)


def test_a_finding_leads_to_its_ranks_its_first_event_and_its_rule(client) -> None:
    """The finding shows its rule and links to rank 3 on the timeline and to the first time at which rank 3 is late."""
    run = client.session.runs[0].id
    part = client.part(f"?view=overview&run={run}", "advice")
    links = links_of(next(known for known in details_of(part) if known["data-finding"] == "late_rank")["children"])

    assert links["rank 3"] == f"?view=timeline&run={run}&ranks=3"
    assert "&ranks=0-3&at=3:" in links["show the first event on the timeline"]
    text = " ".join(texts(part))
    assert "<built-in function sleep> in ddp.py(35): main" in text
    assert "late_rank looks for a rank that causes much of the waiting" in text


@pytest.mark.slow
def test_many_ranks_are_counted(tmp_path) -> None:
    """A finding on 12 ranks lists the ranks with the largest costs and counts the other ranks."""
    write_job(tmp_path, ranks=12, steps=3, layers=1)
    known = holotrace.diagnosis(holotrace.open_trace(tmp_path, cache=False))
    block = str(found_block(known, Selection(run="a")).to_plotly_json())

    assert f"and {12 - MOST_RANKS} more ranks; per step" in block
