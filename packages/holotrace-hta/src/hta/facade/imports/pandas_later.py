"""pandas, imported on first use, because the import takes as long as returning an answer from the cache.

Modules that every script imports use

    if TYPE_CHECKING:
        import pandas as pd
    else:
        from hta.facade.imports.pandas_later import pd
"""

from __future__ import annotations

import gc
import os
import threading
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any


class _Pandas:
    """Forwards every attribute to pandas."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- any attribute of pandas
        return getattr(import_module("pandas"), name)


pd = _Pandas()


@cache
def import_pandas_aside() -> None:
    """Import pandas once, on another thread; code that needs pandas waits until this is done.

    The native reader and Polars release the GIL, so the analysis runs in the meantime.
    """
    thread = threading.Thread(target=_import_pandas, name="holotrace-import-pandas")
    if hasattr(os, "register_at_fork"):
        # A forked child would wait forever for the import, because only its parent has the thread that runs it.
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
