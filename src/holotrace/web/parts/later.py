"""Content of a page that the browser builds after the figures, with `assets/shell/later.js`."""

from __future__ import annotations

from dash.development.base_component import Component


class Later(Component):
    """Children that are built after the figures are drawn and the scripts of tables are loaded.

    Tables and their controls take longer to build than figures, and most tables are below the figures.
    """

    _children_props: list[str] = []  # noqa: RUF012 -- as in all components of Dash
    _base_nodes: list[str] = ["children"]  # noqa: RUF012
    _namespace = "holotrace"
    _type = "Later"

    def __init__(self, children: list[Component], *, height: int) -> None:
        """Reserve `height`, the children's approximate height in pixels."""
        self._prop_names = ["children", "height"]
        self._valid_wildcard_attributes: list[str] = []
        self.available_properties = self._prop_names
        self.available_wildcard_properties: list[str] = []
        super().__init__(children=children, height=height)
