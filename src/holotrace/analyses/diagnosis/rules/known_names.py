"""Names that reveal what a function does."""

from __future__ import annotations

WRITES = r"(?i)\b(torch/serialization|checkpoint\w*|save\w*|dump\w*|write\w*|fsync)\b"
"""Functions that write files."""

PICKLES = r"^torch/distributed/\S+: \w+_object(_list)?$"
"""PyTorch's functions that send Python objects to other ranks: all_gather_object, broadcast_object_list …"""

LOCKS = r"<built-in method acquire>"
"""The function in which a thread waits for a Python lock."""
