"""Copies of the trace files of a job, with counters."""

from __future__ import annotations

from holotrace.errors import InvalidOptionError
from holotrace.export.chrome_trace import with_events
from holotrace.export.counters import ALL_COUNTERS, TimeSeriesTypes, counter_events
from holotrace.export.new_file import expect_writable
from holotrace.locations import Location, located, name_of
from holotrace.store.trace import Trace

COUNTERS_SUFFIX = "_with_counters"
"""Files of this name are skipped when a folder is opened: they are copies."""

_JSON = ".json"


def write_traces_with_counters(
    trace: Trace,
    folder: Location | None = None,
    *,
    kinds: TimeSeriesTypes = ALL_COUNTERS,
    suffix: str = COUNTERS_SUFFIX,
    overwrite: bool = False,
) -> dict[int, Location]:
    """Copy the file of each rank with queue lengths and bandwidths as counters, which Perfetto draws as curves.

    Args:
        trace: the job. The copy holds all events; where some are selected, the counters are those of the selected.
        folder: where to write; by default beside each file.
        kinds: which counters.
        suffix: comes before `.json` in the name of each copy.
        overwrite: replace copies that are there.

    Returns:
        {rank: the copy}

    Raises:
        InvalidOptionError: a copy exists already, its folder is missing or cannot be written, or the suffix is empty or
            leads to another folder. All of that is found before anything is written.
        UnreadableTraceError: a file cannot be read any more.
        OSError: writing failed.
    """
    if not suffix or name_of(suffix) != suffix:
        message = f"suffix={suffix!r}: it is a part of a file's name, for instance {COUNTERS_SUFFIX!r}"
        raise InvalidOptionError(message)
    targets = {rank: _target(located(each.source), folder, suffix) for rank, each in trace.ranks.items()}
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
            message = f"ranks {written[target]} and {rank} would both be written to {target}; write them one by one"
            raise InvalidOptionError(message)
        written[target] = rank
        expect_writable(target, overwrite=overwrite)
