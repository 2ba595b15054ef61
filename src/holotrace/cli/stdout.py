"""What goes wrong when stdout is written to: a full disk, a closed pipe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holotrace.errors import OutputError


@contextmanager
def writing_to_stdout() -> Iterator[None]:
    """Make an error of the system an OutputError; whoever closes a pipe early has seen enough, and needs no message."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError.of_stdout(error) from error
