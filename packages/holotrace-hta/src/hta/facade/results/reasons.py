"""Why a frame has no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def explained(frame: pd.DataFrame, reason: str) -> pd.DataFrame:
    """Return the frame; where it has no rows, its attrs say why as `reason`."""
    if frame.empty:
        frame.attrs["reason"] = reason
    return frame
