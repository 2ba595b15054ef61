"""Decide which scripts a page loads, and when.

The choice matters because a browser takes longer to load the scripts than the server takes to compute the page.

Every page loads Dash and the components of the shell; pages with figures also load plotly.js. `assets/shell/later.js`
loads all other scripts when they are needed; it loads the table scripts after the figures. This module writes the
addresses of these scripts into the page.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import dash_ag_grid
from dash import Dash
from dash.fingerprint import build_fingerprint
from dash.resources import Scripts
from flask import Flask, Response, abort, request

from holotrace.drawing.plotly_js import TYPES, small_plotly_js
from holotrace.web.parts.page import Page
from holotrace.web.session.selection import FIRST_VIEW

KEPT_S = 31_536_000
"""Seconds for which a browser may cache a script; if the content of a script changes, its address changes too."""

ASSETS = Path(__file__).parent.parent / "assets"
_SHELL = "shell"
_STYLES = ("style.css", "timeline.css")
_START = "shell/start.js"
_IMPORT = re.compile(r'^(?:import|export|\}) .*?from "(\.[^"]+)";$', re.MULTILINE)

_REQUESTED_AT_THE_START = ("_dash-layout", "_dash-dependencies")
_SUITES = "_dash-component-suites"
_GRAPH = f"{_SUITES}/dash/dcc/async-graph.js"
_WHOLE_PLOTLY = f"{_SUITES}/plotly/package_data/plotly.min.js"
_SMALL_PLOTLY = "plotly.js"
_TABLES = "dash_ag_grid"
_TABLES_SCRIPT = "dash_ag_grid.min.js"


_INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
{%favicon%}
{%css%}
</head>
<body>
{%app_entry%}
{%config%}
{%scripts%}
{%renderer%}
</body>
</html>"""


class LeanDash(Dash):
    """A Dash application that at first loads only the scripts that the requested page needs."""

    def __init__(self, pages: Mapping[str, Page], view_of: Callable[[str], str], **options: Any) -> None:  # noqa: ANN401 -- as in Dash
        """Create the application; `view_of` maps a query string to a page's name, and `options` are those of `Dash`."""
        super().__init__(
            **options,
            index_string=_INDEX,
            assets_folder=str(ASSETS),
            assets_url_path=assets_path(),
            include_assets_files=False,  # `interpolate_index` adds the assets
        )
        self.scripts = _ScriptsWithoutTables(serve_locally=True, eager=False)
        # `assets/shell/start.js` starts the renderer after loading the modules that the renderer calls
        self.renderer = ""
        self._pages, self._view_of = pages, view_of

    def interpolate_index(self, **parts: str) -> str:  # type: ignore[override]  # Dash passes its parts by name
        """Return the HTML around the requested page."""
        page = self._pages.get(self._view_of(request.query_string.decode(errors="replace"))) or self._pages[FIRST_VIEW]
        own = {
            "title": f"{page.title} · {parts['title']}",
            "css": "\n".join(self._head(page)),
            "favicon": f'<link rel="icon" type="image/svg+xml" href="{self.get_asset_url("icon.svg")}">',
            "scripts": "\n".join(
                [
                    _as_data(self._later()),
                    f'<script type="module" src="{self.get_asset_url(_START)}"></script>',
                    parts["scripts"],
                ]
            ),
        }
        return super().interpolate_index(**{**parts, **own})

    def _head(self, page: Page) -> Iterator[str]:
        """Yield tags for files that the browser should load early, while it parses other scripts."""
        yield from (f'<link rel="stylesheet" href="{self.get_asset_url(name)}">' for name in _STYLES)
        for path in _REQUESTED_AT_THE_START:
            yield f'<link rel="preload" as="fetch" crossorigin href="{self._url(path)}">'
        for name in dict.fromkeys((*modules_in(_SHELL), *(imported_by(page.module) if page.module else ()))):
            yield f'<link rel="modulepreload" href="{self.get_asset_url(name)}">'
        if page.parts:
            yield f'<script async id="holotrace-plotly" src="{self._url(_plotly())}"></script>'
            yield f'<script async src="{self._url(_GRAPH)}"></script>'

    def _later(self) -> dict[str, Any]:
        """Return the scripts that may load later: for figures, for tables and for single pages."""
        return {
            "plotly": [self._url(_plotly())],
            "wholePlotly": [self._url(_WHOLE_PLOTLY)],
            **({} if small_plotly_js() is None else {"plotlyTypes": sorted(TYPES)}),
            "tables": [self._url(_tables())],
            "pages": {page.name: self.get_asset_url(page.module) for page in self._pages.values() if page.module},
        }

    def _url(self, path: str) -> str:
        return f"{self.config.requests_pathname_prefix}{path}"


class _ScriptsWithoutTables(Scripts):
    """Dash's scripts; they include the table scripts, but pages do not load these at first."""

    def get_all_scripts(self, dev_bundles: bool = False) -> list[Any]:  # noqa: FBT001, FBT002 -- as in Dash
        """Return the scripts of all components; mark table scripts as dynamic, so that Dash writes no tags for them."""
        return [
            {**script, "dynamic": script.get("dynamic", False) or script.get("namespace") == _TABLES}
            for script in super().get_all_scripts(dev_bundles)
        ]


@cache
def assets_path() -> str:
    """Return the path of the assets; all share one fingerprint, because modules import each other by relative paths."""
    files = sorted(path for path in ASSETS.rglob("*") if path.is_file())
    return f"assets/{_fingerprint(b'|'.join(path.name.encode() + path.read_bytes() for path in files))}"


def modules_in(folder: str) -> list[str]:
    """Return the modules below a folder of `assets`, with names such as `shell/start.js`."""
    return sorted(path.relative_to(ASSETS).as_posix() for path in (ASSETS / folder).rglob("*.js"))


@cache
def imported_by(module: str) -> tuple[str, ...]:
    """Return a module and all modules that it imports, directly or indirectly, except through a dynamic `import()`."""
    modules = [module]
    for name in modules:  # the loop extends this list
        paths = _IMPORT.findall((ASSETS / name).read_text(encoding="utf-8"))
        imported = (posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) for path in paths)
        modules += [other for other in imported if other not in modules]
    return tuple(modules)


def register_scripts(flask: Flask) -> None:
    """Serve the small plotly.js; browsers may cache it and the assets, because the addresses contain a fingerprint."""
    flask.config["SEND_FILE_MAX_AGE_DEFAULT"] = KEPT_S
    flask.add_url_rule(f"/{_SMALL_PLOTLY}", "plotly", _serve_plotly)


def _serve_plotly() -> Response:
    small = small_plotly_js()
    if small is None:
        abort(404)
    return Response(small, mimetype="text/javascript", headers={"Cache-Control": f"max-age={KEPT_S}"})


def _plotly() -> str:
    """Return the address of the smallest plotly.js that can draw the figures."""
    small = small_plotly_js()
    return _WHOLE_PLOTLY if small is None else f"{_SMALL_PLOTLY}?v={_fingerprint(small)}"


def _tables() -> str:
    return f"{_SUITES}/{_TABLES}/{build_fingerprint(_TABLES_SCRIPT, dash_ag_grid.__version__, 0)}"


@cache
def _fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _as_data(value: object) -> str:
    return f'<script id="holotrace-scripts" type="application/json">{json.dumps(value)}</script>'
