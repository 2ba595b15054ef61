"""A place whose content the browser makes after the figures of the page; `assets/scripts.js` is its other half."""

from __future__ import annotations

from dash.development.base_component import Component


class Later(Component):
    """Children that wait until the figures are drawn and the scripts of tables are there.

    Controls and grids of tables take longer to make than a figure, and mostly stand below one.
    """

    _children_props: list[str] = []  # noqa: RUF012 -- as every component of Dash has it, likewise the next
    _base_nodes: list[str] = ["children"]  # noqa: RUF012
    _namespace = "holotrace"
    _type = "Later"

    def __init__(self, children: list[Component], *, height: int) -> None:
        """Take the children, and about how many pixels high they are going to be."""
        self._prop_names = ["children", "height"]
        self._valid_wildcard_attributes: list[str] = []
        self.available_properties = self._prop_names
        self.available_wildcard_properties: list[str] = []
        super().__init__(children=children, height=height)
