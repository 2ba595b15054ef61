"""The reason why a frame is empty."""

from __future__ import annotations

from hta.facade.imports.modules_later import pd


def explained(frame: pd.DataFrame, reason: str) -> pd.DataFrame:
    """Return the frame; if it is empty, set `attrs["reason"]`."""
    if frame.empty:
        frame.attrs["reason"] = reason
    return frame
