"""Find files written by other programs, files that end early, and files with unreadable parts."""

from __future__ import annotations

from collections.abc import Iterator

from holotrace.enrich.job.one_job import CUT_OFF_KINDS, cut_off_text
from holotrace.enrich.trust.doubts import Doubt
from holotrace.ingest.trace_writer import other_writer, other_writer_text
from holotrace.schema import DEVICE_WORK_KINDS
from holotrace.store.health import loss_text
from holotrace.store.trace import RankTrace
from holotrace.units import counted


def other_program(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt if PyTorch's profiler did not write the file, because the file may not show all work of the job."""
    writer = other_writer(rank_trace)
    if writer:
        yield Doubt("other_program", f"The file was {other_writer_text(writer)}")


def cut_off_file(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt if the file ends in the middle of its events; device work, which is written last, may be missing."""
    text = cut_off_text(rank_trace)
    if text:
        has_work = any(rank_trace.event_counts().get(kind) for kind in DEVICE_WORK_KINDS)
        more = "" if has_work else "; it ends before any device work, so it is unknown whether the job used a GPU"
        yield Doubt("cut_off_file", f"{text[0].upper()}{text[1:]}{more}")


def lost_events(rank_trace: RankTrace) -> Iterator[Doubt]:
    """Yield a doubt if the reader had to drop parts of the file."""
    dropped = [
        finding
        for finding in rank_trace.health.findings
        if finding.severity == "dropped" and finding.kind not in CUT_OFF_KINDS
    ]
    if dropped:
        events, size = sum(one.events_lost for one in dropped), sum(one.bytes_lost for one in dropped)
        amount = f"{loss_text(events, size)} are lost" if events or size else "the loss cannot be counted"
        count = sum(one.count for one in dropped)
        yield Doubt(
            "lost_events",
            f"{counted(count, 'part')} of the file could not be read: {amount}; holotrace check says where and why",
            count=count,
        )
