"""What should be tried first?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.enrich.compat import Compat
from holotrace.enrich.job.findings import joined_findings
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.recommendations.facts import EVENTS, RankFacts, facts, results_for_facts
from holotrace.recommendations.rules import OUR_RULES, Found, Rule, RuleSet, Thresholds
from holotrace.recommendations.tensorboard_plugin import PLUGIN_RULES
from holotrace.store.trace import Trace

_RULES: dict[Compat | None, RuleSet] = {None: OUR_RULES, "torch_tb_profiler": PLUGIN_RULES}
_RECOMMENDATIONS = {
    "rule": pl.String,
    "advice": pl.String,
    "rank_count": pl.Int64,
    "worth_fraction": pl.Float64,
    "analysis": pl.String,
}
_EVIDENCE = {
    "rule": pl.String,
    "rank": pl.Int32,
    "device": pl.Int32,
    "value_fraction": pl.Float64,
    "measure": pl.String,
    "limit_fraction": pl.Float64,
    "worth_ns": pl.Float64,
}
_EVENTS = {"rule": pl.String, "rank": pl.Int32, "device": pl.Int32, **EVENTS}


@dataclass(frozen=True, eq=False)
class Advice(EqualByContent):
    """What to try, and why.

    recommendations  one row for each rule that applies, a late rank first, then those by which most can be won, those
                     last of which that cannot be said:

        rule            str      late_rank, data_loading, data_parallel, ddp_backend, communication, low_utilization,
                                 mixed_precision or memory_limit
        advice          str      what was found and what to try, in a sentence
        rank_count      int64    ranks on which it applies
        worth_fraction  float64  0..1 of the mean step, at most to be won, on the rank with most; null where that cannot
                                 be said
        analysis        str      the analysis that shows more

    evidence         the numbers, one row for each rule, rank and device, in the same order:

        rule, rank      str, int32
        device          int32    null where it is not about one
        value_fraction  float64  0..1, what was measured; null where the rule is not about a share
        measure         str      what it is a share of; for rules about none what they looked for
        limit_fraction  float64  what it may be
        worth_ns        float64  of the mean step, at most to be won; null where that cannot be said

    events           what lies behind, the most telling first:

        rule, rank, device  as above
        event       str    name of the events; for memory of the operators whose blocks were alive at the peak
        call_count  int64  how many; null for times that are means
        total_ns    int64  how long; null for memory
        bytes       int64  null where it is not about sizes
        at_ns       int64  where to look: begin of the longest, or the moment of the peak; null where not known

    findings         rules that could not be asked, and what to record for them
    """

    recommendations: pl.DataFrame
    evidence: pl.DataFrame
    events: pl.DataFrame
    findings: tuple[str, ...] = ()


def advice(
    trace: Trace,
    *,
    thresholds: Thresholds | None = None,
    compat: Compat | None = None,
    executor: Executor = IN_PROCESS,
) -> Advice:
    """Look for what usually costs time or memory, and say what to try.

    Args:
        trace: the job.
        thresholds: from which values on a rule applies; by default those of the TensorBoard plugin.
        compat: "torch_tb_profiler" gives the plugin's rules with its numbers and mistakes.
        executor: where the ranks are worked on.

    Raises:
        InvalidOptionError: a threshold is no fraction.

    Source: docs/reference/advice.md derives each rule.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.advice(small_job()).recommendations.select("rule", "rank_count", "worth_fraction").rows()
    [('late_rank', 1, 0.2), ('communication', 1, 0.3)]
    """
    results = results_for_facts(trace, _RULES[compat].analyses, compat, executor)
    return advice_from(trace, results, thresholds=thresholds, compat=compat, executor=executor)


def advice_from(
    trace: Trace,
    results: Mapping[str, Any],
    *,
    thresholds: Thresholds | None = None,
    compat: Compat | None = None,
    executor: Executor = IN_PROCESS,
) -> Advice:
    """Return `advice` from results that are there already, by the names of their analyses."""
    of_ranks = facts(trace, results, compat, executor)
    rules = _RULES[compat].rules
    found = {rule: _cases(rule, of_ranks, thresholds or Thresholds()) for rule in rules}
    applying = sorted(filter(found.get, rules), key=lambda rule: (not rule.is_first, -(_worth(found[rule]) or 0)))
    return Advice(
        _table([_recommendation(rule, found[rule]) for rule in applying], _RECOMMENDATIONS),
        _table([_numbers(rule, each) for rule in applying for each in found[rule]], _EVIDENCE),
        _events([(rule, each) for rule in applying for each in found[rule]]),
        joined_findings({rank: _not_asked(facts, rules) for rank, facts in of_ranks.items()}),
    )


def _cases(rule: Rule, of_ranks: Mapping[int, RankFacts], thresholds: Thresholds) -> list[Found]:
    return [Found(rank, each, case) for rank, each in of_ranks.items() for case in rule.check(each, thresholds)]


def _worth(found: Sequence[Found]) -> float | None:
    """Return the largest share of a rank's mean step that may be won."""
    known = [
        each.case.worth_ns / each.facts.step_ns
        for each in found
        if each.case.worth_ns is not None and each.facts.step_ns > 0
    ]
    return max(known, default=None)


def _recommendation(rule: Rule, found: Sequence[Found]) -> dict[str, Any]:
    return {
        "rule": rule.name,
        "advice": rule.say(found),
        "rank_count": len({each.rank for each in found}),
        "worth_fraction": _worth(found),
        "analysis": rule.analysis,
    }


def _numbers(rule: Rule, found: Found) -> dict[str, Any]:
    case = found.case
    return {
        "rule": rule.name,
        "rank": found.rank,
        "device": case.device,
        "value_fraction": case.value,
        "measure": rule.measure,
        "limit_fraction": case.limit,
        "worth_ns": case.worth_ns,
    }


def _events(cases: Sequence[tuple[Rule, Found]]) -> pl.DataFrame:
    tables = [
        found.case.events.with_columns(
            pl.lit(rule.name).alias("rule"),
            pl.lit(found.rank, pl.Int32).alias("rank"),
            pl.lit(found.case.device, pl.Int32).alias("device"),
        ).select(*_EVENTS)
        for rule, found in cases
    ]
    return pl.concat([pl.DataFrame(schema=_EVENTS), *tables])


def _not_asked(of_rank: RankFacts, rules: Sequence[Rule]) -> list[str]:
    """Return what is missing, each with the rules that need it."""
    names_by_need: dict[str, list[str]] = {}
    for rule in rules:
        if (missing := rule.needs(of_rank)) is not None:
            names_by_need.setdefault(missing, []).append(rule.name)
    return [f"{' and '.join(names)} could not be asked: {missing}" for missing, names in names_by_need.items()]


def _table(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict(schema))
