"""Replaying operations with recorded times gives the recorded step; with changed times, it predicts a changed step."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holotrace.enrich.job_operations.by_time import by_time
from holotrace.enrich.job_operations.dependencies import by_kind
from holotrace.enrich.job_operations.replay import Replay, work_ns
from holotrace.enrich.job_operations.table import operations_table
from holotrace.errors import InvalidOperationsError
from operations import drawn, pipelined_step


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    return operations_table(frame).with_row_index("row")


def _length(frame: pl.DataFrame) -> int:
    return frame.select((pl.col("start_ns") + pl.col("duration_ns")).max()).item()


_SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 3))
"""Stages, microbatches and replicas."""


@settings(max_examples=15, deadline=None)
@given(_SHAPES, st.integers(0, 1_000))
def test_an_unchanged_replay_gives_the_recorded_times(shape: tuple[int, int, int], seed: int) -> None:
    """Without launch delays, every operation ends at the same time in the replay as in the simulated pipeline."""
    operations = _numbered(pipelined_step(*shape, drawn(seed)))
    dependencies = by_kind(operations)

    ends = Replay(operations, dependencies).ends_ns(work_ns(operations, dependencies).to_numpy())

    assert ends.tolist() == (operations["start_ns"] + operations["duration_ns"]).to_list()


@settings(max_examples=15, deadline=None)
@given(_SHAPES, st.integers(0, 1_000), st.integers(0, 1_000))
def test_the_replay_predicts_the_step_with_other_times(shape: tuple[int, int, int], seed: int, other: int) -> None:
    """A pipeline replayed with the times of another simulated pipeline takes as long as the other pipeline."""
    operations = _numbered(pipelined_step(*shape, drawn(seed)))
    expected = pipelined_step(*shape, drawn(other))
    needs = drawn(other)
    keys = operations.select("kind", "dp_rank", "stage", pl.col("microbatch").fill_null(-1)).iter_rows()
    work = pl.Series([needs(*key) for key in keys]).to_numpy()

    assert Replay(operations, by_kind(operations)).step_ns(work).tolist() == [_length(expected)]


def test_rows_in_any_order_and_several_steps_give_the_same() -> None:
    """Each of two steps is replayed as if it were the only one, even if the rows are shuffled."""
    steps = [pipelined_step(3, 4, 2, drawn(seed), step=seed) for seed in (5, 2)]
    operations = _numbered(pl.concat(steps).sample(fraction=1.0, shuffle=True, seed=1))
    dependencies = by_kind(operations)

    lengths = Replay(operations, dependencies).step_ns(work_ns(operations, dependencies).to_numpy())

    assert lengths.tolist() == [_length(steps[1]), _length(steps[0])]


def test_operations_that_wait_for_one_another_are_an_error() -> None:
    """Two ranks that run two shared communications in opposite order wait for each other forever."""
    rows = [(0, "dp-all-reduce", 0, 5, 1), (0, "dp-all-reduce", 5, 5, 2)]
    rows += [(1, "dp-all-reduce", 0, 5, 2), (1, "dp-all-reduce", 5, 5, 1)]
    operations = _numbered(pl.DataFrame(rows, ["rank", "kind", "start_ns", "duration_ns", "instance"], orient="row"))

    with pytest.raises(InvalidOperationsError, match="wait for one another in a cycle"):
        Replay(operations, by_time(operations)).ends_ns(operations["duration_ns"].to_numpy())


def test_communication_waits_for_its_last_rank() -> None:
    """Rank 1 reduces from 24 to 30 ns, so the transfer takes 6 ns; if rank 1 arrives 10 ns earlier, 10 ns are saved."""
    rows = [(0, "forward-compute", 0, 10, None), (0, "dp-all-reduce", 10, 20, 1)]
    rows += [(1, "forward-compute", 0, 24, None), (1, "dp-all-reduce", 24, 6, 1), (1, "optimizer", 30, 5, None)]
    operations = _numbered(pl.DataFrame(rows, ["rank", "kind", "start_ns", "duration_ns", "instance"], orient="row"))
    dependencies = by_time(operations)
    work = work_ns(operations, dependencies)
    replay = Replay(operations, dependencies)

    assert work.to_list() == [10, 6, 24, 6, 5]
    assert replay.step_ns(work.to_numpy()).tolist() == [35]
    assert replay.step_ns((work - pl.Series([0, 0, 10, 0, 0])).to_numpy()).tolist() == [25]


def test_a_send_that_ends_before_its_receive_begins_waits_for_nobody() -> None:
    """A buffered send ends at 13 ns, before its receive begins at 50 ns, so the sender need not wait for it."""
    rows = [(0, "forward-compute", 0, 10, None), (0, "forward-send", 10, 3, 1), (0, "optimizer", 13, 7, None)]
    rows += [(1, "optimizer", 0, 50, None), (1, "forward-recv", 50, 4, 1)]
    operations = _numbered(pl.DataFrame(rows, ["rank", "kind", "start_ns", "duration_ns", "instance"], orient="row"))
    dependencies = by_time(operations)
    work = work_ns(operations, dependencies)

    assert dependencies.waits.to_list() == [True, False, True, True, True]
    assert work.to_list() == [10, 3, 7, 50, 4]
    assert Replay(operations, dependencies).ends_ns(work.to_numpy()).tolist() == [10, 13, 20, 50, 54]
