"""Reads the device work of a rank: kernels, copies and memsets, without waits, markers and annotations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.job.one_job import cut_off_text
from holotrace.enrich.kernels.kernel_kind import name_classifier
from holotrace.errors import MissingDataError
from holotrace.schema import DEVICE_WORK_KINDS, EventKind, KernelKind
from holotrace.store.derived import derived, derived_under_rules
from holotrace.store.trace import DeviceSelection, RankTrace

DEVICE_ROW_COLUMNS = ("event_index", "start_ns", "end_ns", "kind", "name", "device", "stream", "correlation")

_NO_WORK = 255
"""In arrays of kernel kinds, this value stands for rows that are only waits or markers."""

_KIND_OF_EVENT = {
    EventKind.GPU_MEMCPY: KernelKind.MEMORY,
    EventKind.GPU_MEMSET: KernelKind.MEMORY,
    EventKind.COLLECTIVE_COMM: KernelKind.COMMUNICATION,
}
_HOST_KINDS = (
    EventKind.CPU_OP,
    EventKind.USER_ANNOTATION,
    EventKind.RUNTIME,
    EventKind.DRIVER,
    EventKind.PYTHON_FUNCTION,
)


@derived_under_rules
def device_work(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the device work of a rank, one row per event; `holotrace.enrich.kernels.kernel_kind` classifies kernels.

    Returns:
        Sorted by start_ns, equal starts in file order:

        event_index   uint32
        start_ns      int64
        end_ns        int64   at least start_ns
        name          uint32  string id
        kernel_kind   uint8   KernelKind
        device        int32   -1 if not recorded
        stream        int64   -1 if not recorded
        correlation   int64   -1 if there is none
    """
    rows = device_rows(rank_trace)
    return _work(rows, kernel_kinds(rank_trace, rows))


def by_device(work: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield each device, in order, with its rows of `device_work`."""
    devices = work["device"].unique().sort().to_list()
    if len(devices) == 1:  # the usual case; filtering would copy the table
        yield devices[0], work
        return
    for device in devices:
        yield device, work.filter(pl.col("device") == device)


def device_rows(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the `DEVICE_ROW_COLUMNS` of all device rows; unlike `device_work`, include rows that only wait."""
    return _device_rows(rank_trace)


def kernel_kinds(rank_trace: RankTrace, rows: pl.DataFrame) -> npt.NDArray[np.uint8]:
    """Return the KernelKind of each device row, 255 for rows that are not work; see `kernel_kind`."""
    event_kinds, names = rows["kind"].to_numpy(), rows["name"].to_numpy()
    answers = np.empty(rows.height, np.uint8)
    for event_kind in np.flatnonzero(np.bincount(event_kinds)).tolist():
        chosen = event_kinds == event_kind
        answers[chosen] = _kinds_of(rank_trace, EventKind(event_kind), names[chosen])
    described = rank_trace.table("collectives", ["event_index"])["event_index"]
    if len(described):
        is_named = ~np.isin(event_kinds, list(_KIND_OF_EVENT))
        is_described = rows["event_index"].is_in(described.implode()).to_numpy()
        answers[is_named & is_described] = KernelKind.COMMUNICATION
    return answers


def no_device_work(rank_trace: RankTrace, analysis: str) -> MissingDataError:
    """Return the error for a rank without device work."""
    counts = rank_trace.event_counts()
    cpu_events = sum(counts.get(kind, 0) for kind in _HOST_KINDS)
    return MissingDataError.no_gpu_kernels(
        analysis,
        rank=rank_trace.rank,
        source=rank_trace.source,
        cpu_events=cpu_events,
        ends_early=bool(cut_off_text(rank_trace)),
    )


def missing_device_work(rank_trace: RankTrace) -> str:
    """Explain why a rank has no device work: it was not recorded, or the file ends too early."""
    if cut_off_text(rank_trace):
        return "the file ends early, before any device work, so it is unknown whether the job used a GPU"
    return "no device work was recorded; if the job used a device, record with ProfilerActivity.CUDA"


@derived
def _device_rows(rank_trace: RankTrace) -> pl.DataFrame:
    if (is_kept := _kept_by_selections(rank_trace)) is not None:
        return device_rows(rank_trace.unselected).filter(is_kept)
    rows = event_ranges(rank_trace, DEVICE_WORK_KINDS, DEVICE_ROW_COLUMNS)
    missing = pl.col("device", "stream", "correlation").fill_null(-1)
    in_order = np.argsort(
        rows["start_ns"].to_numpy(), kind="stable"
    )  # most files consist of sorted runs, which a stable sort merges quickly
    return rows.with_columns(missing)[in_order]


def _kept_by_selections(rank_trace: RankTrace) -> npt.NDArray[np.bool_] | None:
    """Return, for each device row, whether all selections keep it.

    Return None if there are no selections, or if one of them is not a `DeviceSelection`.
    """
    selections: tuple[object, ...] = rank_trace.selections
    able = [selection for selection in selections if isinstance(selection, DeviceSelection)]
    if not able or len(able) < len(selections):
        return None
    is_kept: npt.NDArray[np.bool_] = np.logical_and.reduce(
        [selection.of_device_rows(rank_trace.unselected) for selection in able]
    )
    return is_kept


def _work(rows: pl.DataFrame, kinds: npt.NDArray[np.uint8]) -> pl.DataFrame:
    work = rows.with_columns(pl.Series("kernel_kind", kinds)).select(
        "event_index", "start_ns", "end_ns", "name", "kernel_kind", "device", "stream", "correlation"
    )
    return work.filter(kinds != _NO_WORK) if _NO_WORK in kinds else work


def _kinds_of(
    rank_trace: RankTrace, event_kind: EventKind, names: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint8] | KernelKind:
    """Classify each distinct name once."""
    if event_kind in _KIND_OF_EVENT:
        return _KIND_OF_EVENT[event_kind]
    distinct = np.flatnonzero(np.bincount(names))
    kind_of = name_classifier(event_kind)
    kinds = [kind_of(text) for text in rank_trace.texts(pl.Series(distinct.astype(np.uint32)))]
    by_id = np.zeros(int(distinct[-1]) + 1, np.uint8)
    by_id[distinct] = [_NO_WORK if kind is None else kind for kind in kinds]
    return by_id[names]
