"""The machine and the process in which a rank ran."""

from __future__ import annotations

import re

from holotrace.schema import EventKind
from holotrace.store.trace import RankTrace


def host_and_process(rank_trace: RankTrace) -> tuple[str | None, int | None]:
    """Return the machine of a rank, and the process that ran most of its operators; each is None if unknown.

    If the file does not contain the machine's name, the name comes from the file name.
    """
    tracks = rank_trace.events_of([EventKind.CPU_OP], ["track_id"])["track_id"]
    processes = rank_trace.table("tracks", ["process_id"])["process_id"].gather(tracks).drop_nulls().mode()
    process = int(processes.to_list()[0]) if len(processes) else None
    host, number = host_and_process_by_name(rank_trace)
    return rank_trace.header.host_name or (host if number is not None and number == process else None), process


def host_and_process_by_name(rank_trace: RankTrace) -> tuple[str, int | None]:
    """Return the host and process in a worker name `<host>_<process>`; for any other name, the name itself and None."""
    from holotrace.ingest.worker_names import worker_of  # noqa: PLC0415 -- also loads code for remote files

    worker = worker_of(rank_trace.source)
    named = re.fullmatch(r"(.+)_(\d+)", worker)
    return (named[1], int(named[2])) if named else (worker, None)
