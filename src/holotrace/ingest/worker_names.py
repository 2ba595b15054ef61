"""Find the worker and the number of the recording in a file name."""

from __future__ import annotations

import re

from holotrace.locations import name_of

_NAME = re.compile(r"(?P<worker>.+?)(\.(?P<stamp>\d+))?(\.pt)?(\.trace)?\.json(\.gz)?", re.IGNORECASE)


def worker_of(path: str) -> str:
    """Return the worker in a file name: `host_12` in `host_12.1694128201545.pt.trace.json.gz`."""
    return worker_and_stamp(path)[0]


def worker_and_stamp(path: str) -> tuple[str, int | None]:
    """Split a file name into worker and number; if it has another form, return the whole name and None."""
    name = name_of(path)
    match = _NAME.fullmatch(name)
    if match is None:
        return name, None
    return match["worker"], None if match["stamp"] is None else int(match["stamp"])
