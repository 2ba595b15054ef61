"""The pages, in the order of the navigation."""

from __future__ import annotations

from hta.web.page import Page
from hta.web.pages.analysis import analysis_pages, section_page
from hta.web.pages.diff import DIFF
from hta.web.pages.health import HEALTH
from hta.web.pages.overview import OVERVIEW
from hta.web.pages.timeline import TIMELINE

__all__ = ["PAGES", "Page"]

PAGES: tuple[Page, ...] = (
    OVERVIEW,
    TIMELINE,
    *analysis_pages(),
    section_page("Distributed", "How do the ranks work together?"),
    DIFF,
    HEALTH,
)
