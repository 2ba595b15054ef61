"""Files that are there whole or not at all."""

from __future__ import annotations

from holotrace.locations import Location, drafted


def write_atomically(path: Location, text: str) -> None:
    """Write a text file; a reader, or whoever comes after a crash, sees the old file or the new one, never a part.

    Raises:
        OSError: the folder does not exist or cannot be written, or the disk is full.
    """
    with drafted(path) as file:
        file.write(text.encode())
