"""The first page: one sentence on the job, where its time goes, and what was noticed."""

from __future__ import annotations

import dash_mantine_components as dmc
import polars as pl
from dash import dcc, html
from dash.development.base_component import Component

from hta.catalogue import ANALYSES, analysis
from hta.errors import MissingDataError
from hta.figures.names import printable
from hta.overview import Overview, overview
from hta.web.components import definitions, findings, graph, python_block, table_box, title_block
from hta.web.page import Page, Table
from hta.web.parts import part
from hta.web.python_line import python_of
from hta.web.session import Session
from hta.web.state import Selection

QUESTION = "What matters in this job?"

_FIRST = "temporal_breakdown"
"""The analysis whose figure answers most; it is shown before the others are made."""

_IMPORTS = ("from hta.overview import overview",)
_DEVICES = {
    "rank": pl.Int32,
    "number": pl.Int64,
    "model": pl.String,
    "memory_bytes": pl.Int64,
    "compute_capability": pl.String,
    "multiprocessor_count": pl.Int64,
}
_CPU_TABLE, _DEVICE_TABLE = "overview.cpu_side", "overview.devices"


def _layout(session: Session, selection: Selection) -> Component:
    code = python_of("overview(trace)", session.run(selection.scope.run), selection.scope, imports=_IMPORTS)
    parts = [part("time", min_height=300), part("verdict"), part("devices")]
    return html.Article(
        [title_block("Overview", QUESTION), *parts, definitions(analysis(_FIRST).definitions), python_block(code)]
    )


def _time(session: Session, selection: Selection) -> Component:
    """Return the first figure; a job without device work says so in the verdict."""
    try:
        result = session.result(selection.scope, _FIRST)
    except MissingDataError:
        return html.Div()
    return graph(_FIRST, analysis(_FIRST).plot(result, theme=selection.option("theme", "light")))


def _verdict(session: Session, selection: Selection) -> Component:
    found = _overview(session, selection)
    return html.Div(
        [
            dmc.Alert(printable(found.verdict), title="Verdict", className="hta-verdict"),
            *findings(found.findings),
            *([table_box(_CPU_TABLE, _cpu_side(session, selection), {})] if len(found.cpu_side) else []),
            html.H3("What each page shows"),
            html.Ul([_link(each.name, found, selection) for each in ANALYSES], className="hta-links"),
        ]
    )


def _link(name: str, found: Overview, selection: Selection) -> Component:
    entry = analysis(name)
    link = dcc.Link(entry.title, href=selection.at(name).query())
    missing = found.missing.get(name)
    return html.Li([link, f": {entry.question}", *([html.Span(" not recorded", title=missing)] if missing else [])])


def _overview(session: Session, selection: Selection) -> Overview:
    return session.remembered(selection.scope, "overview", overview)


def _cpu_side(session: Session, selection: Selection) -> Table:
    return Table("The CPU side of each rank", _overview(session, selection).cpu_side, "mean_step_ns")


def _devices_part(session: Session, selection: Selection) -> Component:
    table = _devices(session, selection)
    return table_box(_DEVICE_TABLE, table, dict(selection.options)) if len(table.frame) else html.Div()


def _devices(session: Session, selection: Selection) -> Table:
    """Return the devices that each file describes; the same ones of one host stand once for each of its ranks."""
    ranks = session.trace(selection.scope).ranks
    rows = [_device(rank, each) for rank, trace in ranks.items() for each in trace.header.device_properties]
    frame = pl.DataFrame([row for row in rows if row is not None], schema=_DEVICES, orient="row")
    return Table("Devices that the ranks could see", frame, "memory_bytes")


def _device(rank: int, described: dict[str, object]) -> tuple[object, ...]:
    """Return a row of facts as far as the file tells them; its types are not to be relied on."""
    capability = ".".join(str(described[key]) for key in ("computeMajor", "computeMinor") if key in described)
    model = str(described.get("name", ""))
    whole = [_whole(described.get(key)) for key in ("id", "totalGlobalMem", "numSms")]
    return rank, whole[0], model, whole[1], capability, whole[2]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


OVERVIEW = Page(
    name="overview",
    title="Overview",
    question=QUESTION,
    section="",
    layout=_layout,
    parts={"time": _time, "verdict": _verdict, "devices": _devices_part},
    tables={_CPU_TABLE: _cpu_side, _DEVICE_TABLE: _devices},
)
