"""Where in the program do two traces differ?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import polars as pl

from holotrace.algorithms.changes import change_of_count
from holotrace.algorithms.nested.nesting import NO_PARENT
from holotrace.analyses.compare_operators.tensorboard_plugin import PluginSide, plugin_pairs
from holotrace.enrich.compat import Compat, checked_compat
from holotrace.enrich.device.devices import devices_of_rank
from holotrace.enrich.host.call_paths import PHASES, SEPARATOR, SUMS, call_paths
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.host.host_nodes import host_nodes
from holotrace.enrich.job.rank_tables import typed
from holotrace.enrich.steps.steps import steps
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.questions.result import Result
from holotrace.store.trace import RankTrace, Trace, Visit

Measure = Literal["device", "host"]
MEASURES: tuple[Measure, ...] = ("device", "host")

_SIDES = ("control", "test")
_COMPARED = {f"{name}_ns_per_step": pl.Float64 for name in (*_SIDES, "difference")}
_PAIRS = {f"{side}_{name}": pl.Int64 for name in SUMS for side in _SIDES}
_TREE = {
    **dict.fromkeys(("node", "parent"), pl.Int64),
    "depth": pl.Int32,
    **dict.fromkeys(("kind", "name", "change", "measure"), pl.String),
    **_COMPARED,
    **_PAIRS,
}
_OVERALL = {
    "side": pl.String,
    **dict.fromkeys(("rank_count", "step_count", "host_total_ns", "device_total_ns"), pl.Int64),
}
_PER_OPERATOR = {**dict.fromkeys(("operator", "change"), pl.String), **_COMPARED, **_PAIRS}


@dataclass(frozen=True, eq=False, repr=False)
class OperatorComparison(Result):
    """Two traces, aligned by call path.

    tree          one row per call path (phase, modules, operators, kernel) in either trace. Rows come after their parents;
                  siblings are sorted by change, the largest first:

        node                  int64    row number
        parent                int64    row of the enclosing path; -1 for phases
        depth                 int32
        kind                  str      phase, range (data loader, optimizer), module, operator, kernel (or copy, memset)
        name                  str
        change                str      change of the call count: added, deleted, increased, decreased, unchanged
        measure               str      the time compared: device or host
        control_ns_per_step, test_ns_per_step   float64  mean per step of the time compared, including nested events
        difference_ns_per_step         float64  test - control
        control_…, test_…     int64    call_count, host_total_ns, host_self_ns, device_total_ns, device_self_ns: sums over
                                       ranks and steps. Each kernel counts in full, even if several
                                       run in parallel. The total times of a phase are sums over the
                                       calls inside it

    per_operator  one row per operator in either trace, the largest change first:

        operator              str
        change                str      change of the call count
        control_ns_per_step, test_ns_per_step   float64  mean self time per step, excluding nested operators
        difference_ns_per_step         float64
        control_…, test_…     int64    as above; nested calls of an operator are each counted in full

    sides         one row each for control and test:

        side                 str
        rank_count           int64
        step_count           int64    summed over the ranks; 0 if the traces are compared as a whole
        host_total_ns        int64    host time of all phases
        device_total_ns      int64

    measure       the time compared in `per_operator`: device if both traces have device work, else host
    findings      reasons why the traces are hard to compare

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> job = small_job()
    >>> holotrace.compare_operators(job.select([0]), job.select([1])).answer
    'From control to test, the time of aten::mm changed most: +200 µs per step.'
    """

    tree: pl.DataFrame
    per_operator: pl.DataFrame
    sides: pl.DataFrame
    measure: Measure
    findings: tuple[str, ...] = ()


class _Facts(NamedTuple):
    """The steps and modules of a rank or a trace. For a trace, `step_count` is 1 if every rank has steps, otherwise 0."""

    step_count: int
    has_modules: bool


class _Side(NamedTuple):
    """One of the two traces, or a single rank of a trace."""

    paths: pl.DataFrame
    rank_count: int
    step_count: int
    devices: tuple[str, ...]
    skipped: tuple[str, ...] = ()

    @property
    def has_device_work(self) -> bool:
        return bool((self.paths["device_total_ns"] > 0).any())


def compare_operators(
    control: Trace,
    test: Trace,
    *,
    by: Measure | None = None,
    compat: Compat | None = None,
    executor: Executor = IN_PROCESS,
) -> OperatorComparison:
    """Align the operators and kernels of two traces by phase, module and call path, and measure how their times changed.

    All threads, ranks and steps of a trace are combined. Each time is a mean over all steps of all ranks, so traces of
    different lengths and rank counts can be compared. If any rank has no steps, both traces are compared as a whole,
    and times are sums.
    Backward operators are attributed to the module of their forward operator. All kinds of data loaders are named
    `DataLoader`.

    Args:
        control: the baseline.
        test: the trace to compare with the baseline.
        by: the time to compare and sort by. The default is device time if both traces have device work, otherwise host
            time. Unless `by` is given, data loading and phases that launch no device work are compared by
            host time.
        compat: "torch_tb_profiler" aligns the traces as the last version of the TensorBoard plugin did. The plugin
            compared only the first thread of the first rank of each trace, and aligned its nodes by name, in order of
            time. A pair of nodes with different names is named `control → test`.
        executor: processes each rank.

    Raises:
        InvalidOptionError: `by` is neither `device` nor `host`.
        MissingDataError: a trace has neither operators nor device work.

    Source: docs/reference/analyses/compare_operators.md explains the definitions and how other tools differ.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> job = small_job()
    >>> result = holotrace.compare_operators(job.select([0]), job.select([1]))
    >>> result.per_operator.select("operator", "control_ns_per_step", "test_ns_per_step").head(1).rows()
    [('aten::mm', 300000.0, 500000.0)]
    """
    if by is not None and by not in MEASURES:
        message = f"by={by!r} is not one of: {', '.join(MEASURES)}"
        raise InvalidOptionError(message)
    aligned = _ALIGNED[checked_compat(compat)]
    return aligned(control, test, by, executor)


def _as_we_do(control: Trace, test: Trace, by: Measure | None, executor: Executor) -> OperatorComparison:
    visits = [trace.visit(_facts, executor) for trace in (control, test)]
    facts = [visit.results.values() for visit in visits]
    have = [_Facts(all(rank.step_count for rank in of), any(rank.has_modules for rank in of)) for of in facts]
    look = partial(
        _one_rank,
        in_steps=all(trace.step_count for trace in have),
        with_modules=all(trace.has_modules for trace in have),
    )
    sides = [_side(visit, look, executor) for visit in visits]
    measure = by or ("device" if all(side.has_device_work for side in sides) else "host")
    lengths = [side.step_count or 1 for side in sides]
    paths = _joined([side.paths for side in sides], ["path", "kind", "name"])
    own = _joined([_by_name(side.paths) for side in sides], ["operator"]).with_columns(pl.lit(measure).alias("measure"))
    tree = _in_tree_order(_compared(paths.with_columns(_measure(measure, by)), "total", lengths))
    return OperatorComparison(
        typed(tree, _TREE),
        typed(_largest_first(_compared(own, "self", lengths), "operator"), _PER_OPERATOR),
        _overall(sides),
        measure,
        tuple(_findings(sides, have, by)),
    )


def _facts(rank_trace: RankTrace) -> _Facts:
    has_modules = (host_nodes(rank_trace)["node_class"].is_in([NodeClass.MODULE, NodeClass.LIGHTNING_MODULE])).any()
    return _Facts(steps(rank_trace)["step"].n_unique(), has_modules)


def _side(known: Visit[_Facts], look: Callable[[RankTrace], _Side], executor: Executor) -> _Side:
    visit = known.trace.visit(look, executor)
    ranks = visit.results.values()
    paths = pl.concat([rank.paths for rank in ranks])
    if paths.is_empty():
        first, rank_trace = next(iter(visit.trace.ranks.items()))
        raise MissingDataError.no_operators(analysis="compare_operators", rank=first, source=rank_trace.source)
    return _Side(
        paths.group_by("path", "kind", "name").agg(pl.col(SUMS).sum()),
        len(ranks),
        sum(rank.step_count for rank in ranks),
        tuple(sorted({name for rank in ranks for name in rank.devices})),
        (*known.findings, *visit.findings),
    )


def _one_rank(rank_trace: RankTrace, *, in_steps: bool, with_modules: bool) -> _Side:
    names = devices_of_rank(rank_trace)["device_name"].drop_nulls()
    step_count = _facts(rank_trace).step_count if in_steps else 0
    return _Side(call_paths(rank_trace, in_steps=in_steps, with_modules=with_modules), 1, step_count, tuple(names))


def _by_name(paths: pl.DataFrame) -> pl.DataFrame:
    operators = paths.filter(kind="operator")
    return operators.group_by(pl.col("name").alias("operator")).agg(pl.col(SUMS).sum())


def _joined(sides: list[pl.DataFrame], keys: list[str]) -> pl.DataFrame:
    """Join the sums of both traces by their keys; a path that is missing in one trace has sums of 0 there."""
    parts = [side.rename({name: f"{label}_{name}" for name in SUMS}) for label, side in zip(_SIDES, sides, strict=True)]
    both = parts[0].join(parts[1], on=keys, how="full", coalesce=True)
    return both.with_columns(pl.col(list(_PAIRS)).fill_null(0))


def _measure(measure: Measure, by: Measure | None) -> pl.Expr:
    """Return the time to compare for each path; by default, phases that launch no device work are compared by host time."""
    if by is not None:
        return pl.lit(by).alias("measure")
    phase = pl.col("path").str.split(SEPARATOR).list.get(1)
    launches = (pl.col("control_device_total_ns") + pl.col("test_device_total_ns")).sum().over(phase) > 0
    is_on_devices = launches & ~phase.str.ends_with(PHASES[0])
    return pl.when(is_on_devices).then(pl.lit(measure)).otherwise(pl.lit("host")).alias("measure")


def _compared(both: pl.DataFrame, part: Literal["total", "self"], lengths: list[int]) -> pl.DataFrame:
    """Compare the calls per step and the times per step; the column `measure` selects device or host time."""
    is_device = pl.col("measure") == "device"
    calls = [pl.col(f"{side}_call_count") / length for side, length in zip(_SIDES, lengths, strict=True)]
    control, test = (
        pl.when(is_device).then(f"{side}_device_{part}_ns").otherwise(f"{side}_host_{part}_ns") / length
        for side, length in zip(_SIDES, lengths, strict=True)
    )
    times = (
        control.alias("control_ns_per_step"),
        test.alias("test_ns_per_step"),
        (test - control).alias("difference_ns_per_step"),
    )
    return both.with_columns(change_of_count(*calls).alias("change"), *times)


def _largest_first(table: pl.DataFrame, name: str) -> pl.DataFrame:
    larger = pl.max_horizontal("control_ns_per_step", "test_ns_per_step")
    return table.sort(pl.col("difference_ns_per_step").abs(), larger, name, descending=[True, True, False])


def _in_tree_order(paths: pl.DataFrame) -> pl.DataFrame:
    """Put each path after its parent, and sort siblings by the size of their change, the largest first."""
    ordered = _largest_first(paths, "path")
    inside: dict[str, list[int]] = {}
    for row, path in enumerate(ordered["path"]):
        inside.setdefault(path.rpartition(SEPARATOR)[0], []).append(row)
    texts = ordered["path"].to_list()
    order: list[int] = []
    parents: list[int] = []
    depths: list[int] = []
    open_rows = [(row, NO_PARENT, 0) for row in reversed(inside.get("", []))]
    while open_rows:
        row, parent, depth = open_rows.pop()
        open_rows.extend((child, len(order), depth + 1) for child in reversed(inside.get(texts[row], [])))
        order.append(row)
        parents.append(parent)
        depths.append(depth)
    return ordered[order].with_columns(
        pl.int_range(pl.len()).alias("node"), pl.Series("parent", parents), pl.Series("depth", depths)
    )


def _overall(sides: list[_Side]) -> pl.DataFrame:
    totals = [side.paths.filter(kind="phase").select(pl.col(list(_OVERALL)[3:]).sum()) for side in sides]
    counts = {
        "side": _SIDES,
        **{name: [getattr(side, name) for side in sides] for name in ("rank_count", "step_count")},
    }
    return typed(pl.DataFrame(counts).hstack(pl.concat(totals)), _OVERALL)


def _findings(sides: list[_Side], have: list[_Facts], by: Measure | None) -> Iterator[str]:
    """Yield a sentence for each reason why the traces are hard to compare."""
    labels = dict(zip(_SIDES, zip(sides, have, strict=True), strict=True))
    yield from (f"{label}: {text}" for label, (side, _) in labels.items() for text in side.skipped)
    if without := [label for label, (_, has) in labels.items() if not has.step_count]:
        yield f"some ranks of {_listed(without)} have no steps, so both traces are compared as a whole, and times are sums"
    if len(without := [label for label, (_, has) in labels.items() if not has.has_modules]) == 1:
        yield f"{_listed(without)} has no modules, so the modules of the other trace are ignored; record with with_stack=True"
    if by is None and (without := [label for label, (side, _) in labels.items() if not side.has_device_work]):
        yield f"no device work was recorded in {_listed(without)}, so host times are compared"
    control, test = (", ".join(side.devices) for side in sides)
    if control and test and control != test:
        yield f"control ran on {control} and test on {test}, so their kernels may have different names"


def _listed(labels: list[str]) -> str:
    return " and ".join(labels)


def _as_the_plugin(control: Trace, test: Trace, by: Measure | None, _: Executor) -> OperatorComparison:
    """Align the first thread of the first rank of each trace."""
    measure = by or "host"
    sides = [PluginSide.of(next(iter(trace.ranks.values()))) for trace in (control, test)]
    measured = pl.lit(measure).alias("measure")
    tree = _compared(plugin_pairs(*sides).table(*sides).with_columns(measured), "total", [1, 1])
    joined = _joined([side.operators(side.top()) for side in sides], ["operator"]).with_columns(measured)
    own = _compared(joined, "self", [1, 1])
    counts = pl.DataFrame({"side": _SIDES, "rank_count": 1, "step_count": 0})
    totals = [tree.select(pl.col(f"{side}_{name}_total_ns").first() for name in MEASURES) for side in _SIDES]
    overall = pl.concat([part.rename(lambda name: name.partition("_")[2]) for part in totals])
    return OperatorComparison(
        typed(tree, _TREE),
        typed(_largest_first(own, "operator"), _PER_OPERATOR),
        typed(counts.hstack(overall), _OVERALL),
        measure,
    )


_ALIGNED = {None: _as_we_do, "torch_tb_profiler": _as_the_plugin}
