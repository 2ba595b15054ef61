"""Selections of events for `Trace.where`; set their options with `functools.partial`."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from holotrace.enrich.steps.step_of_event import is_in_steps
from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.store.trace import RankTrace


def in_steps(rank_trace: RankTrace, *, steps: Collection[int]) -> npt.NDArray[np.bool_]:
    """Return whether each event belongs to one of these steps: `trace.where(partial(in_steps, steps=[3]))`.

    A host event belongs to the step in which it begins; device work belongs to the step in which it was launched.
    """
    return is_in_steps(rank_trace, steps)


def on_devices(rank_trace: RankTrace, *, devices: Collection[int]) -> npt.NDArray[np.bool_]:
    """Return whether each event is on the host or on one of these devices."""
    events = rank_trace.table("events", ["kind", "device"])
    is_work = events["kind"].is_in([kind.value for kind in DEVICE_WORK_KINDS])
    is_chosen = events["device"].is_in(list(devices)).fill_null(value=False)
    return (~is_work | is_chosen).to_numpy()
