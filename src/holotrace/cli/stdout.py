"""Write to stdout, which may be on a full disk or a closed pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from holotrace.errors import OutputError

UNLIMITED = 1_000_000
"""A console of this width neither wraps nor cuts lines."""


@contextmanager
def writing_to_stdout() -> Iterator[None]:
    """Turn an operating-system error into an OutputError, except BrokenPipeError, which needs no message."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError.of_stdout(error) from error


def print_text(text: str) -> None:
    """Print text unchanged; the caller has already replaced control characters."""
    with writing_to_stdout():
        sys.stdout.write(f"{text}\n")
