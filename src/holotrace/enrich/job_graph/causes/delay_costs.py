"""What each cause costs the ranks that wait because of it, after Scalasca's delay analysis.

Source: Böhme et al., "Identifying the Root Causes of Wait States in Large-Scale Parallel Applications", ACM Transactions on
Parallel Computing 3(2), 2016, https://doi.org/10.1145/2934661
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.graphs.propagation import Shares, pass_on
from holotrace.content_equality import EqualByContent
from holotrace.enrich.across_ranks.arrivals import ALIGNED_CLOCKS
from holotrace.enrich.across_ranks.matching.calls import OfRank
from holotrace.enrich.job_graph.causes.cause_names import CAUSE_COLUMNS, Cause
from holotrace.enrich.job_graph.causes.histories import Histories
from holotrace.enrich.job_graph.causes.lines import LAUNCH_DELAY, SYNCHRONISATION, UNKNOWN
from holotrace.enrich.job_graph.causes.synchronised import together_before

_Rows = npt.NDArray[np.int64]

BEFORE_RECORDING = "before the recording"
CLOCKS = "smaller than the error of the clocks"
UNMATCHED = "communication without its counterpart"
NOT_RECORDED = "work or launches that were not recorded"
_NOWHERE = -1

_NAMELESS = {LAUNCH_DELAY: "launch_delay", SYNCHRONISATION: "synchronisation", UNKNOWN: "unknown"}


@dataclass(frozen=True, eq=False)
class DelayCosts(EqualByContent):
    """What every cause costs.

    costs  one row per step, cause and waiting rank; they add up to the waits of the job:

        step           int64   of the wait; null outside the steps
        cause_rank     int32   null if it is unknown
        waiting_rank   int32
        cause          Enum    `CAUSES`
        name, module, frame  str
        cost_ns        int64
        error_ns       int64   how far cost_ns may be off, because several causes explain the same time, or because of clocks
        wait_count int64   communication in which the ranks waited for this cause directly, of all steps and waiting ranks
        first_instance int64   the first of it; null if the cause only had indirect costs
        first_ns       int64   its start on the clock of the cause's rank

    waits  one row per call that waited: instance, rank, step, wait_ns (0 if its step is not chosen), and passed_on_ns, what
           later waits of the job it caused
    """

    costs: pl.DataFrame
    waits: pl.DataFrame


_TARGETS: dict[str, pl.DataType | type[pl.DataType]] = {
    "wait": pl.Int64,
    "weight": pl.Int64,
    "error": pl.Int64,
    "upstream": pl.Int64,
    "cause_rank": pl.Int32,
    "cause": pl.Int64,
}


def delay_costs(
    calls: pl.DataFrame, histories: Mapping[int, Histories], steps: Sequence[int] | None = None
) -> DelayCosts:
    """Divide the waits of a job among their causes.

    Rank b waits in a communication for rank a, the last to arrive. Since the ranks of this communication were last
    together, a and b both divided their time among causes p. With t(p) the time of a cause:

        excess(p) = max(0, t_a(p) - t_b(p))
        cost(p)   = wait_b * excess(p) / sum of excess

    The time that a waited for others in that period is one of the p; its cost belongs to the causes of those waits, which
    are divided in the same way, until something is found that is not a wait.

    Args:
        calls: `JobCalls.calls`, with the column of `with_call_rows`.
        histories: {rank: what the rank did before its calls}.
        steps: divide only the waits in these steps.
    """
    known = calls.drop_nulls("instance").filter(pl.col("wait_ns").is_not_null(), pl.col("rank").is_in(list(histories)))
    known = known.filter(pl.len().over("instance") > 1).sort("instance", "rank")
    waits = _waits(known)
    spent, causes = _spent(known, calls, waits, histories)
    targets = _targets(waits, spent)
    return _costs(waits, targets, causes, steps)


def with_call_rows(calls: pl.DataFrame, of_ranks: Mapping[int, OfRank]) -> pl.DataFrame:
    """Add to the calls of a job the row that each has in `OfRank.calls` of its rank."""
    rows = [
        known.calls.select(pl.lit(rank, pl.Int32).alias("rank"), "event_index").with_row_index("call")
        for rank, known in of_ranks.items()
    ]
    numbered = pl.concat(rows).cast({"call": pl.Int64})
    return calls.join(numbered, on=["rank", "event_index"], how="left", maintain_order="left")


def _waits(known: pl.DataFrame) -> pl.DataFrame:
    """Return the calls that waited or were waited for, with `wait`: the number of each that waited, in time order, and `late`."""
    begin = pl.coalesce("aligned_start_ns", "start_ns")
    met = (begin + pl.col("wait_ns")).max().over("instance")
    least = pl.col("wait_ns") == pl.col("wait_ns").min().over("instance")
    shared = known.filter(pl.col("wait_ns").max().over("instance") > 0).with_columns(met.alias("met_ns"))
    late_row = shared.with_columns(least.alias("least"), begin.alias("begin")).filter("least")
    late = late_row.sort("begin", "rank").unique("instance", keep="last", maintain_order=True)
    of_late = late.select(
        "instance", late="rank", late_ns="start_ns", late_clock="clock", late_half_width_ns="half_width_ns"
    )
    apart = pl.col("half_width_ns") + pl.col("late_half_width_ns")
    error = pl.when(pl.col("clock") == pl.col("late_clock")).then(0).otherwise(apart).alias("clock_error_ns")
    ordered = shared.join(of_late, on="instance", how="left").with_columns(error).sort("met_ns", "instance", "rank")
    number = pl.when(pl.col("wait_ns") > 0).then((pl.col("wait_ns") > 0).cum_sum() - 1).cast(pl.Int64)
    return ordered.with_columns(number.alias("wait")).with_row_index("query").cast({"query": pl.Int64})


def _spent(
    known: pl.DataFrame, calls: pl.DataFrame, waits: pl.DataFrame, histories: Mapping[int, Histories]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return how long each call's rank did what since the ranks were together, and the table of causes of all ranks.

    Returns:
        query     int64  row of `waits`
        cause     int64  row of the table of causes; null for waiting
        upstream  int64  number of the wait; null for other causes
        is_lost   bool   in communication whose counterpart is unknown
        ns        int64
    """
    causes, numbers = _all_causes(histories, calls)
    begin_ns = {rank: history.begin_ns for rank, history in histories.items()}
    since = together_before(known, begin_ns)
    placed = waits.join(
        known.select("instance", "rank", since), on=["instance", "rank"], how="left", maintain_order="left"
    )
    tables = [
        _of_rank(rank, history=history, placed=placed, calls=calls, waits=waits, numbers=numbers[rank], causes=causes)
        for rank, history in histories.items()
    ]
    return pl.concat(tables), causes


_SPENT: dict[str, pl.DataType | type[pl.DataType]] = {
    "query": pl.Int64,
    "cause": pl.Int64,
    "upstream": pl.Int64,
    "is_lost": pl.Boolean,
    "ns": pl.Int64,
}


def _of_rank(  # noqa: PLR0913 -- the tables that describe a rank
    rank: int,
    *,
    history: Histories,
    placed: pl.DataFrame,
    calls: pl.DataFrame,
    waits: pl.DataFrame,
    numbers: _Rows,
    causes: pl.DataFrame,
) -> pl.DataFrame:
    mine = placed.filter(pl.col("rank") == rank)
    if mine.is_empty():
        return pl.DataFrame(schema=_SPENT)
    rows = mine["call"].to_numpy().astype(np.int64)
    parts = history.lines.before(rows, mine["since_ns"].to_numpy())
    query = mine["query"].gather(parts["query"])
    cause = pl.Series("cause", numbers[parts["cause"].to_numpy()])
    parts = parts.with_columns(query.alias("query"), cause)
    own = calls.filter(pl.col("rank") == rank).select(
        "call", "instance", "wait_ns", "start_ns", transfer=_transfer_causes(causes, pl.col("collective"))
    )
    number = waits.filter(pl.col("rank") == rank).select("instance", "wait")
    inside = (
        parts.filter(pl.col("call") >= 0)
        .drop("cause")
        .join(own.join(number, on="instance", how="left"), on="call", how="left", suffix="_call")
    )
    met = pl.col("start_ns_call") + pl.col("wait_ns").fill_null(0)
    waited = (pl.min_horizontal("end_ns", met) - pl.col("start_ns")).clip(0).alias("ns")
    length = pl.col("end_ns") - pl.col("start_ns")
    none = pl.lit(None, pl.Int64)
    matched = pl.col("wait_ns").is_not_null()
    tables = [
        parts.filter(pl.col("call") < 0).select(
            "query", "cause", none.alias("upstream"), pl.lit(value=False).alias("is_lost"), length.alias("ns")
        ),
        inside.filter(matched).select(
            "query", none.alias("cause"), pl.col("wait").alias("upstream"), pl.lit(value=False).alias("is_lost"), waited
        ),
        inside.filter(matched).select(
            "query",
            pl.col("transfer").cast(pl.Int64).alias("cause"),
            none.alias("upstream"),
            pl.lit(value=False).alias("is_lost"),
            (length - waited).alias("ns"),
        ),
        inside.filter(~matched).select(
            "query",
            none.alias("cause"),
            none.alias("upstream"),
            pl.lit(value=True).alias("is_lost"),
            length.alias("ns"),
        ),
    ]
    summed = pl.concat(
        table.select(pl.col(name).cast(kind) for name, kind in _SPENT.items()) for table in tables
    ).filter(pl.col("ns") > 0)
    return summed.group_by("query", "cause", "upstream", "is_lost").agg(pl.col("ns").sum()).select(list(_SPENT))


def _transfer_causes(causes: pl.DataFrame, collective: pl.Expr) -> pl.Expr:
    rows = causes.with_row_index("row").filter(pl.col("cause") == "communication")
    mapping = dict(zip(rows["name"].to_list(), rows["row"].to_list(), strict=True))
    return collective.replace_strict(mapping, default=None, return_dtype=pl.Int64)


def _all_causes(histories: Mapping[int, Histories], calls: pl.DataFrame) -> tuple[pl.DataFrame, dict[int, _Rows]]:
    """Return the distinct causes of all ranks, and for each rank the row of its causes; the last rows are `_NAMELESS`."""
    families = calls["collective"].unique().sort()
    transfers = pl.DataFrame({"cause": ["communication"] * len(families), "name": families}).with_columns(
        pl.col("cause").cast(Cause)
    )
    special = pl.DataFrame(
        {
            "cause": [*_NAMELESS.values(), *["unknown"] * 3],
            "name": [None, None, NOT_RECORDED, BEFORE_RECORDING, CLOCKS, UNMATCHED],
        }
    )
    special = special.with_columns(pl.col("cause").cast(Cause))
    tables = [transfers, special, *(history.causes for history in histories.values())]
    every = pl.concat(tables, how="diagonal").select(pl.col(name).cast(kind) for name, kind in CAUSE_COLUMNS.items())
    distinct = every.unique(maintain_order=True)
    keys = list(CAUSE_COLUMNS)
    number = (
        every.join(distinct.with_row_index("row"), on=keys, how="left", nulls_equal=True, maintain_order="left")["row"]
        .to_numpy()
        .astype(np.int64)
    )
    nameless = {code: number[len(families) + place] for place, code in enumerate(_NAMELESS)}
    numbers, first = {}, len(transfers) + len(special)
    for rank, history in histories.items():
        own = number[first : first + len(history.causes)]
        # Negative codes count from the end, as numpy does.
        tail = [nameless[code] for code in sorted(_NAMELESS)]
        numbers[rank] = np.concatenate([own, np.array(tail, np.int64)])
        first += len(history.causes)
    return distinct, numbers


def _targets(waits: pl.DataFrame, spent: pl.DataFrame) -> pl.DataFrame:
    """Return what causes each wait, with its weight; `cause` is -1, -2, -3 for what `BEFORE_RECORDING`, … explain."""
    waiting = waits.drop_nulls("wait")
    resolved = waiting.filter(~_is_unresolved())
    pairs = _with_excess(resolved, waits, spent)
    followed = _upstream(pairs, spent)
    is_earlier = (pl.col("upstream") < pl.col("wait")).fill_null(value=False)
    tables = [
        _own(pairs, spent),
        followed.filter(is_earlier),
        followed.filter(~is_earlier).select("wait", "weight", cause=pl.lit(-3, pl.Int64)),
        pairs.select("wait", weight="unexplained_ns", cause=pl.lit(-1, pl.Int64)),
        waiting.filter(_is_unresolved()).select("wait", weight="wait_ns", cause=pl.lit(-2, pl.Int64)),
    ]
    every = pl.concat(tables, how="diagonal").filter(pl.col("weight") > 0)
    bounded = _with_errors(every, waiting.select("wait", "wait_ns", "clock_error_ns"))
    return bounded.select(pl.col(name).cast(kind) for name, kind in _TARGETS.items())


def _with_errors(targets: pl.DataFrame, waiting: pl.DataFrame) -> pl.DataFrame:
    """Add how far the cost of each cause of a wait may be off: several causes may each explain the same time.

    With w the wait, e the excess of the cause, and S the sum over all causes, its cost is at least w - (S - e), and at
    most e or w. The clocks may shift what the rank waited by their error.
    """
    known = targets.join(waiting, on="wait", how="left").with_columns(pl.col("excess").fill_null(pl.col("weight")))
    rest = pl.col("excess").sum().over("wait") - pl.col("excess")
    least, most = (pl.col("wait_ns") - rest).clip(0), pl.min_horizontal("excess", "wait_ns")
    by_clock = pl.col("clock_error_ns").fill_null(0) * pl.col("weight") / pl.col("wait_ns")
    off = pl.max_horizontal(most - pl.col("weight"), pl.col("weight") - least).clip(0)
    return known.with_columns((off + by_clock.round().cast(pl.Int64)).alias("error"))


def _with_excess(resolved: pl.DataFrame, waits: pl.DataFrame, spent: pl.DataFrame) -> pl.DataFrame:
    """Return each wait with the queries of both ranks, and how it divides among the late rank's work and its waiting.

    Returns:
        wait, query, late_query, late, wait_ns
        own_ns          what the late rank worked longer than the waiting one
        waited_ns       what it waited longer
        unexplained_ns  what neither explains, because the ranks were not together when their histories begin
    """
    late = waits.filter(pl.col("rank") == pl.col("late")).select("instance", late_query="query")
    totals = spent.group_by("query").agg(
        pl.col("ns").filter(pl.col("cause").is_not_null()).sum().alias("work"),
        pl.col("ns").filter(pl.col("cause").is_null()).sum().alias("waiting"),
    )
    pairs = (
        resolved.select("wait", "query", "instance", "late", "wait_ns")
        .join(late, on="instance")
        .join(totals, on="query", how="left")
        .join(totals.select(pl.all().name.prefix("late_")), on="late_query", how="left")
        .with_columns(pl.col("work", "waiting", "late_work", "late_waiting").fill_null(0))
    )
    own, waited = pl.col("late_work") - pl.col("work"), pl.col("late_waiting") - pl.col("waiting")
    unexplained = pl.col("wait_ns") - own.clip(0) - waited.clip(0)
    return pairs.with_columns(
        own.clip(0).alias("own_ns"), waited.clip(0).alias("waited_ns"), unexplained.clip(0).alias("unexplained_ns")
    )


def _own(pairs: pl.DataFrame, spent: pl.DataFrame) -> pl.DataFrame:
    """Divide what the late rank worked longer among the causes of which it has more time than the waiting rank."""
    known = spent.drop_nulls("cause")
    theirs = pairs.filter(pl.col("own_ns") > 0).join(
        known.select("cause", late_query="query", late_ns="ns"), on="late_query"
    )
    compared = theirs.join(known.select("query", "cause", "ns"), on=["query", "cause"], how="left")
    excess = (pl.col("late_ns") - pl.col("ns").fill_null(0)).clip(0)
    share = pl.col("own_ns") * (excess / excess.sum().over("wait"))
    weight = share.round().cast(pl.Int64).alias("weight")
    return compared.select("wait", "cause", weight, excess.alias("excess"), cause_rank="late")


def _upstream(pairs: pl.DataFrame, spent: pl.DataFrame) -> pl.DataFrame:
    """Divide what the late rank waited longer among its earlier waits; `upstream` is null if nothing is known of one."""
    waiting = spent.filter(pl.col("cause").is_null()).select("upstream", late_query="query", late_ns="ns")
    earlier = pairs.filter(pl.col("waited_ns") > 0).join(waiting, on="late_query")
    share = pl.col("waited_ns") * (pl.col("late_ns") / pl.col("late_ns").sum().over("wait"))
    return earlier.select("wait", "upstream", share.round().cast(pl.Int64).alias("weight"))


def _is_unresolved() -> pl.Expr:
    """Whether the clocks of several hosts do not show that the rank waited."""
    by_clocks = pl.col("transfer_basis") == ALIGNED_CLOCKS
    return (by_clocks & (pl.col("wait_ns") <= pl.col("clock_error_ns"))).fill_null(value=False)


def _costs(waits: pl.DataFrame, targets: pl.DataFrame, causes: pl.DataFrame, steps: Sequence[int] | None) -> DelayCosts:
    ends = targets.filter(pl.col("upstream").is_null()).select("cause_rank", "cause").unique()
    ends = ends.sort("cause_rank", "cause").with_row_index("end").cast({"end": pl.Int64})
    rows = targets.join(ends, on=["cause_rank", "cause"], how="left", nulls_equal=True).with_columns(
        pl.when(pl.col("upstream").is_null()).then(-1 - pl.col("end")).otherwise("upstream").alias("target")
    )
    rows = rows.sort("wait", "target")
    waiting = waits.drop_nulls("wait").sort("wait")
    first = np.searchsorted(rows["wait"].to_numpy(), np.arange(len(waiting) + 1)).astype(np.int64)
    shares = Shares(first, rows["target"].to_numpy(), rows["weight"].to_numpy())
    labels = (
        waiting.select("step", "rank").unique(maintain_order=True).with_row_index("label").cast({"label": pl.Int64})
    )
    start = waiting.join(labels, on=["step", "rank"], how="left", nulls_equal=True, maintain_order="left")
    chosen = start if steps is None else start.filter(pl.col("step").is_in(list(steps)))
    arrived = pass_on(shares, *(chosen[name].to_numpy() for name in ("wait", "label", "wait_ns")))
    found = pl.DataFrame({"label": arrived.label, "end": -1 - arrived.target, "cost_ns": arrived.amount})
    known = _errors(rows, shares, chosen, arrived.received, found)
    costs = (
        found.join(labels.rename({"rank": "waiting_rank"}), on="label")
        .join(ends.join(_evidence(rows, waiting), on="end", how="left").join(known, on="end", how="left"), on="end")
        .with_columns(
            _named_row(causes), (pl.col("cost_ns") * pl.col("error_share")).round().cast(pl.Int64).alias("error_ns")
        )
        .join(causes.rename({"cause": "kind"}).with_row_index("row").cast({"row": pl.Int64}), on="row", how="left")
    )
    named = costs.select(
        "step",
        "cause_rank",
        "waiting_rank",
        pl.col("kind").alias("cause"),
        "name",
        "module",
        "frame",
        "cost_ns",
        "error_ns",
        "wait_count",
        "first_instance",
        "first_ns",
    )
    is_chosen = pl.col("wait").is_in(chosen["wait"].implode())
    passed = waiting.select(
        "instance",
        "rank",
        "step",
        pl.when(is_chosen).then("wait_ns").otherwise(0).alias("wait_ns"),
        pl.Series("passed_on_ns", arrived.received),
    )
    order = ["cost_ns", "step", "cause_rank", "waiting_rank", "cause", "name", "module", "frame"]
    ordered = named.sort(order, descending=[True, *[False] * (len(order) - 1)], nulls_last=True)
    return DelayCosts(ordered, passed)


def _errors(
    rows: pl.DataFrame, shares: Shares, chosen: pl.DataFrame, received: _Rows, found: pl.DataFrame
) -> pl.DataFrame:
    """Return, for each final cause, its error as a share of its cost: that of its own shares, and of what led to them."""
    reached = received.copy()
    np.add.at(reached, chosen["wait"].to_numpy(), chosen["wait_ns"].to_numpy())
    totals = pl.col("weight").sum().over("wait")
    off = rows.with_columns(
        (pl.Series("reached", reached[rows["wait"].to_numpy()]) * pl.col("error") / totals)
        .round()
        .cast(pl.Int64)
        .alias("off")
    ).filter(pl.col("off") > 0)
    led = off.drop_nulls("upstream")
    passed = pass_on(shares, led["upstream"].to_numpy(), np.zeros(len(led), np.int64), led["off"].to_numpy())
    direct = off.filter(pl.col("upstream").is_null()).select("end", "off")
    indirect = pl.DataFrame({"end": -1 - passed.target, "off": passed.amount})
    errors = pl.concat([direct, indirect]).group_by("end").agg(pl.col("off").sum())
    costs = found.group_by("end").agg(pl.col("cost_ns").sum().alias("total"))
    share = (pl.col("off").fill_null(0) / pl.col("total")).alias("error_share")
    return costs.join(errors, on="end", how="left").select("end", share)


def _named_row(causes: pl.DataFrame) -> pl.Expr:
    numbered = causes.with_row_index("row").filter(pl.col("cause") == "unknown")
    row_of = dict(zip(numbered["name"].to_list(), numbered["row"].to_list(), strict=True))
    names = {-1: BEFORE_RECORDING, -2: CLOCKS, -3: UNMATCHED}
    return pl.col("cause").replace({code: row_of[name] for code, name in names.items()}).alias("row")


def _evidence(rows: pl.DataFrame, waiting: pl.DataFrame) -> pl.DataFrame:
    direct = rows.filter(pl.col("end").is_not_null()).join(waiting.select("wait", "instance", "late_ns"), on="wait")
    return direct.group_by("end").agg(
        pl.col("instance").n_unique().cast(pl.Int64).alias("wait_count"),
        pl.col("instance").min().alias("first_instance"),
        pl.col("late_ns").get(pl.col("instance").arg_min()).alias("first_ns"),
    )
