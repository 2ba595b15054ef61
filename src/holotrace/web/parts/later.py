"""Page content that the browser builds only after the figures; the code for this is in `assets/shell/later.js`."""

from __future__ import annotations

from typing import Literal

from dash.development.base_component import Component

from holotrace.web.parts.own_component import OwnComponent


class Later(OwnComponent):
    """Children that the browser builds later than the rest of the page.

    With `after="figures"`, the browser first draws the figures; with `after="tables"`, it first loads the scripts of
    tables. If tables and folded lists were built first, they would delay the first figure, which readers look at first.
    """

    _type = "Later"

    def __init__(self, children: list[Component], *, after: Literal["figures", "tables"], height: int = 0) -> None:
        """Reserve `height`, the children's approximate height in pixels."""
        super().__init__(children=children, after=after, height=height)
