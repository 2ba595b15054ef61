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
    """A table on a page: its caption, its rows, and the column that says how important a row is."""

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
    question  the question that it answers
    section   heading above the page in the navigation
    layout    returns the page at once, without computing anything; `part(name)` is a placeholder for a slow part
    parts     the slow parts, made on a worker thread; placeholders show progress and errors
    tables    the tables that its parts show with `table_box(name)`
    module    the module in `assets` that only this page needs, in its own folder; empty if the page needs none
    routes    adds the page's own addresses to the server
    is_in_background  whether a single background thread makes its parts, so that other pages need not wait for them
    cost      returns how long a part takes to make, in any unit: the page's cheapest parts are made first; None to make them in
              the order of `parts`
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
