"""The kind of device on which events ran."""

from __future__ import annotations

from enum import Enum

import pandas as pd


class DeviceType(Enum):
    """The kind of device on which events ran."""

    UNKNOWN = 0
    CPU = 1
    GPU = 2
    ALL = 3


def infer_device_type(df: pd.DataFrame) -> DeviceType:
    """Return where a frame's events ran: CPU, or GPU (any stream, including 0).

    UNKNOWN if the frame has events of both kinds, or no events.
    """
    is_on_device = (df["stream"] >= 0).unique().tolist()
    return {(False,): DeviceType.CPU, (True,): DeviceType.GPU}.get(tuple(is_on_device), DeviceType.UNKNOWN)
