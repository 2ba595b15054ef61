"""The selectors at the top of every page: run, ranks, steps and devices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import dash_mantine_components as dmc
import polars as pl
from dash import ALL, Dash, Input, Output, State, html
from dash.development.base_component import Component

from holotrace.drawing.names import printable
from holotrace.enrich.steps.steps import steps
from holotrace.errors import HolotraceError, NotATraceError, UnreadableTraceError
from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.store.trace import RankTrace
from holotrace.web.parts.browser_functions import client
from holotrace.web.parts.slow_parts import part
from holotrace.web.session.runs import SPAN_MARK, spans_of
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Scope, Session

CHOICES_PART = "choices"

MOST_LISTED = 2_048
"""Maximum number of choices in a selector; other values can be written into the page's address."""


@dataclass(frozen=True)
class Choices:
    """The ranks of a run, and the steps and devices of one of the selected ranks."""

    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    devices: tuple[int, ...]


def selectors(session: Session, selection: Selection) -> list[Component]:
    """Return the selectors; those for ranks, steps and devices appear after a file of the run has been read."""
    runs = [{"value": run.id, "label": printable(run.name)} for run in session.runs]
    run = (selection.run or "").partition(SPAN_MARK)[0]
    chosen = dmc.Select(
        id=_id("run"),
        data=runs,
        value=run,
        placeholder="no run",
        searchable=True,
        allowDeselect=False,
        size="xs",
        w=240,
        **{"aria-label": "run", "data-served": f"run={run}"},
    )
    return [chosen, part(CHOICES_PART, min_height=0)] if runs else [chosen]


def choices_part(session: Session, selection: Selection) -> Component:
    """Return the selectors for ranks, steps and devices; empty if the run cannot be opened (the page says why)."""
    try:
        known = choices(session, selection.scope)
    except HolotraceError:
        return html.Div()
    run, _, span = selection.scope.run.partition(SPAN_MARK)
    spans = _spans(tuple(spans_of(session.run(run))), span)
    options = (
        ("ranks", known.ranks, selection.ranks),
        ("steps", known.steps, selection.steps),
        ("devices", known.devices, selection.devices),
    )
    numbers = [_numbers(name, values, chosen) for name, values, chosen in options if len(values) > 1 or chosen]
    return dmc.Group([*spans, *numbers], gap="xs", wrap="nowrap")


def choices(session: Session, scope: Scope) -> Choices:
    """Return the ranks, steps and devices to choose from, read from one file of the run."""
    whole = session.whole(scope.run)
    ranks = tuple(whole.ranks)
    first = next((rank for rank in (*(scope.ranks or ()), *ranks) if rank in whole.ranks), None)
    if first is None:
        return Choices((), (), ())
    try:
        return session.remember(Scope(scope.run, (first,)), CHOICES_PART, lambda: _choices(ranks, whole.ranks[first]))
    except (NotATraceError, UnreadableTraceError):
        return Choices(ranks, (), ())


def register_selectors(app: Dash) -> None:
    """Write each change of a selector into the address; this loads the page again."""
    app.clientside_callback(
        client("select"),
        Output("url", "search"),
        Input(_id(ALL), "value"),
        State(_id(ALL), "id"),
        State("url", "search"),
    )


def _choices(ranks: tuple[int, ...], rank_trace: RankTrace) -> Choices:
    device = rank_trace.events_of(DEVICE_WORK_KINDS, ["device"]).get_column("device")
    return Choices(ranks, _distinct(steps(rank_trace).get_column("step")), _distinct(device))


def _distinct(numbers: pl.Series) -> tuple[int, ...]:
    return tuple(numbers.drop_nulls().unique().sort().to_list())


def _spans(known: tuple[int, ...], chosen: str) -> list[Component]:
    """Return the selector for the span of a run; by default, pages show the newest recording of each rank."""
    select = dmc.Select(
        id=_id("span"),
        data=[{"value": str(span), "label": f"span {span} of {len(known)}"} for span in known],
        value=chosen or None,
        placeholder="newest span",
        clearable=True,
        size="xs",
        w=140,
        **{"aria-label": "span"},
    )
    return [select] if len(known) > 1 else []


def _numbers(name: str, known: Iterable[int], chosen: tuple[int, ...] | None) -> Component:
    listed = sorted({*known, *(chosen or ())})[:MOST_LISTED]
    return dmc.MultiSelect(
        id=_id(name),
        data=[str(number) for number in listed],
        value=[str(number) for number in chosen or ()],
        placeholder=f"all {len(listed):,} {name}" if not chosen else name,
        searchable=True,
        clearable=True,
        hidePickedOptions=True,
        maxDropdownHeight=320,
        size="xs",
        w=170,
        **{"aria-label": name},
    )


def _id(name: object) -> dict[str, object]:
    return {"type": "choice", "name": name}
