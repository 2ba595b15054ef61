"""Which scripts a page loads, and when: the browser takes longer to read them than the server to answer.

Dash and the components of the shell come with every page, plotly.js with one that is going to have a figure. Everything
else follows when it is shown, tables after the figures: `assets/scripts.js` fetches it, from the addresses that this module
writes into the page.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from dash import Dash
from flask import Flask, Response, abort, request

from holotrace.drawing.plotly_js import TYPES, small_plotly_js
from holotrace.web.parts.page import Page
from holotrace.web.session.selection import FIRST_VIEW

KEPT_S = 31_536_000
"""How long a browser may keep a script: its address changes with its content."""

REGENERATOR_SHA256 = "7beda998b3fd277f3548e12b277bafc3037d243421f007032d38dffee412224c"
"""Of `assets/regenerator/runtime.js`: that of the npm package regenerator-runtime 0.14.1, unmodified, under the MIT licence."""

_STYLES = ("style.css", "timeline/style.css")
_SCRIPTS = ("regenerator/runtime.js", "scripts.js", "holotrace.js", "tensorboard.js")
_TABLES = "/dash_ag_grid/"
_NOT_AT_THE_START = (_TABLES, "/dash_table/", "/deps/polyfill@")
"""Of Dash's scripts: the tables; tables of another kind, which no page shows; and what browsers lacked ten years ago, of
which Dash itself uses only regenerator."""

_ASKED_AT_THE_START = ("_dash-layout", "_dash-dependencies")
_GRAPH = "_dash-component-suites/dash/dcc/async-graph.js"
_WHOLE_PLOTLY = "_dash-component-suites/plotly/package_data/plotly.min.js"
_SMALL_PLOTLY = "plotly.js"
_ADDRESS = re.compile(r'src="([^"]+)"')


class LeanDash(Dash):
    """Dash with only those scripts at the start that the page asked for needs."""

    def __init__(self, pages: Mapping[str, Page], **options: Any) -> None:  # noqa: ANN401 -- Dash's own
        """Take the pages by name, and the options of Dash."""
        super().__init__(**options, assets_ignore=".*")  # `interpolate_index` names them
        self._pages = pages

    def interpolate_index(self, **parts: str) -> str:  # type: ignore[override]  # Dash names what it gives
        """Return the HTML around the page that an address asks for."""
        page = self._pages.get(request.args.get("view", FIRST_VIEW)) or self._pages[FIRST_VIEW]
        tags = parts["scripts"].splitlines()
        now = [tag for tag in tags if not any(place in tag for place in _NOT_AT_THE_START)]
        ours = [f'<script src="{url}"></script>' for url in self._urls(*_SCRIPTS, *page.scripts)]
        own = {
            "css": "\n".join(self._head(page)),
            "favicon": f'<link rel="icon" type="image/svg+xml" href="{self._url(_asset("icon.svg"))}">',
            "scripts": "\n".join([_as_data(self._later(page, tags)), *ours, *now]),
        }
        return super().interpolate_index(**{**parts, **own})

    def _head(self, page: Page) -> Iterator[str]:
        """Yield what the browser fetches while it reads the scripts."""
        yield from (f'<link rel="stylesheet" href="{url}">' for url in self._urls(*_STYLES))
        for path in _ASKED_AT_THE_START:
            yield f'<link rel="preload" as="fetch" crossorigin href="{self._url(path)}">'
        if page.parts:
            yield f'<script async id="holotrace-plotly" src="{self._url(_plotly())}"></script>'
            yield f'<script async src="{self._url(_GRAPH)}"></script>'

    def _later(self, page: Page, tags: Iterable[str]) -> dict[str, Any]:
        """Return the scripts that may follow: those of figures and tables, and those of each page that has its own."""
        others = [each for each in self._pages.values() if each.scripts and each is not page]
        return {
            "plotly": [self._url(_plotly())],
            "wholePlotly": [self._url(_WHOLE_PLOTLY)],
            **({} if small_plotly_js() is None else {"plotlyTypes": sorted(TYPES)}),
            "tables": [url for tag in tags if _TABLES in tag for url in _ADDRESS.findall(tag)],
            "pages": {each.name: self._urls(*each.scripts) for each in others},
        }

    def _urls(self, *assets: str) -> list[str]:
        return [self._url(_asset(name)) for name in assets]

    def _url(self, path: str) -> str:
        return f"{self.config.requests_pathname_prefix}{path}"


def register_scripts(flask: Flask) -> None:
    """Serve the small plotly.js, and let browsers keep it and the assets: each has its fingerprint in its address."""
    flask.config["SEND_FILE_MAX_AGE_DEFAULT"] = KEPT_S
    flask.add_url_rule(f"/{_SMALL_PLOTLY}", "plotly", _serve_plotly)


def _serve_plotly() -> Response:
    small = small_plotly_js()
    if small is None:
        abort(404)
    return Response(small, mimetype="text/javascript", headers={"Cache-Control": f"max-age={KEPT_S}"})


def _plotly() -> str:
    """Return the address of the smallest plotly.js that the figures allow."""
    small = small_plotly_js()
    return _WHOLE_PLOTLY if small is None else f"{_SMALL_PLOTLY}?v={_fingerprint(small)}"


@cache
def _asset(name: str) -> str:
    return f"assets/{name}?v={_fingerprint(files('holotrace.web').joinpath('assets', name).read_bytes())}"


@cache
def _fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _as_data(value: object) -> str:
    return f'<script id="holotrace-scripts" type="application/json">{json.dumps(value)}</script>'
