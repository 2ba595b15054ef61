"""What should I try first?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from holotrace.content_equality import EqualByContent
from holotrace.enrich.compat import Compat, checked_compat
from holotrace.enrich.job.findings import joined_findings
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import MOST_ROWS, html_of, tables_of
from holotrace.questions.tables import PrintedTable, print_frame
from holotrace.recommendations.facts import EVENTS, HostFacts, RankFacts, analysis_plans, facts, host_plan
from holotrace.recommendations.rules import OUR_RULES, RankCase, Rule, RuleSet, Thresholds
from holotrace.recommendations.tensorboard_plugin import PLUGIN_RULES
from holotrace.store.plan import Answer, run_together, with_findings
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

    recommendations  one row for each rule that applies: first a late rank, then the rules that can save the most; rules
                     with unknown savings come last:

        rule            str      late_rank, data_loading, data_parallel, ddp_backend, communication, low_utilization,
                                 mixed_precision or memory_limit
        advice          str      what was found and what to try, in a sentence
        rank_count      int64    ranks on which it applies
        worth_fraction  float64  0..1 of the mean step: the most that can be saved on any rank; null if
                                 unknown
        analysis        str      the analysis that shows more

    evidence         the numbers, one row for each rule, rank and device, in the same order:

        rule, rank      str, int32
        device          int32    null if the rule is not about a device
        value_fraction  float64  0..1, as measured; null if the rule has no such value
        measure         str      the whole of which it is a fraction or, without a value, what the rule looks for
        limit_fraction  float64  the limit
        worth_ns        float64  the most that can be saved in the mean step; null if unknown

    events           the events behind the advice, the most important first:

        rule, rank, device  as above
        event       str    name of the events; for memory, of the operators whose blocks were alive at the peak
        call_count  int64  null for times that are means
        total_ns    int64  null for memory
        bytes       int64  null if the rule is not about sizes
        at_ns       int64  where to look: the start of the longest event, or the time of the peak; null if unknown

    findings         rules that could not be checked, and what to record for them
    """

    recommendations: pl.DataFrame
    evidence: pl.DataFrame
    events: pl.DataFrame
    findings: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The first recommendation, or a sentence that no rule applies."""
        if len(self.recommendations):
            first = str(self.recommendations["advice"][0])
            return f"{first[0].upper()}{first[1:]}."
        return "None of the rules that could be checked applies." if self.findings else "No rule applies."

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as lists of rows, and the findings; times are in ns, shares 0 to 1."""
        return {**tables_of(self), "findings": self.findings}

    def shown(self) -> PrintedTable:
        """Return the table of recommendations for people."""
        return print_frame("What to try first", self.recommendations, MOST_ROWS, telling="worth_fraction")

    def _repr_html_(self) -> str:
        """Show the first recommendation, the table of all, and the caveats in a notebook."""
        return html_of(self.answer, self.shown(), self.findings)


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
        thresholds: the limits at which rules begin to apply; by default the TensorBoard plugin's limits.
        compat: "torch_tb_profiler" gives the plugin's rules with its numbers and mistakes.
        executor: runs the work on the ranks; by default in this process.

    Raises:
        InvalidOptionError: a threshold is not a fraction.

    Source: docs/reference/advice.md, which derives each rule.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.advice(small_job()).recommendations.select("rule", "rank_count", "worth_fraction").rows()
    [('late_rank', 1, 0.2), ('communication', 1, 0.3)]
    """
    return advice_answer(trace, thresholds=thresholds, compat=compat, executor=executor).result


def advice_answer(
    trace: Trace, *, thresholds: Thresholds | None, compat: Compat | None, executor: Executor
) -> Answer[Advice]:
    """Return `advice`, and the ranks that it covers."""
    plans = analysis_plans(_RULES[checked_compat(compat)].analyses, compat)
    answers = run_together(trace, {**plans, "hosts": host_plan(compat)}, executor)
    tips = advice_on(answers.results["hosts"], answers.results, thresholds=thresholds, compat=compat)
    return Answer(with_findings(answers.findings, tips), answers.trace)


def advice_from(
    trace: Trace,
    results: Mapping[str, Any],
    *,
    thresholds: Thresholds | None = None,
    compat: Compat | None = None,
    executor: Executor = IN_PROCESS,
) -> Advice:
    """Return `advice` from existing results, given by the names of their analyses."""
    return advice_on(host_plan(compat).run(trace, executor), results, thresholds=thresholds, compat=compat)


def advice_on(
    hosts: Mapping[int, HostFacts],
    results: Mapping[str, Any],
    *,
    thresholds: Thresholds | None = None,
    compat: Compat | None = None,
) -> Advice:
    """Return `advice` from the results of `host_plan` and of the analyses."""
    of_ranks = facts(hosts, results)
    rules = _RULES[checked_compat(compat)].rules
    cases = {rule: _cases(rule, of_ranks, thresholds or Thresholds()) for rule in rules}
    applying = sorted(filter(cases.get, rules), key=lambda rule: (not rule.is_first, -(_worth(cases[rule]) or 0)))
    with_rules = [(rule, rank_case) for rule in applying for rank_case in cases[rule]]
    return Advice(
        _table([_recommendation(rule, cases[rule]) for rule in applying], _RECOMMENDATIONS),
        _table([_numbers(rule, rank_case) for rule, rank_case in with_rules], _EVIDENCE),
        _events(with_rules),
        joined_findings({rank: _not_checked(facts, rules) for rank, facts in of_ranks.items()}),
    )


def _cases(rule: Rule, of_ranks: Mapping[int, RankFacts], thresholds: Thresholds) -> list[RankCase]:
    return [RankCase(rank, facts, case) for rank, facts in of_ranks.items() for case in rule.check(facts, thresholds)]


def _worth(cases: Sequence[RankCase]) -> float | None:
    """Return the largest fraction of a rank's mean step that can be saved."""
    known = [(case.worth_ns, facts.step_ns) for _, facts, case in cases if case.worth_ns is not None]
    return max((worth_ns / step_ns for worth_ns, step_ns in known if step_ns > 0), default=None)


def _recommendation(rule: Rule, cases: Sequence[RankCase]) -> dict[str, Any]:
    return {
        "rule": rule.name,
        "advice": rule.say(cases),
        "rank_count": len({rank for rank, _, _ in cases}),
        "worth_fraction": _worth(cases),
        "analysis": rule.analysis,
    }


def _numbers(rule: Rule, rank_case: RankCase) -> dict[str, Any]:
    case = rank_case.case
    return {
        "rule": rule.name,
        "rank": rank_case.rank,
        "device": case.device,
        "value_fraction": case.value,
        "measure": rule.measure,
        "limit_fraction": case.limit,
        "worth_ns": case.worth_ns,
    }


def _events(with_rules: Sequence[tuple[Rule, RankCase]]) -> pl.DataFrame:
    tables = [
        case.events.with_columns(
            pl.lit(rule.name).alias("rule"),
            pl.lit(rank, pl.Int32).alias("rank"),
            pl.lit(case.device, pl.Int32).alias("device"),
        ).select(*_EVENTS)
        for rule, (rank, _, case) in with_rules
    ]
    return pl.concat([pl.DataFrame(schema=_EVENTS), *tables])


def _not_checked(of_rank: RankFacts, rules: Sequence[Rule]) -> list[str]:
    """Return a sentence for each kind of missing data, with the rules that need it."""
    names_by_need: dict[str, list[str]] = {}
    for rule in rules:
        if (missing := rule.needs(of_rank)) is not None:
            names_by_need.setdefault(missing, []).append(rule.name)
    return [f"cannot check {' and '.join(names)}: {missing}" for missing, names in names_by_need.items()]


def _table(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict(schema))
