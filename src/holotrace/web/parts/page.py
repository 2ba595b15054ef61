"""A page and its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.web.session.selection import Selection
from holotrace.web.session.session import Session

if TYPE_CHECKING:
    from dash.development.base_component import Component
    from flask import Flask


@dataclass(frozen=True, eq=False)
class Table(EqualByContent):
    """A table on a page: its caption, its rows, and the column that ranks rows by importance."""

    caption: str
    frame: pl.DataFrame
    telling: str


Part: TypeAlias = "Callable[[Session, Selection], Component]"
MakeTable: TypeAlias = Callable[[Session, Selection], Table]


@dataclass(frozen=True)
class Page:
    """One page.

    name      name of the page in the address: `?view=<name>`
    title     name of the page in the navigation
    question  the question that the page answers
    section   heading under which the navigation lists the page
    layout    returns the page at once, with a placeholder `part(name)` for each part that must be computed
    parts     the slow parts, which worker threads make; a placeholder shows the progress, then the part or an error
    tables    the tables that the parts show with `table_box(name)`
    module    the module in `assets` that only this page needs; empty if there is none
    routes    a function that adds addresses for this page to the server
    is_in_background  whether to make all parts on a single background thread, so that they delay other pages less
    cost      returns the cost of making a part, in any unit; the cheapest parts are made first. If `cost` is None, the
              parts are made in the order of `parts`
    """

    name: str
    title: str
    question: str
    section: str
    layout: Callable[[Session, Selection], Component]
    parts: Mapping[str, Part] = field(default_factory=dict)
    tables: Mapping[str, MakeTable] = field(default_factory=dict)
    module: str = ""
    routes: Callable[[Flask, Session], None] | None = None
    is_in_background: bool = False
    cost: Callable[[Session, str], float] | None = None
