"""The list of pages beside the content, drawn by `assets/shell/navigation.js`."""

from __future__ import annotations

from typing import TypedDict

from holotrace.web.parts.own_component import OwnComponent


class PageLink(TypedDict):
    """A link to a page; `isShown` marks the current page."""

    title: str
    href: str
    isShown: bool


class Section(TypedDict):
    """Links under a title; the first section has no title."""

    title: str
    links: list[PageLink]


class Navigation(OwnComponent):
    """One Dash component that contains all links of the navigation.

    Dash notifies every component whenever the page changes, so one component for each link would delay the first
    figure.
    """

    _type = "Navigation"

    def __init__(self, sections: list[Section]) -> None:
        """Show the sections in the given order."""
        super().__init__(sections=sections)
