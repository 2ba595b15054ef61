"""The pages of the server, in the order of the navigation."""

from __future__ import annotations

from holotrace.web.pages.analysis import analysis_pages
from holotrace.web.pages.diff import DIFF
from holotrace.web.pages.health import HEALTH
from holotrace.web.pages.overview import OVERVIEW
from holotrace.web.pages.runs import RUNS
from holotrace.web.pages.timeline import TIMELINE
from holotrace.web.parts.page import Page

__all__ = ["PAGES", "Page"]

PAGES: tuple[Page, ...] = (
    RUNS,
    OVERVIEW,
    TIMELINE,
    *analysis_pages(),
    DIFF,
    HEALTH,
)
