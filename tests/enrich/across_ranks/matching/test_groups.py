"""Tests of process groups: a group gets the same number on all of its ranks."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.enrich.across_ranks.matching.groups import (
    GROUP_ARGS,
    compact,
    configured_groups,
    groups_of_calls,
    process_group,
)
from holotrace.schema import TABLES
from holotrace.store.header import Header

_CUT_TEXT = f"[{', '.join(str(rank) for rank in range(0, 60, 2))}, ...]"
_TYPES = [pl.String, pl.Int64, pl.String, pl.Int64, pl.Int64]


def _args(*rows) -> pl.DataFrame:
    return pl.DataFrame(list(rows), dict(zip(GROUP_ARGS, _TYPES, strict=True)), orient="row")


def _header(*groups, world_size=128) -> Header:
    return Header.from_keys({"distributedInfo": {"world_size": world_size, "pg_config": list(groups)}})


def test_the_args_of_groups_are_columns_of_the_table() -> None:
    """The table `collectives` has every column of `GROUP_ARGS`."""
    assert set(GROUP_ARGS) <= {column.name for column in TABLES["collectives"]}


def test_ranks_and_description_identify_a_group() -> None:
    """The same ranks with different descriptions are different groups; the order of the ranks does not matter."""
    assert process_group([0, 1]).number == process_group([1, 0], "undefined").number
    assert process_group([0, 1]).number != process_group([0, 1], "mesh_dp").number


@pytest.mark.parametrize(
    ("ranks", "compacted"),
    [([], ()), ([3], range(3, 4)), ([6, 4, 2], range(6, 0, -2)), ([0, 1, 3], (0, 1, 3)), ([2, 2], (2, 2))],
)
def test_equal_distances_become_a_range(ranks, compacted) -> None:
    """Evenly spaced ranks become a range, because a range saves memory in large jobs."""
    assert compact(ranks) == compacted


def test_listed_ranks_give_the_group_of_a_call() -> None:
    """Calls of one group get the same group number; a call without args gets no number."""
    numbers, groups = groups_of_calls(
        _args(
            ["[0, 2]", 2, "mesh_dp", None, None],
            [None, None, None, None, None],
            ["[4, 6]", 2, "mesh_dp", None, None],
            ["[0, 2]", 2, "mesh_dp", 0, 2],
        ),
        Header(),
    )

    first, second = process_group([0, 2], "mesh_dp"), process_group([4, 6], "mesh_dp")
    assert numbers.to_list() == [first.number, None, second.number, first.number]
    assert set(groups) == {first, second}


def test_a_call_without_ranks_belongs_to_the_whole_job_if_its_size_or_description_says_so() -> None:
    """Old versions of PyTorch list no ranks for the default group, so its size or description identifies it."""
    rows = _args(["[]", 128, None, None, None], [None, None, "default_pg", None, None], ["[]", 8, "", None, None])

    numbers, _ = groups_of_calls(rows, _header())

    job, described = process_group(range(128)), process_group(range(128), "default_pg")
    assert numbers.to_list() == [job.number, described.number, None]


@pytest.mark.parametrize("stride", [-1, 0, None])
def test_the_header_completes_a_cut_list(stride) -> None:
    """The profiler truncates lists after 30 ranks, so the complete list comes from `pg_config` in the header."""
    ranks = [*range(0, 60, 2), 61, 63]
    header = _header({"pg_desc": "mesh_dp", "pg_size": 32, "ranks": ranks})

    _, (group,) = groups_of_calls(_args([_CUT_TEXT, 32, "mesh_dp", 0, stride]), header)

    assert group == process_group(ranks, "mesh_dp")


def test_start_and_stride_complete_a_cut_list() -> None:
    """The lists in both rows are truncated. Only the host's row has start and stride, but they complete both lists."""
    rows = _args([_CUT_TEXT, 40, "mesh_dp", 0, 2], [_CUT_TEXT, 40, "mesh_dp", None, None])

    numbers, (group,) = groups_of_calls(rows, Header())

    assert group == process_group(range(0, 80, 2), "mesh_dp")
    assert numbers.to_list() == [group.number, group.number]


def test_a_cut_list_without_more_is_still_one_group() -> None:
    """A stride of 3 contradicts the truncated list, so the group's ranks are unknown; its number and size are known."""
    numbers, (group,) = groups_of_calls(_args([_CUT_TEXT, 40, "mesh_dp", 0, 3]), Header())

    assert numbers.to_list() == [group.number]
    assert (group.ranks, group.size, group.description) == (None, 40, "mesh_dp")


def test_the_header_lists_the_groups_of_a_rank() -> None:
    """An empty list means all ranks; contradictory entries and entries of unexpected types are skipped."""
    header = _header(
        {"pg_desc": "default_pg", "pg_size": 128, "ranks": []},
        {"pg_desc": "mesh_pp", "pg_size": 2, "ranks": [0, 64]},
        {"pg_desc": "mesh_pp", "pg_size": 2, "ranks": "[0, 64]"},
        {"pg_desc": "mesh_dp", "pg_size": 3, "ranks": [0, 1]},
        {"pg_desc": "mesh_tp", "pg_size": 1, "ranks": [-1]},
        "text",
    )

    assert configured_groups(header) == (
        process_group(range(128), "default_pg"),
        process_group([0, 64], "mesh_pp"),
    )
    assert configured_groups(Header.from_keys({"distributedInfo": {"pg_config": 3}})) == ()
