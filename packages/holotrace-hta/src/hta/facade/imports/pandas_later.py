"""pandas, imported when it is first used: importing it takes as long as an answer from the cache.

Modules that every script imports write

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
    """Has the names of pandas."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever pandas has
        return getattr(import_module("pandas"), name)


pd = _Pandas()


@cache
def import_pandas_aside() -> None:
    """Import pandas on another thread, once; whoever uses it meanwhile waits for the import.

    The native reader and Polars release the GIL, so an answer is computed at the same time.
    """
    thread = threading.Thread(target=_import_pandas, name="holotrace-import-pandas")
    if hasattr(os, "register_at_fork"):
        # A child process would wait forever for an import of a thread that it does not have.
        os.register_at_fork(before=thread.join)
    thread.start()


def _import_pandas() -> None:
    # While modules are imported, the collector finds nothing and takes a tenth of the time.
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        with suppress(Exception):  # whoever uses pandas meets the error
            import_module("pandas")
    finally:
        if is_enabled:
            gc.enable()
