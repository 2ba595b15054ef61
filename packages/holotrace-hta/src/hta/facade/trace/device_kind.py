"""Where events ran."""

from __future__ import annotations

from enum import Enum

import pandas as pd


class DeviceType(Enum):
    """Where events ran."""

    UNKNOWN = 0
    CPU = 1
    GPU = 2
    ALL = 3


def infer_device_type(df: pd.DataFrame) -> DeviceType:
    """Say where the events of a frame ran: on the host, on devices (any stream, also 0), or UNKNOWN for both or none."""
    is_on_device = (df["stream"] >= 0).unique().tolist()
    return {(False,): DeviceType.CPU, (True,): DeviceType.GPU}.get(tuple(is_on_device), DeviceType.UNKNOWN)
