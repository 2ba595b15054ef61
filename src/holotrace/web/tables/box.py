"""A table on a page: its grid, and the controls around it."""

from __future__ import annotations

from typing import Any

import dash_ag_grid as dag
import dash_mantine_components as dmc
import polars as pl
from dash import dcc, html
from dash.development.base_component import Component

from holotrace.web.parts.later import Later
from holotrace.web.parts.page import Table
from holotrace.web.session.selection import Selection
from holotrace.web.tables.rows import Shape, column_definitions, group_columns, shaped

TOPS = ("10", "20", "50", "100")
ROW_PX, MOST_ROWS_SHOWN = 34, 14
CACHE_BLOCK = 100


def table_box(name: str, table: Table, selection: Selection) -> Component:
    """Return a table with controls for search, grouping, number of rows and downloads.

    The address determines the initial state of the controls.
    """
    if table.frame.is_empty():
        return dmc.Group([dmc.Text(table.caption, fw=600), dmc.Text("none", c="dimmed")], gap="xs", mt="sm")
    by, top = selection.option(f"by.{name}"), selection.option(f"top.{name}")
    query = selection.with_options(theme="").query()
    groups = [{"value": column["field"], "label": column["headerName"]} for column in _groups(table)]
    controls = [
        html.Div(
            dcc.Link("in the timeline", href="?view=timeline", id=_id("goto", name)), id=_id("go", name), hidden=True
        ),
        dmc.TextInput(
            id=_id("search", name),
            value=selection.option(f"q.{name}"),
            placeholder="search",
            debounce=250,
            size="xs",
            className="holotrace-search",
            **{"aria-label": f"search {table.caption}"},
        ),
        dmc.Select(
            id=_id("by", name),
            value=by if by in {group["value"] for group in groups} else None,
            data=groups,
            placeholder="group by",
            clearable=True,
            size="xs",
            w=170,
            **{"aria-label": f"group {table.caption}"},
            style={} if groups else {"display": "none"},
        ),
        dmc.Select(
            id=_id("top", name),
            value=top if top in TOPS else None,
            data=[{"value": number, "label": f"top {number}"} for number in TOPS],
            placeholder="all rows",
            clearable=True,
            size="xs",
            w=110,
            **{"aria-label": f"number of rows of {table.caption}"},
            style={} if len(table.frame) > int(TOPS[0]) else {"display": "none"},
        ),
        *(
            html.A(
                label,
                id=_id(form, name),
                href=f"download/{form}/{name}{query}",
                download="",
                className="holotrace-download",
            )
            for form, label in (("csv", "CSV"), ("parquet", "Parquet"))
        ),
    ]
    caption = dmc.Group(
        [dmc.Title(table.caption, order=2, size="h5", flex=1, className="holotrace-caption-text"), *controls],
        gap="xs",
        className="holotrace-caption",
    )
    box = html.Div(grid(name, table, by, top), id=_id("box", name))
    return html.Section(Later([caption, box], after="tables", height=_height(table.frame)), className="holotrace-table")


def grid(name: str, table: Table, by: str, top: str) -> Component:
    """Return the grid of a table, grouped and limited to the top rows; it requests rows when they come into view."""
    shown = shaped(table, shape_of(by, top)).frame
    return dag.AgGrid(
        id={"type": "grid", "name": name, "by": by, "top": top},
        columnDefs=column_definitions(shown),
        defaultColDef={"sortable": True, "resizable": True, "wrapHeaderText": True, "autoHeaderHeight": True},
        rowModelType="infinite",
        dashGridOptions={
            "cacheBlockSize": CACHE_BLOCK,
            "maxBlocksInCache": 20,
            "maxConcurrentDatasourceRequests": 1,  # of two simultaneous requests, the grid would drop one
            "rowHeight": ROW_PX,
            "tooltipShowDelay": 300,
            "enableCellTextSelection": True,
            "ensureDomOrder": True,
            "rowSelection": {"mode": "singleRow", "checkboxes": False, "enableClickSelection": True},
        },
        className="ag-theme-quartz holotrace-grid",
        style={"height": f"{_height(shown)}px"},
    )


def _height(rows: pl.DataFrame) -> int:
    return max(110, ROW_PX * (min(len(rows), MOST_ROWS_SHOWN) + 1) + 40)


def shape_of(by: object, top: object) -> Shape:
    """Read the grouping and the number of rows of a table from values sent by the page."""
    return Shape(by if isinstance(by, str) else "", int(top) if top in TOPS else 0)


def _groups(table: Table) -> list[dict[str, Any]]:
    wanted = set(group_columns(table.frame))
    return [column for column in column_definitions(table.frame) if column["field"] in wanted]


def _id(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "name": name}
