"""A `@derived` function is computed once per combination of rank, arguments and kernel rules."""

from __future__ import annotations

import doctest
import pickle
from collections.abc import Iterator

import pytest

from holotrace.enrich.kernels.kernel_kind import add_rule, remove_added_rules
from holotrace.store import derived as module
from holotrace.store.derived import derived, derived_under_rules
from holotrace.store.trace import RankTrace
from holotrace.testing.builder import TraceBuilder

calls: list[tuple[object, ...]] = []


@derived
def event_count(rank_trace: RankTrace, factor: int = 1) -> int:
    """Return the number of events times `factor`."""
    calls.append((rank_trace.rank, factor))
    return rank_trace.table("events").height * factor


@derived_under_rules
def kernel_count(rank_trace: RankTrace) -> int:
    """Return the number of events; the result is computed again if the kernel rules change."""
    calls.append((rank_trace.rank,))
    return rank_trace.table("events").height


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Before a test, clear the recorded calls; after it, clear the added rules."""
    calls.clear()
    yield
    remove_added_rules()


@pytest.fixture
def rank_trace() -> RankTrace:
    """Return a rank with two kernels."""
    builder = TraceBuilder().kernel("gemm", start_us=0, duration_us=1).kernel("relu", start_us=2, duration_us=1)
    return builder.build().ranks[0]


def is_first(rank_trace: RankTrace) -> object:
    """Select the first event."""
    return (rank_trace.table("events")["event_index"] == 0).to_numpy()


def test_a_fact_is_computed_once_for_its_arguments(rank_trace) -> None:
    """The result is computed only once for the same arguments, whether they are passed by position or by name."""
    assert (event_count(rank_trace), event_count(rank_trace), event_count(rank_trace, 3)) == (2, 2, 6)
    assert event_count(rank_trace, factor=4) == event_count(rank_trace, factor=4) == 8
    assert calls == [(0, 1), (0, 3), (0, 4)]


def test_a_selection_has_its_own_facts(rank_trace) -> None:
    """For a selection of one event the count is 1, and for the whole rank it is still 2."""
    assert (event_count(rank_trace), event_count(rank_trace.where(is_first))) == (2, 1)
    assert event_count(rank_trace) == 2
    assert len(calls) == 2


def test_forgetting_a_rank_drops_its_facts(rank_trace) -> None:
    """After `forget`, the next call computes the result again."""
    event_count(rank_trace)
    rank_trace.forget()
    event_count(rank_trace)
    assert len(calls) == 2


def test_facts_that_depend_on_rules_are_computed_again_for_new_rules(rank_trace) -> None:
    """After a kernel rule is added, the next call computes a new result.

    After the rule is removed, calls return the result from before it was added.
    """
    kernel_count(rank_trace)
    add_rule("gemm", "communication")
    kernel_count(rank_trace)
    remove_added_rules()
    kernel_count(rank_trace)
    assert len(calls) == 2


def test_a_fact_can_be_sent_to_a_worker() -> None:
    """A derived function is pickled by name, like any function of a module."""
    assert pickle.loads(pickle.dumps(event_count)) is event_count  # noqa: S301 -- the test pickled it


def test_the_docstring_example_works() -> None:
    """The example in the docstring of `holotrace.store.derived` is correct."""
    assert doctest.testmod(module).failed == 0
