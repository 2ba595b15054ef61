"""Identifies the process groups in the trace of a rank by a number that is the same on all ranks of the group.

Processes number their groups independently, so recorded names do not identify a group. A group is identified by its
ranks together with its description. The ranks alone do not identify a group: the default group and the group of a mesh
axis may have the same ranks, but each of them numbers its own operations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import polars as pl

from holotrace.enrich.collectives.collectives import stable_number
from holotrace.store.header import Header, rank_or_none

GROUP_ARGS = ("group_ranks", "group_size", "group_description", "global_rank_start", "global_rank_stride")
"""Columns of the table `collectives` that describe the group of an operation."""

_CUT = "..."
"""If a group has more than 30 ranks, the profiler lists only the first 30, followed by this text."""

_DEFAULT_GROUP = "default_pg"
_NO_DESCRIPTION = "undefined"
"""The description that PyTorch records if the program did not describe the group."""


class ProcessGroup(NamedTuple):
    """A process group.

    number       below 2^64; identifies the group on all ranks
    ranks        its ranks in the order of the group: `ranks[2]` is the rank with the number 2 in the group; None if
                 the trace lists only some ranks
    size         number of ranks
    description  such as `mesh_dp`; empty if there is none
    """

    number: int
    ranks: Sequence[int] | None
    size: int
    description: str


class _Recorded(NamedTuple):
    """The `GROUP_ARGS` of a call, as recorded."""

    ranks: str | None
    size: int | None
    description: str | None
    start: int | None
    stride: int | None


def process_group(ranks: Iterable[int], description: str | None = None) -> ProcessGroup:
    """Return the group of these ranks.

    >>> process_group([0, 2, 4], "mesh_pp").ranks
    range(0, 6, 2)
    """
    members, known = compact(ranks), _described(description)
    return ProcessGroup(_number(repr(compact(sorted(members))), known), members, len(members), known)


def configured_groups(header: Header) -> tuple[ProcessGroup, ...]:
    """Return the groups in the header (`distributedInfo.pg_config`): this rank's groups, or all groups of the job."""
    distributed = header.raw.get("distributedInfo")
    configured = distributed.get("pg_config") if isinstance(distributed, dict) else None
    entries = [entry for entry in configured if isinstance(entry, dict)] if isinstance(configured, list) else []
    return tuple(dict.fromkeys(_configured(entries, header.world_size)))


def groups_of_calls(args: pl.DataFrame, header: Header) -> tuple[pl.Series, tuple[ProcessGroup, ...]]:
    """Return the group number of each row (null if unknown), and the groups.

    Args:
        args: the columns `GROUP_ARGS`, in which string ids are already replaced by their texts.
        header: the header of the same trace; lists of ranks that the profiler truncated are completed from its groups.
    """
    configured, identity = configured_groups(header), list(GROUP_ARGS[:3])
    distinct = args.group_by(identity, maintain_order=True).agg(pl.col(GROUP_ARGS[3:]).max())
    resolved = [_resolved(_Recorded(*row), header, configured) for row in distinct.iter_rows()]
    numbers = pl.Series("group", [group and group.number for group in resolved], pl.UInt64)
    numbered = distinct.select(identity).with_columns(numbers)
    of_rows = args.select(identity).join(numbered, on=identity, how="left", nulls_equal=True, maintain_order="left")
    return of_rows["group"], tuple(dict.fromkeys(filter(None, resolved)))


def compact(ranks: Iterable[int]) -> Sequence[int]:
    """Return the ranks as a range if they are equally spaced, else as a tuple; this saves memory in large jobs."""
    listed = tuple(ranks)
    stride = listed[1] - listed[0] if len(listed) > 1 else 1
    if stride and listed:
        progression = range(listed[0], listed[0] + stride * len(listed), stride)
        if tuple(progression) == listed:
            return progression
    return listed


def _configured(entries: Iterable[dict[str, Any]], world_size: int | None) -> Iterator[ProcessGroup]:
    for entry in entries:
        ranks, description = _ranks(entry.get("ranks")), entry.get("pg_desc")
        described = description if isinstance(description, str) else None
        if ranks and len(ranks) == entry.get("pg_size", len(ranks)):
            yield process_group(ranks, described)
        elif world_size and (described == _DEFAULT_GROUP or entry.get("pg_size") == world_size):
            yield process_group(range(world_size), described)


def _ranks(listed: object) -> list[int]:
    """Return the ranks in a list or in the string form of a list; empty if any element is not a rank."""
    numbers = re.findall(r"\d+", listed) if isinstance(listed, str) else listed if isinstance(listed, list) else []
    ranks = [rank_or_none(int(number)) for number in numbers if isinstance(number, int | str)]
    return [rank for rank in ranks if rank is not None] if None not in ranks else []


def _resolved(recorded: _Recorded, header: Header, configured: Iterable[ProcessGroup]) -> ProcessGroup | None:
    listed, description = _ranks(recorded.ranks), recorded.description
    if not listed:
        is_whole_job = description == _DEFAULT_GROUP or recorded.size == header.world_size
        return process_group(range(header.world_size), description) if header.world_size and is_whole_job else None
    if _CUT not in (recorded.ranks or ""):
        return process_group(listed, description)
    ranks = _completed(listed, recorded, configured) or _progression(listed, recorded)
    known = _described(description)
    cut = ProcessGroup(_number(recorded.ranks or "", known), None, recorded.size or 0, known)
    return process_group(ranks, description) if ranks else cut


def _completed(listed: list[int], recorded: _Recorded, configured: Iterable[ProcessGroup]) -> Sequence[int] | None:
    """Return all ranks of the configured group that fits `recorded`; None if no group or several groups fit.

    A group fits if it has the recorded size and description, and if its first ranks are the listed ranks.
    """
    known = {group.ranks for group in configured if group.description == _described(recorded.description)}
    fitting = [ranks for ranks in known if ranks and len(ranks) == recorded.size and _begins(ranks, listed)]
    return fitting[0] if len(fitting) == 1 else None


def _progression(listed: list[int], recorded: _Recorded) -> range | None:
    if recorded.start is None or not recorded.stride or not recorded.size:
        return None
    ranks = range(recorded.start, recorded.start + recorded.stride * recorded.size, recorded.stride)
    return ranks if _begins(ranks, listed) else None


def _begins(ranks: Sequence[int], listed: list[int]) -> bool:
    return list(ranks[: len(listed)]) == listed


def _described(description: str | None) -> str:
    return "" if description in (None, _NO_DESCRIPTION) else str(description)


def _number(ranks: str, description: str) -> int:
    return stable_number(f"{ranks} {description}") or 0
