"""What browsers send to Dash's callbacks, looked at before Dash does: it takes for granted that a page of its own asks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dash import Dash
from flask import Flask, abort, request

_CALLBACKS = "/_dash-update-component"
_ANY_OF_A_KIND = ["MATCH"]
"""What an id says in the place of a name that the page fills in."""

_VALUES: dict[str, tuple[type, ...]] = {
    "search": (str,),
    "value": (str,),
    "forceColorScheme": (str,),
    "n_intervals": (int,),
    "getRowsRequest": (dict,),
}
"""The types of what callbacks get; any may be null."""


def register_body_check(app: Dash, flask: Flask) -> None:
    """Answer 400 to what is no question of a callback."""

    @flask.before_request
    def expect_a_question() -> None:
        if request.path == _CALLBACKS and request.method == "POST" and not is_question(_body(), app.callback_map):
            abort(400, "this is no question of a page")


def is_question(body: object, callbacks: Mapping[str, Any]) -> bool:
    """Whether a body asks a callback of the server for its outputs, with all of its inputs and states."""
    if not isinstance(body, dict) or not isinstance(body.get("output"), str):
        return False
    known = callbacks.get(body["output"], {})
    if "callback" not in known:
        return False
    changed = body.get("changedPropIds", [])
    return (
        isinstance(changed, list)
        and all(isinstance(each, str) for each in changed)
        and _fit(body.get("inputs"), known["inputs"])
        and _fit(body.get("state", []), known["state"])
        and _are_outputs(body.get("outputs"), body["output"])
    )


def _body() -> object:
    try:
        return request.get_json()
    except RecursionError:
        abort(400, "this is nested too deeply")


def _fit(sent: object, wanted: list[dict[str, str]]) -> bool:
    """Whether these are the values that a callback wants, in their order."""
    return isinstance(sent, list) and len(sent) == len(wanted) and all(map(_fits, sent, wanted))


def _fits(sent: object, wanted: Mapping[str, str]) -> bool:
    if not isinstance(sent, dict) or sent.get("property") != wanted["property"]:
        return False
    value = sent.get("value")
    is_expected = value is None or (
        isinstance(value, _VALUES.get(wanted["property"], ())) and not isinstance(value, bool)
    )
    return is_expected and _is_id(sent.get("id"), wanted["id"])


def _are_outputs(sent: object, output: str) -> bool:
    """Whether these are the outputs that `output` names: `..nav.children...page.children..` or `url.search`."""
    names = output.strip(".").split("...")
    listed = sent if output.startswith("..") else [sent]
    wanted = [dict(zip(("id", "property"), name.rsplit(".", 1), strict=True)) for name in names]
    return isinstance(listed, list) and len(listed) == len(wanted) and all(map(_is_output, listed, wanted))


def _is_output(sent: object, wanted: Mapping[str, str]) -> bool:
    return (
        isinstance(sent, dict) and sent.get("property") == wanted["property"] and _is_id(sent.get("id"), wanted["id"])
    )


def _is_id(sent: object, wanted: str) -> bool:
    """Whether an id is the one wanted, or one of the kind wanted, with names that are texts."""
    if not wanted.startswith("{"):
        return sent == wanted
    pattern = json.loads(wanted)
    if not isinstance(sent, dict) or sent.keys() != pattern.keys():
        return False
    return all(isinstance(value, str) and (pattern[key] in (value, _ANY_OF_A_KIND)) for key, value in sent.items())
