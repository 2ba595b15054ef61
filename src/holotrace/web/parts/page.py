"""What a page is made of."""

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
    """A table of a page: what it says, its rows, and the column by which to choose some of many."""

    caption: str
    frame: pl.DataFrame
    telling: str


Part: TypeAlias = "Callable[[Session, Selection], Component]"
MakeTable: TypeAlias = Callable[[Session, Selection], Table]


@dataclass(frozen=True)
class Page:
    """One page.

    name      the word in its address: `?view=<name>`
    title     what people call it
    question  what it answers
    section   the heading under which the navigation lists it
    layout    returns the page at once, without computing anything; `part(name)` stands where something slow comes
    parts     the slow ones, made on a worker thread; progress and errors are shown in their place
    tables    the tables that its parts show with `table_box(name)`
    module    the module in `assets` that only this page needs, in a folder of its own; empty for none
    routes    adds addresses of its own to the server
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
