"""Copy the trace files of a job and add counters."""

from __future__ import annotations

from holotrace.errors import InvalidOptionError
from holotrace.export.chrome_trace import with_events
from holotrace.export.counters import ALL_COUNTERS, TimeSeriesTypes, counter_events
from holotrace.export.new_file import expect_writable
from holotrace.locations import Location, located, name_of
from holotrace.store.trace import Trace

COUNTERS_SUFFIX = "_with_counters"
"""The suffix of copies; `open_trace` skips files with this suffix in a folder."""

_JSON = ".json"


def write_traces_with_counters(
    trace: Trace,
    folder: Location | None = None,
    *,
    kinds: TimeSeriesTypes = ALL_COUNTERS,
    suffix: str = COUNTERS_SUFFIX,
    overwrite: bool = False,
) -> dict[int, Location]:
    """Copy each rank's file and add queue lengths and bandwidths as counters, which Perfetto draws as curves.

    Args:
        trace: the job. If only some of its events are selected, the counters are computed from these events, but the
            copies contain all events.
        folder: where to write; by default, next to each file.
        kinds: which counters to add.
        suffix: inserted before `.json` in the name of each copy.
        overwrite: replace existing copies.

    Returns:
        {rank: location of the copy}

    Raises:
        InvalidOptionError: a copy already exists, its folder is missing or cannot be written, or the suffix is empty or
            contains a folder. This is checked before any file is written.
        UnreadableTraceError: a file can no longer be read.
        OSError: writing failed.
    """
    if not suffix or name_of(suffix) != suffix:
        message = f"suffix={suffix!r} cannot be part of a file name; use a suffix such as {COUNTERS_SUFFIX!r}"
        raise InvalidOptionError(message)
    targets = {rank: _target(located(copied.source), folder, suffix) for rank, copied in trace.ranks.items()}
    _expect_all_writable(targets, overwrite=overwrite)
    for rank, target in targets.items():
        with_events(trace.ranks[rank], target, counter_events(trace.ranks[rank], kinds), overwrite=overwrite)
        trace.ranks[rank].forget()
    return targets


def _target(source: Location, folder: Location | None, suffix: str) -> Location:
    before, json, after = source.name.rpartition(_JSON)
    name = f"{before}{suffix}{json}{after}" if json else f"{source.name}{suffix}{_JSON}.gz"
    plain = name.removesuffix(".zst").removesuffix(".zstd")
    return (folder or source.parent) / (plain if plain == name else f"{plain}.gz")


def _expect_all_writable(targets: dict[int, Location], *, overwrite: bool) -> None:
    written: dict[Location, int] = {}
    for rank, target in targets.items():
        if target in written:
            message = (
                f"ranks {written[target]} and {rank} would both be written to {target}; write them to different folders"
            )
            raise InvalidOptionError(message)
        written[target] = rank
        expect_writable(target, overwrite=overwrite)
