"""Check the bodies of callback requests before Dash receives them; Dash trusts every body as if its own pages had sent it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dash import Dash
from flask import Flask, abort, request

_CALLBACKS = "/_dash-update-component"
_ANY_OF_A_KIND = ["MATCH"]
"""In the pattern of a component's id, this value matches any string."""

_VALUES: dict[str, tuple[type, ...]] = {
    "search": (str,),
    "value": (str,),
    "forceColorScheme": (str,),
    "n_intervals": (int,),
    "getRowsRequest": (dict,),
}
"""The types of the values that callbacks receive; each value may also be null."""


def register_body_check(app: Dash, flask: Flask) -> None:
    """Answer with status 400 if the body of a callback request is not a valid call of a callback."""

    @flask.before_request
    def expect_a_call() -> None:
        if request.path == _CALLBACKS and request.method == "POST" and not is_callback_call(_body(), app.callback_map):
            abort(400, "the body calls no callback of this page")


def is_callback_call(body: object, callbacks: Mapping[str, Any]) -> bool:
    """Return whether a body calls a callback of the server, and contains all values that the callback expects."""
    if not isinstance(body, dict) or not isinstance(body.get("output"), str):
        return False
    known = callbacks.get(body["output"], {})
    if "callback" not in known:
        return False
    changed = body.get("changedPropIds", [])
    return (
        isinstance(changed, list)
        and all(isinstance(name, str) for name in changed)
        and _fit(body.get("inputs"), known["inputs"])
        and _fit(body.get("state", []), known["state"])
        and _are_outputs(body.get("outputs"), body["output"])
    )


def _body() -> object:
    try:
        return request.get_json()
    except RecursionError:
        abort(400, "the body is nested too deeply")


def _fit(sent: object, wanted: list[dict[str, str]]) -> bool:
    """Return whether a request sends one valid value for each property that a callback expects, in that order."""
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
    """Return whether the sent outputs match `output`, such as `..nav.children...page.children..` or `url.search`."""
    names = output.strip(".").split("...")
    listed = sent if output.startswith("..") else [sent]
    wanted = [dict(zip(("id", "property"), name.rsplit(".", 1), strict=True)) for name in names]
    return isinstance(listed, list) and len(listed) == len(wanted) and all(map(_is_output, listed, wanted))


def _is_output(sent: object, wanted: Mapping[str, str]) -> bool:
    return (
        isinstance(sent, dict) and sent.get("property") == wanted["property"] and _is_id(sent.get("id"), wanted["id"])
    )


def _is_id(sent: object, wanted: str) -> bool:
    """Return whether an id is the wanted id or, if that is a pattern, matches it.

    An id that matches a pattern must have only strings as values.
    """
    if not wanted.startswith("{"):
        return sent == wanted
    pattern = json.loads(wanted)
    if not isinstance(sent, dict) or sent.keys() != pattern.keys():
        return False
    return all(isinstance(value, str) and (pattern[key] in (value, _ANY_OF_A_KIND)) for key, value in sent.items())
