"""Content of a page that the browser builds after the figures, with `assets/shell/later.js`."""

from __future__ import annotations

from typing import Literal

from dash.development.base_component import Component


class Later(Component):
    """Children that are built after the figures are drawn or, with `after="tables"`, after the scripts of tables load.

    If tables and folded lists were built first, they would delay the first figure, which readers look at first.
    """

    _children_props: list[str] = []  # noqa: RUF012 -- as in all components of Dash
    _base_nodes: list[str] = ["children"]  # noqa: RUF012
    _namespace = "holotrace"
    _type = "Later"

    def __init__(self, children: list[Component], *, after: Literal["figures", "tables"], height: int = 0) -> None:
        """Reserve `height`, the children's approximate height in pixels."""
        self._prop_names = ["children", "after", "height"]
        self._valid_wildcard_attributes: list[str] = []
        self.available_properties = self._prop_names
        self.available_wildcard_properties: list[str] = []
        super().__init__(children=children, after=after, height=height)
