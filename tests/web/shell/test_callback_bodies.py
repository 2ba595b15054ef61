"""The server answers the callback requests of its pages, and refuses all other callback requests."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("dash", reason="the extra `web` is not installed")

from jobs import gpu_job
from web_client import WebClient

CALLBACK = "/_dash-update-component"
TABLE = "kernel_breakdown.1"
MUTATIONS = 400
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**70, 1.5, "", "x", "\ud800", "\x00", [], {}, [[]], {"a": 1}, ["MATCH"]),
    *("?view=\ud800&run=%ED%A0%80", "?run=~~&ranks=1-99999999", "?" + "a=b&" * 3_000, "?view=idle_time&steps=9"),
    {"startRow": "a", "endRow": [], "sortModel": {}},
)


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> WebClient:
    """Serve a small job."""
    folder = tmp_path_factory.mktemp("job")
    gpu_job().write(folder)
    return WebClient(folder)


@pytest.fixture(scope="module")
def questions(client) -> list[dict[str, Any]]:
    """Return the callback requests for a page, a part of a page, the rows of a table, and a grouped table."""
    asked: list[dict[str, Any]] = []
    send = client.http.post

    def keep(path: str, *, json: dict[str, Any]) -> Any:
        asked.append(copy.deepcopy(json))
        return send(path, json=json)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client.http, "post", keep)
        client.page("?view=overview")
        client.part("?view=kernel_breakdown", "kernel_breakdown")
        client.rows("?view=kernel_breakdown", TABLE, {"startRow": 0, "endRow": 10, "sortModel": []})
        client._ask('"MATCH"],"type":"box"}', {"name": TABLE}, {"url.search": "?view=kernel_breakdown"})
    return asked


def places(body: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a body."""
    children = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, value in children:
        yield (*here, key)
        yield from places(value, (*here, key))


def mutated(body: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return a copy of a body with one value replaced or removed."""
    body = copy.deepcopy(body)
    *way, last = chance.choice(list(places(body)))
    around: Any = body
    for key in way:
        around = around[key]
    if chance.random() < 0.7:
        around[last] = copy.deepcopy(chance.choice(VALUES))
    else:
        del around[last]
    return body


def test_no_body_causes_a_server_error(client, questions, caplog) -> None:
    """Randomly changed requests get a normal response or a 4xx status, and nothing is logged."""
    chance = random.Random(12)  # noqa: S311 -- the same bodies every time
    for _ in range(MUTATIONS):
        body = json.dumps(mutated(chance.choice(questions), chance))
        status = client.http.post(CALLBACK, data=body, content_type="application/json").status_code
        assert status < 500, body
        assert not caplog.records, body


def test_valid_requests_are_answered(client, questions) -> None:
    """The requests that a page really sends get status 200 or 204."""
    assert len(questions) >= 4
    for question in questions:
        assert client.http.post(CALLBACK, json=question).status_code in {200, 204}


@pytest.mark.parametrize(
    "output", ["url.search", "theme.forceColorScheme", "nowhere.children", "", "..", "....", "{.x"]
)
def test_unknown_callbacks_are_refused(client, output) -> None:
    """Requests for callbacks that run in the browser, do not exist, or have invalid names get 400."""
    body = {"output": output, "outputs": [], "inputs": [], "state": [], "changedPropIds": []}
    assert client.http.post(CALLBACK, json=body).status_code == 400


@pytest.mark.parametrize("content_type", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_a_form_cannot_call_callbacks(client, content_type, caplog) -> None:
    """A callback request with a content type other than JSON gets a 4xx status, and nothing is logged."""
    status = client.http.post(CALLBACK, data="{}", content_type=content_type).status_code
    assert 400 <= status < 500
    assert not caplog.records
