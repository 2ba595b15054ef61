"""Facts about a rank, each of which is computed only once.

Each fact, for example a table of all launches, is computed by a function that takes a RankTrace. Decorate the function
with `@derived`, and repeated calls return the stored result:

    @derived
    def launches(rank_trace: RankTrace) -> pl.DataFrame: ...

    launches(rank_trace)["launch_index"]

The RankTrace stores the results until its method `forget` is called. Selecting a part of a rank creates another RankTrace,
which computes and stores its own results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from holotrace.store.rule_table import RulesInForce, rules_in_force
from holotrace.store.trace import RankTrace

P = ParamSpec("P")
T = TypeVar("T")


def derived(function: Callable[Concatenate[RankTrace, P], T]) -> Callable[Concatenate[RankTrace, P], T]:
    """Compute a fact once for each combination of rank and arguments, which must be hashable.

    >>> from holotrace.testing.builder import TraceBuilder
    >>> @derived
    ... def event_count(rank_trace: RankTrace) -> int:
    ...     print("counting")
    ...     return rank_trace.table("events").height
    >>> rank_trace = TraceBuilder().kernel("gemm", start_us=0, duration_us=1).build().ranks[0]
    >>> event_count(rank_trace) == event_count(rank_trace)
    counting
    True
    """

    @functools.wraps(function)
    def fact(rank_trace: RankTrace, /, *arguments: P.args, **options: P.kwargs) -> T:
        return rank_trace.derive(function, *arguments, **options)

    return fact


def derived_under_rules(function: Callable[Concatenate[RankTrace, P], T]) -> Callable[Concatenate[RankTrace, P], T]:
    """Like `derived`, but compute the fact again when the kernel rules change, for example after `add_rule`."""

    def under(rank_trace: RankTrace, _rules: RulesInForce, /, *arguments: P.args, **options: P.kwargs) -> T:
        return function(rank_trace, *arguments, **options)

    @functools.wraps(function)
    def fact(rank_trace: RankTrace, /, *arguments: P.args, **options: P.kwargs) -> T:
        return rank_trace.derive(under, rules_in_force(), *arguments, **options)

    return fact
