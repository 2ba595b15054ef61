"""If a trace does not name the group of a call, the group is inferred from the order and times of the calls."""

from __future__ import annotations

import numpy as np
import pytest

from calls_of_ranks import of_rank
from holotrace.enrich.across_ranks.matching.groups import process_group
from holotrace.enrich.across_ranks.matching.matching import match

JOB = process_group(range(4), "default_pg")
ROWS = (process_group([0, 1], "mesh_dp"), process_group([2, 3], "mesh_dp"))
COLUMNS = (process_group([0, 2], "mesh_pp"), process_group([1, 3], "mesh_pp"))


def _job(starts_us, *, hosts="aaaa", columns=COLUMNS):
    """Return four ranks that make one call at each of their start times."""
    return {
        rank: of_rank(
            *({"times": (start, start + 50), "window": number // 2} for number, start in enumerate(starts_us[rank])),
            groups=(JOB, *(group for group in (*ROWS, *columns) if rank in group.ranks)),
            world_size=4,
            host=hosts[rank],
        )
        for rank in range(4)
    }


def _groups(of_ranks) -> dict[int, str]:
    return {rank: names.pop() for rank, names in _all_groups(of_ranks).items() if len(names) == 1}


def _all_groups(of_ranks) -> dict[int, set[str]]:
    matching = match(of_ranks)
    names = dict(matching.groups.select("group", "description").iter_rows())
    known: dict[int, set[str]] = {}
    for rank, group in matching.calls.select("rank", "group").iter_rows():
        known.setdefault(rank, set()).add(names.get(group))
    return known


def test_calls_at_the_same_time_on_all_ranks_belong_to_the_whole_job() -> None:
    """All ranks make their calls at the same times, so groups of any size fit; the largest group is chosen."""
    together = [0, 100, 200, 300]

    assert _groups(_job([together] * 4)) == dict.fromkeys(range(4), "default_pg")


def test_calls_at_the_same_time_on_two_ranks_belong_to_their_group() -> None:
    """Ranks 0 and 1 communicate while ranks 2 and 3 do not, and vice versa, so each pair is a group."""
    first, second = [0, 200, 400, 600], [100, 300, 500, 700]

    matching = match(_job([first, first, second, second]))

    inferred = matching.groups.filter("is_inferred").select("ranks", "description").rows()
    assert inferred == [([0, 1], "mesh_dp"), ([2, 3], "mesh_dp")]
    assert matching.coverage.select("matched_by", "call_fraction").rows() == [("signature", 1.0)]


def test_hosts_may_have_different_clocks() -> None:
    """The clock of ranks 1 and 3, on another host, is 5 ms ahead; the groups are still found."""
    first, second = [0, 200, 400, 700], [100, 250, 500, 900]
    ahead = [[start + 5_000 for start in starts] for starts in (first, second)]

    assert set(_groups(_job([first, ahead[0], second, ahead[1]], hosts="abab")).values()) == {"mesh_dp"}


def test_nothing_is_chosen_between_two_groups_that_fit_equally_well() -> None:
    """Rank 0 could communicate with rank 1 or rank 2, so no group is chosen."""
    together, apart = [0, 200, 400, 600], [100, 300, 500, 700]

    assert match(_job([together, together, together, apart])).calls["group"].null_count() == 16


def test_a_group_that_leaves_other_ranks_without_partner_is_not_chosen() -> None:
    """Ranks 0 and 2 could form a group, but the remaining ranks 1 and 3 could not: their calls do not overlap."""
    starts = {0: 60, 1: 100, 2: 50, 3: 10}

    groups = _groups(_job([[starts[rank] + step for step in (0, 200, 400, 600)] for rank in range(4)]))

    assert groups == dict.fromkeys(range(4), "mesh_dp")


def test_groups_that_overlap_by_chance_are_told_apart_by_their_ends() -> None:
    """The calls of ranks 2 and 3 overlap those of ranks 0 and 1 but end 30 µs later, too late for a common group."""
    first, second = [0, 200, 400, 600], [30, 230, 430, 630]

    assert set(_groups(_job([first, first, second, second])).values()) == {"mesh_dp"}


def test_ends_that_differ_as_much_in_smaller_groups_belong_to_the_whole_job() -> None:
    """The ends differ by up to 40 µs, both within pairs and among all ranks, so pairs fit no better than the whole job.

    Ends of gloo's annotations may differ by up to a millisecond.
    """
    starts = [[start + shift for start in (0, 200, 400, 600)] for shift in (0, 30, 15, 40)]

    assert _groups(_job(starts)) == dict.fromkeys(range(4), "default_pg")


def test_a_missing_call_changes_nothing() -> None:
    """Rank 1 lacks one call, so the step of this call is ignored, and the groups are inferred from the other steps."""
    first, second = [0, 200, 400, 600], [100, 300, 500, 700]

    assert _groups(_job([first, first[:3], second, second])) == dict.fromkeys(range(4), "mesh_dp")


@pytest.mark.parametrize(("world_size", "ranks"), [(2, [0, 1]), (None, [0, 1]), (8, [*range(8)])])
def test_without_any_groups_all_ranks_of_the_job_are_one(world_size, ranks) -> None:
    """In old traces without groups, all ranks form one group, including unrecorded ranks if the job size is known."""
    known = of_rank({"times": (0, 50)}, {"times": (100, 150)}, world_size=world_size)

    groups = match({0: known, 1: known}).groups

    assert groups.select("ranks", "size", "is_inferred").rows() == [(ranks, len(ranks), True)]


def test_calls_at_different_times_belong_to_no_group() -> None:
    """Two ranks make equally many calls, but never at the same time, so the calls have no group."""
    of_ranks = {
        rank: of_rank(*({"times": (start, start + 50)} for start in starts), world_size=2)
        for rank, starts in enumerate(([0, 200, 400], [100, 300, 500]))
    }

    assert match(of_ranks).calls["group"].to_list() == [None] * 6


def _lock_step(arrival_us: float, *, is_whole_job: bool, seed: int):
    """Return 20 calls, made by two groups in lock step or by the whole job; ranks arrive about `arrival_us` apart.

    A transfer takes 15 µs; its ends on the ranks are up to about a microsecond apart.
    """
    dice = np.random.default_rng(seed)
    calls: list[list[dict[str, object]]] = [[] for _ in range(4)]
    begin = 0.0
    for _ in range(20):
        starts = begin + dice.exponential(arrival_us, 4)
        lasts = [starts.max()] * 4 if is_whole_job else [starts[:2].max()] * 2 + [starts[2:].max()] * 2
        ends = np.array(lasts) + 15 + dice.exponential(0.5) + dice.exponential(0.5, 4)
        for rank in range(4):
            calls[rank].append({"times": (float(starts[rank]), float(ends[rank]))})
        begin = float(ends.max()) + 100
    groups = (
        process_group(range(4), "default_pg"),
        *(process_group([first, first + 1], "mesh_tp") for first in (0, 2)),
    )
    return {rank: of_rank(*calls[rank], groups=groups, world_size=4) for rank in range(4)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("arrival_us", [3, 30])
def test_a_whole_job_is_told_from_groups_in_lock_step(arrival_us, seed) -> None:
    """Measured from the arrival of the job's last rank, transfers take equally long, so the group is the whole job."""
    matching = match(_lock_step(arrival_us, is_whole_job=True, seed=seed))

    assert matching.groups.filter("is_inferred")["description"].to_list() == ["default_pg"]
    assert matching.findings == ()


@pytest.mark.parametrize("seed", range(3))
def test_groups_in_lock_step_show_in_the_time_of_their_transfers(seed) -> None:
    """Measured from the arrival of a pair's later rank, transfers take equally long, so the groups are the pairs."""
    matching = match(_lock_step(30, is_whole_job=False, seed=seed))

    assert matching.groups.filter("is_inferred")["description"].to_list() == ["mesh_tp", "mesh_tp"]
    assert matching.coverage["call_fraction"].to_list() == [1.0]


@pytest.mark.parametrize("seed", range(3))
def test_groups_in_closer_lock_step_are_ambiguous(seed) -> None:
    """If ranks arrive only 3 µs apart, pairs fit little better than the whole job, so neither is chosen."""
    matching = match(_lock_step(3, is_whole_job=False, seed=seed))

    assert matching.calls["instance"].null_count() == 80
    assert matching.findings == (
        "80 of 80 calls (80 all_reduce) name no group, and several groups of the job fit them equally well",
    )
