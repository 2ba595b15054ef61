"""The base of the components that `assets/shell/start.js` defines in the browser."""

from __future__ import annotations

from dash.development.base_component import Component


class OwnComponent(Component):
    """A component of the namespace `holotrace`; a subclass sets `_type`, its name in the browser."""

    _children_props: list[str] = []  # noqa: RUF012 -- as in all components of Dash
    _base_nodes: list[str] = ["children"]  # noqa: RUF012
    _namespace = "holotrace"

    def __init__(self, **properties: object) -> None:
        """Pass the properties to the component in the browser."""
        self._prop_names = list(properties)
        self._valid_wildcard_attributes: list[str] = []
        self.available_properties = self._prop_names
        self.available_wildcard_properties: list[str] = []
        super().__init__(**properties)
