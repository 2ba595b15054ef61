"""The rules that check a rank's recording, one function each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holotrace.enrich.trust.device_rules import overlapping_work, starts_before_launch
from holotrace.enrich.trust.doubts import Doubt
from holotrace.enrich.trust.file_rules import cut_off_file, lost_events, other_program
from holotrace.enrich.trust.host_rules import gaps_in_host_recording, shared_sequence_numbers, waits_end_early
from holotrace.enrich.trust.missing_work import incomplete_graph_replays, launches_left_out, launches_without_work
from holotrace.enrich.trust.profiler_rules import profiler_overhead, steps_with_profiler_start
from holotrace.enrich.trust.start_up import (
    slow_first_calls,
    slow_first_collectives,
    slow_first_steps,
    work_before_recording,
)
from holotrace.store.trace import RankTrace

RULES: tuple[Callable[[RankTrace], Iterator[Doubt]], ...] = (
    other_program,
    cut_off_file,
    lost_events,
    incomplete_graph_replays,
    launches_without_work,
    launches_left_out,
    gaps_in_host_recording,
    overlapping_work,
    starts_before_launch,
    waits_end_early,
    shared_sequence_numbers,
    slow_first_steps,
    slow_first_calls,
    slow_first_collectives,
    work_before_recording,
    profiler_overhead,
    steps_with_profiler_start,
)
"""The rules about one rank, ordered by the results that they affect; each function has the name of its rule."""


def doubts_of_rank(rank_trace: RankTrace) -> tuple[Doubt, ...]:
    """Return all doubts about the whole recording of a rank, even if only a part of it is selected."""
    whole = rank_trace.unselected
    return tuple(doubt for rule in RULES for doubt in rule(whole))
