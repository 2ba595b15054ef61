"""Large modules, imported on first use, because importing them takes as long as returning an answer from the cache.

Type annotations may name classes of these modules; a module is imported only when such an annotation is evaluated.
"""

from __future__ import annotations

import gc
import os
import threading
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any


class _Later:
    """Imports a module when one of its attributes is first read; returns the module's attributes as its own."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- any attribute of the module
        return getattr(import_module(self._module), name)


if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    import plotly.graph_objects as go
else:
    nx, pd, go = map(_Later, ("networkx", "pandas", "plotly.graph_objects"))

__all__ = ["go", "import_pandas_aside", "nx", "pd"]


@cache
def import_pandas_aside() -> None:
    """Import pandas once, on another thread; code that needs pandas waits until this is done.

    The native reader and Polars release the GIL, so the analysis runs during the import.
    """
    thread = threading.Thread(target=_import_pandas, name="holotrace-import-pandas")
    if hasattr(os, "register_at_fork"):
        # Forks wait until the import is done: a child forked during the import would wait for it forever, because
        # the importing thread exists only in the parent.
        os.register_at_fork(before=thread.join)
    thread.start()


def _import_pandas() -> None:
    is_enabled = gc.isenabled()
    gc.disable()  # garbage collection during an import frees nothing and takes a tenth of the import's time
    try:
        with suppress(Exception):  # the first use of pandas raises the error again
            import_module("pandas")
        gc.freeze()  # garbage collection now skips the modules, which live until exit anyway; this saves 0.07 s
    finally:
        if is_enabled:
            gc.enable()
