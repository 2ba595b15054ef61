"""The reason why a frame is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def explained(frame: pd.DataFrame, reason: str) -> pd.DataFrame:
    """Return the frame; if it is empty, set `attrs["reason"]`."""
    if frame.empty:
        frame.attrs["reason"] = reason
    return frame
