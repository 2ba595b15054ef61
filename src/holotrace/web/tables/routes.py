"""Answers the requests of tables for rows, groupings and downloads."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from dash import ALL, MATCH, Dash, Input, Output, State, ctx
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate
from flask import Flask, Response, abort, request

from holotrace.errors import HolotraceError
from holotrace.export.csv_text import write_csv
from holotrace.web.parts.browser_functions import client
from holotrace.web.parts.page import Page, Table
from holotrace.web.parts.slow_parts import with_run
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Session
from holotrace.web.tables.box import grid, shape_of
from holotrace.web.tables.rows import Request, Rows, Shape, shaped

_OF_A_TABLE = ("q.", "by.", "top.", "theme")
_GRID = {"type": "grid", "name": MATCH, "by": MATCH, "top": MATCH}
_MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


def register_tables(app: Dash, flask: Flask, session: Session, pages: Mapping[str, Page]) -> None:
    """Send tables to the browser: rows when a grid requests them, and complete tables as downloads."""

    @app.callback(
        Output(_GRID, "getRowsResponse"),
        Input(_GRID, "getRowsRequest"),
        State(_id("search"), "value"),
        State("url", "search"),
        prevent_initial_call=True,
    )
    def show_rows(raw: object, search: object, query: str | None) -> dict[str, Any]:
        grid_id = ctx.outputs_list["id"]
        rows = rows_of(session, pages, query, str(grid_id["name"]), shape_of(grid_id["by"], grid_id["top"]))
        if raw is None or rows is None:
            raise PreventUpdate
        texts, count = rows.answer(Request.from_grid(raw, search))
        return {"rowData": texts, "rowCount": count}

    @app.callback(
        Output(_id("box"), "children"),
        Input(_id("by"), "value"),
        Input(_id("top"), "value"),
        State("url", "search"),
        prevent_initial_call=True,
    )
    def show_shape(by: str | None, top: str | None, query: str | None) -> Component:
        name = str(ctx.outputs_list["id"]["name"])
        whole = rows_of(session, pages, query, name, Shape())
        if whole is None:
            raise PreventUpdate
        return grid(name, whole.table, by or "", top or "")

    app.clientside_callback(
        client("table"),
        Output(_id("csv"), "href"),
        Output(_id("parquet"), "href"),
        Input(_id("search"), "value"),
        Input(_id("by"), "value"),
        Input(_id("top"), "value"),
        State(_id("box"), "id"),
        prevent_initial_call=True,
    )
    app.clientside_callback(
        client("timeline"),
        Output(_id("goto"), "href"),
        Output(_id("go"), "hidden"),
        Input({"type": "grid", "name": MATCH, "by": ALL, "top": ALL}, "selectedRows"),
        prevent_initial_call=True,
    )
    flask.add_url_rule(
        "/download/<form>/<path:name>", "download", lambda form, name: _download(session, pages, name, form)
    )


def rows_of(session: Session, pages: Mapping[str, Page], query: str | None, name: str, shape: Shape) -> Rows | None:
    """Return a table of the requested page, grouped and limited to the top rows.

    None if there is no such table, or if it cannot be computed.
    """
    selection = with_run(Selection.from_query(query), session)
    page = pages.get(selection.view)
    if page is None or name not in page.tables or selection.run is None:
        return None
    own = tuple(pair for pair in selection.options if not pair[0].startswith(_OF_A_TABLE))
    key = ("rows", page.name, name, own, shape)
    try:
        return session.remember(selection.scope, key, lambda: _rows(page, name, session, selection, shape))
    except HolotraceError:  # the page shows the error
        return None


def _rows(page: Page, name: str, session: Session, selection: Selection, shape: Shape) -> Rows:
    table: Table = page.tables[name](session, selection)
    return Rows(shaped(table, shape))


def _download(session: Session, pages: Mapping[str, Page], name: str, form: str) -> Response:
    """Return the rows of a table as a file; times are in ns, sizes in bytes, and shares between 0 and 1."""
    query = request.query_string.decode(errors="replace")
    selection = Selection.from_query(query)
    shape = shape_of(selection.option(f"by.{name}"), selection.option(f"top.{name}"))
    rows = rows_of(session, pages, query, name, shape)
    if rows is None or form not in _MEDIA_TYPES:
        abort(404)
    frame, file = rows.chosen(selection.option(f"q.{name}")), io.BytesIO()
    if form == "csv":
        write_csv(frame, file)
    else:
        frame.write_parquet(file)
    disposition = f'attachment; filename="{name}.{form}"'
    return Response(file.getvalue(), mimetype=_MEDIA_TYPES[form], headers={"Content-Disposition": disposition})


def _id(kind: str) -> dict[str, object]:
    return {"type": kind, "name": MATCH}
