"""The list of pages beside the content, drawn by `assets/shell/navigation.js`."""

from __future__ import annotations

from typing import TypedDict

from dash.development.base_component import Component


class PageLink(TypedDict):
    """A link to a page; `isShown` marks the current page."""

    title: str
    href: str
    isShown: bool


class Section(TypedDict):
    """Links under a title; the first section has no title."""

    title: str
    links: list[PageLink]


class Navigation(Component):
    """All links as one component.

    Dash notifies each component of each change of the page, so a component per link would delay the first figure.
    """

    _children_props: list[str] = []  # noqa: RUF012 -- as in all components of Dash
    _base_nodes: list[str] = ["children"]  # noqa: RUF012
    _namespace = "holotrace"
    _type = "Navigation"

    def __init__(self, sections: list[Section]) -> None:
        """Show the sections in the given order."""
        self._prop_names = ["sections"]
        self._valid_wildcard_attributes: list[str] = []
        self.available_properties = self._prop_names
        self.available_wildcard_properties: list[str] = []
        super().__init__(sections=sections)
