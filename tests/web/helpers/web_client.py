"""A client that requests pages and calls callbacks like a browser."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from holotrace.web.session.session import Session
from holotrace.web.shell.app import create_app

DEADLINE_S = 60
POLL_S = 0.02


class WebClient:
    """Requests the pages of the runs at the given paths."""

    def __init__(self, *paths: str | Path, cache: bool = False) -> None:
        self.session = Session(map(str, paths), cache=cache)
        self.http = create_app(self.session).server.test_client()
        self._known = json.loads(self.get("/_dash-dependencies").data)

    def get(self, path: str) -> Any:
        """Request an address."""
        return self.http.get(path, buffered=True)

    def page(self, query: str) -> dict[str, Any]:
        """Request a page of the app; return its navigation, its selectors and its content."""
        answer = self._ask("page.children", None, {"url.search": query})
        return {name: answer[name]["children"] for name in ("nav", "selectors", "page")}

    def part(self, query: str, name: str, scheme: str = "light") -> Any:
        """Wait for a part of a page; return its content."""
        begin = time.monotonic()
        while time.monotonic() - begin < DEADLINE_S:
            states = {"url.search": query, "theme.forceColorScheme": scheme}
            answer = self._ask('"part"', {"name": name}, {"n_intervals": 0, **states})
            if answer[_id_text({"name": name, "type": "poll"})]["disabled"]:
                return answer.get(_id_text({"name": name, "type": "part"}), {}).get("children")
            time.sleep(POLL_S)  # without a pause, polling would slow down the server's computation
        message = f"{name} was not ready in {DEADLINE_S} s"
        raise TimeoutError(message)

    def rows(self, query: str, name: str, request: object, **more: str) -> dict[str, Any]:
        """Return the response to a grid's request for rows."""
        wild = {"name": name, "by": more.get("by", ""), "top": more.get("top", "")}
        values = {"getRowsRequest": request, "value": more.get("search", ""), "url.search": query}
        answer = self._ask("getRowsResponse", wild, values)
        return next(iter(answer.values()))["getRowsResponse"] if answer else {}

    def _ask(self, output: str, wild: dict[str, str] | None, values: dict[str, Any]) -> dict[str, Any]:
        known = next(
            callback for callback in self._known if output in callback["output"] and not callback["clientside_function"]
        )
        outputs = [_target(text, wild) for text in known["output"].strip(".").split("...")]
        body = {
            "output": known["output"],
            "outputs": outputs if known["output"].startswith("..") else outputs[0],
            "inputs": [_value(value, wild, values) for value in known["inputs"]],
            "state": [_value(value, wild, values) for value in known["state"]],
            "changedPropIds": [],
        }
        answer = self.http.post("/_dash-update-component", json=body)
        assert answer.status_code in (200, 204), answer.data
        return json.loads(answer.data)["response"] if answer.status_code == 200 else {}


def texts(component: Any) -> list[str]:
    """Return all texts in a component, in reading order; non-breaking spaces become plain ones."""
    if isinstance(component, str):
        return [component.replace("\u00a0", " ")]
    if isinstance(component, list):
        return [text for child in component for text in texts(child)]
    if not isinstance(component, dict):
        return []
    props = component.get("props", {})
    return [text for key in ("title", "label", "children") for text in texts(props.get(key))]


def components(component: Any, kind: str) -> list[dict[str, Any]]:
    """Return the properties of all components of one kind."""
    if isinstance(component, list):
        return [nested for child in component for nested in components(child, kind)]
    if not isinstance(component, dict):
        return []
    own = [component["props"]] if component.get("type") == kind else []
    return own + components(component.get("props", {}).get("children"), kind)


def page_links(shown: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the links of the navigation, in order."""
    return [
        link for nav in components(shown["nav"], "Navigation") for part in nav["sections"] for link in part["links"]
    ]


def _target(text: str, wild: dict[str, str] | None) -> dict[str, Any]:
    name, _, prop = text.rpartition(".")
    return {"id": _filled(name, wild), "property": prop}


def _value(known: dict[str, str], wild: dict[str, str] | None, values: dict[str, Any]) -> dict[str, Any]:
    whole, prop = f"{known['id']}.{known['property']}", known["property"]
    return {"id": _filled(known["id"], wild), "property": prop, "value": values.get(whole, values.get(prop))}


def _filled(name: str, wild: dict[str, str] | None) -> Any:
    """Replace `MATCH` in a component's id with values."""
    if not name.startswith("{"):
        return name
    return {key: (wild or {})[key] if value == ["MATCH"] else value for key, value in json.loads(name).items()}


def _id_text(name: dict[str, str]) -> str:
    return json.dumps(name, sort_keys=True, separators=(",", ":"))
