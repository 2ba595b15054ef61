"""The findings of the diagnosis as a list; a click on a finding shows its ranks, location and rule."""

from __future__ import annotations

from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from holotrace.analyses.diagnosis.compute import Diagnosis
from holotrace.analyses.diagnosis.finding_details import FindingDetails, finding_details, threshold_text
from holotrace.analyses.diagnosis.rule import JobRule, Rule
from holotrace.catalogue import ANALYSES
from holotrace.drawing.names import printable
from holotrace.units import counted, duration_text
from holotrace.web.parts.components import shown
from holotrace.web.parts.later import Later
from holotrace.web.parts.timeline_link import AtEvent, AtSpan, timeline_link
from holotrace.web.session.selection import Selection

FINDING = "finding"
"""The option in the address whose value is the unfolded finding; `assets/shell/findings.js` sets this option."""

MOST_RANKS = 8
"""Maximum number of ranks listed for a finding, the costliest first."""

MOST_RANKS_BESIDE = 4
"""Maximum number of ranks on the timeline to which a finding links. It shows the rank of the finding's first event, and
the other ranks with the highest costs."""

_PAGES = {f"docs/reference/analyses/{question.name}.md": question for question in ANALYSES}


def found_block(known: Diagnosis, selection: Selection) -> Component:
    """Return the findings, the costliest first."""
    return html.Ol([_found(details, selection) for details in finding_details(known)], className="holotrace-found")


def _found(details: FindingDetails, selection: Selection) -> Component:
    said = html.Summary([html.B(shown(f"{details.text}. ")), shown(details.row["advice"])])
    rows = [
        ("ranks", _ranks(details, selection)),
        *((what, printable(name)) for what, name in details.places),
        ("events", _events(details, selection)),
        *(
            (("also seen as", html.Ul([html.Li(shown(effect)) for effect in details.effects])),)
            if details.effects
            else ()
        ),
        ("how sure", details.basis),
        ("rule", _rule(details.rule, selection)),
    ]
    terms = [part for term, meaning in rows for part in (html.Dt(term), html.Dd(meaning))]
    is_open = selection.option(FINDING) == details.key
    key: dict[str, Any] = {"data-finding": details.key}
    return html.Li(html.Details([said, Later([html.Dl(terms)], after="figures")], open=is_open, **key))


def _ranks(details: FindingDetails, selection: Selection) -> list[Component | str]:
    """List the ranks of the finding, with the cost on each rank and a link to its timeline."""
    parts: list[Component | str] = []
    for rank, claimed_ns in details.ranks[:MOST_RANKS]:
        href = timeline_link(selection, ranks=(rank,))
        parts += [dcc.Link(f"rank {rank}", href=href), shown(f" {duration_text(claimed_ns)}, ")]
    more = len(details.ranks) - MOST_RANKS
    parts.append(f"and {counted(more, 'more rank')}; per step" if more > 0 else "per step")
    return parts


def _events(details: FindingDetails, selection: Selection) -> list[Component | str]:
    """Return the number of events of the finding, with a link to the first event on the timeline."""
    row = details.row
    events = f"{row['event_count']:,} × on {counted(row['rank_count'], 'rank')}"  # noqa: RUF001
    at = _first_instance(row)
    if at is None:
        return [events]
    ranks = list(dict.fromkeys([row["rank"], *(rank for rank, _ in details.ranks)]))[:MOST_RANKS_BESIDE]
    return [
        f"{events}: ",
        dcc.Link("show the first event on the timeline", href=timeline_link(selection, at, ranks=ranks)),
    ]


def _first_instance(row: dict[str, Any]) -> AtEvent | AtSpan | None:
    if row["rank"] is None:
        return None
    if row["event_index"] is not None:
        return AtEvent(row["rank"], row["event_index"])
    return None if row["at_ns"] is None else AtSpan(row["at_ns"], row["at_ns"], clock_of=row["rank"])


def _rule(rule: Rule | JobRule, selection: Selection) -> list[Component | str]:
    said = f"{rule.name} looks for {rule.looks_for}, {threshold_text(rule)}. {rule.reason} "
    return [shown(said), _source(rule.source, selection)]


def _source(source: str, selection: Selection) -> Component | str:
    if source in _PAGES:
        question = _PAGES[source]
        return dcc.Link(question.title, href=selection.at(question.name).query())
    return html.A("source", href=source, target="_blank", rel="noreferrer") if source.startswith("https://") else source
