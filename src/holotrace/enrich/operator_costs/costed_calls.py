"""Find the operator calls that launched device work or did work on the host, with their costs and times.

On a rank with a device, these calls launched kernels, copies or memsets. The time of a call is then the time in which
any of its device work ran. On a rank without a device, these calls did work on the host. The time of a call is then its
self time, plus the self time of the calls inside it that have no row of their own in the result.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.covered_by_group import covered_by_number
from holotrace.algorithms.intervals import intervals_of
from holotrace.algorithms.nested.nesting import NO_PARENT, furthest_above, itself_or_above, nearest_above
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.device.launches import asked_for, of_work
from holotrace.enrich.events.event_rows import gathered, of_events, rows_of_events
from holotrace.enrich.events.recorded_json import recorded_list
from holotrace.enrich.graph_attribution.grafted_tables import described_events
from holotrace.enrich.graph_attribution.grafts import grafts, may_graft
from holotrace.enrich.host.call_stack import call_stacks, called_names
from holotrace.enrich.host.host_names import NodeClass
from holotrace.enrich.host.operators import launching_operator
from holotrace.enrich.kernels.tensor_cores import uses_tensor_cores
from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import Cost, unknown
from holotrace.enrich.operator_costs.phases import phases
from holotrace.enrich.operator_costs.related_operators import RelatedOperators, forward_operators, operators_inside
from holotrace.enrich.operator_costs.request_sums import request_sums, steps_with_sums
from holotrace.enrich.operator_costs.rules import Rule, cost_by, rules_of
from holotrace.schema import EventKind, KernelKind
from holotrace.store.derived import derived_under_rules
from holotrace.store.trace import RankTrace

_Rows = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]

INPUTS = ("input_dims", "input_types", "input_strides", "concrete_inputs")
_RECORDED = ("kernel_flop", "kernel_gigabytes")
_KEYS = (
    "name",
    *INPUTS,
    *_RECORDED,
    "kernel",
    "is_on_tensor_cores",
    "is_graph",
    "step_name",
    "related",
    "product_count",
)
_COSTS = {
    "flops": pl.Int64,
    "bytes_moved": pl.Int64,
    "work": pl.String,
    "precision": pl.String,
    "dense_flops": pl.Int64,
    "reason": pl.String,
    "repeated_flops": pl.Int64,
}
_LARGEST = 2**63 - 1
_GRAPH = "the launch of a CUDA graph, whose operators ran when it was captured"
_TF32 = re.compile(r"tf32|xf32|s1688|s16816", re.IGNORECASE)
_AMD = re.compile(r"^Cijk_|mfma|^ck::|::ck::|_ck_|rocm|hip", re.IGNORECASE)
_SMALL = re.compile(r"^(float[864])(_.*)?$")
_PRODUCTS = ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::mv", "aten::addmv")


class CostedCalls(NamedTuple):
    """The calls of one rank, and the cost of each distinct call.

    calls      one row per call, sorted by row:

        row                int64   row in `call_stacks`; -1 for device work without a known operator
        event_index        uint32  the call; null for row -1
        phase              str     see `holotrace.enrich.operator_costs.phases`
        busy_ns            int64   time in which the call's work ran on the device; on a rank without a device, the
                                   call's time on the host
        tensor_core_ns     int64   summed time of the call's kernels on tensor cores
        other_core_ns      int64   summed time of the call's kernels on ordinary cores; kernels on unknown cores are in
                                   neither sum
        key                uint32  row in `keys`

    keys       one row per combination of operator, inputs and kernel: name (string id), the recorded inputs (string
               ids), kernel (string id of the longest kernel; null if there is none), flops, bytes_moved, work,
               precision in which the kernel computes, dense_flops, reason, repeated_flops
    on_device  whether the rank has a device
    earlier_ns summed time of work whose operators are unknown because the work was launched before the recording
    """

    calls: pl.DataFrame
    keys: pl.DataFrame
    on_device: bool
    earlier_ns: int


@derived_under_rules
def costed_calls(rank_trace: RankTrace) -> CostedCalls:
    """Return the calls of a rank, except communication, with their costs."""
    work = device_work(rank_trace)
    asked_ns = of_work(asked_for(rank_trace), work)["asked_ns"]
    computes = work["kernel_kind"] != KernelKind.COMMUNICATION
    earlier = work.filter(computes & asked_ns.is_null())
    counted = computes & asked_ns.is_not_null()
    calls = _calls_on_host(rank_trace) if work.is_empty() else _calls_on_device(rank_trace, work, counted)
    numbered, keys, related = _numbered(rank_trace, calls)
    numbered = numbered.with_columns(phases(rank_trace, numbered["row"]))
    earlier_ns = int((earlier["end_ns"] - earlier["start_ns"]).sum())
    return CostedCalls(numbered, keys.hstack(_costs(rank_trace, keys, related)), not work.is_empty(), earlier_ns)


def _calls_on_device(rank_trace: RankTrace, all_work: pl.DataFrame, counted: pl.Series) -> pl.DataFrame:
    owner, work = owners_of_work(rank_trace, all_work)[counted.to_numpy()], all_work.filter(counted)
    rows, group = np.unique(owner, return_inverse=True)
    lengths = (work["end_ns"] - work["start_ns"]).to_numpy()
    busy = covered_by_number(group, *intervals_of(work), len(rows))
    uses = of_events(uses_tensor_cores(rank_trace), work["event_index"])["uses_tensor_cores"]
    on_tensor, on_other = (np.where(chosen.fill_null(value=False).to_numpy(), lengths, 0) for chosen in (uses, ~uses))
    return pl.DataFrame(
        {
            "row": rows,
            "busy_ns": busy,
            "tensor_core_ns": np.bincount(group, on_tensor, len(rows)).astype(np.int64),
            "other_core_ns": np.bincount(group, on_other, len(rows)).astype(np.int64),
            "kernel": _longest(work["name"], lengths, group, len(rows)),
            "is_on_tensor_cores": np.bincount(group, on_tensor, len(rows)) > 0,
            "product_count": np.bincount(group, uses.fill_null(value=False).to_numpy(), len(rows)).astype(np.int64),
            "is_graph": np.bincount(group, _in_graph(rank_trace, all_work)[counted.to_numpy()], len(rows)) > 0,
        }
    )


def _in_graph(rank_trace: RankTrace, work: pl.DataFrame) -> _Bools:
    """Return, for each row of work, whether a CUDA or HIP graph replayed it and its operator is unknown."""
    if not may_graft(rank_trace):
        return np.zeros(work.height, np.bool_)
    nodes, owners = grafts(rank_trace)
    is_operator = (nodes["node_class"] == NodeClass.OPERATOR).to_numpy()
    operators = itself_or_above(nodes["above"].to_numpy(), is_operator, owners["graft"].to_numpy())
    unknown = owners["event_index"].filter(pl.Series(operators == NO_PARENT))
    in_graph: _Bools = work["event_index"].is_in(unknown.implode()).to_numpy()
    return in_graph


def _longest(names: pl.Series, lengths: _Rows, group: _Rows, count: int) -> pl.Series:
    """Return, for each group, the name of the work that ran longest."""
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, group, lengths)
    at = np.flatnonzero(lengths == longest[group])
    chosen = np.zeros(count, np.int64)
    chosen[group[at[::-1]]] = at[::-1]  # reversed, so that the first of equally long rows is written last and kept
    return names.gather(pl.Series(chosen))


def owners_of_work(rank_trace: RankTrace, work: pl.DataFrame) -> _Rows:
    """Return, for each row of work, the row in `call_stacks` of the call that caused it; -1 if no operator is known."""
    stacks = call_stacks(rank_trace)
    operators = of_work(launching_operator(rank_trace), work)["operator_index"]
    return owning_call(rank_trace, stacks, rows_of_events(stacks, operators))


def owning_call(rank_trace: RankTrace, stacks: pl.DataFrame, innermost: _Rows) -> _Rows:
    """Return, for each call, the call whose cost includes its work: the call itself, or a call around it.

    The result is the first of these calls that exists:

    1. the outermost call whose cost includes the calls inside it
    2. the innermost call with a rule
    3. the call itself
    """
    has_rule, is_whole = _rules_of(rank_trace, stacks)
    parent = stacks["parent_row"].to_numpy()
    whole = furthest_above(parent, is_whole, innermost)
    whole = np.where((whole == NO_PARENT) & np.append(is_whole, False)[innermost], innermost, whole)
    ruled = itself_or_above(parent, has_rule, innermost)
    return np.where(whole != NO_PARENT, whole, np.where(ruled != NO_PARENT, ruled, innermost))


@derived_under_rules
def _known_rules(rank_trace: RankTrace) -> dict[str, Rule | None]:
    """Return {name in `call_stacks`: its rule, or None}."""
    return rules_of(rank_trace.texts(called_names(rank_trace)))


def _rules_of(rank_trace: RankTrace, stacks: pl.DataFrame) -> tuple[_Bools, _Bools]:
    """Return which calls have a rule, and which calls have a rule whose cost includes the calls inside them."""
    names, known = called_names(rank_trace), _known_rules(rank_trace)
    rules = [known[text] for text in rank_trace.texts(names)]
    is_operator = (stacks["kind"] == EventKind.CPU_OP).to_numpy()
    has_rule, is_whole = (np.zeros(len(rank_trace.strings), np.bool_) for _ in range(2))
    has_rule[names.to_numpy()] = [rule is not None for rule in rules]
    is_whole[names.to_numpy()] = [rule is not None and rule.is_whole for rule in rules]
    of_row = stacks["name"].to_numpy()
    does_work = is_operator & ~_calls_itself(rank_trace, stacks, is_whole[of_row] & is_operator)
    return has_rule[of_row] & does_work, is_whole[of_row] & does_work


def _calls_itself(rank_trace: RankTrace, stacks: pl.DataFrame, is_whole: _Bools) -> _Bools:
    """Return which calls call their own operator again, or contain a call that does.

    An operator calls itself in two cases. In both of them, the inner call does the work.

    - An operator on a DTensor is recorded with the shapes of the whole tensor, and then calls itself on this rank's
      shard.
    - In `torch.vmap`, an operator is recorded with the shapes of one example, and then calls itself on the whole batch.
      `torch.vmap` may also replace one kind of matrix product by another, so all matrix products are one operator here.
    """
    parent, name, whole = stacks["parent_row"].to_numpy(), stacks["name"].to_numpy(), np.flatnonzero(is_whole)
    around = nearest_above(parent, is_whole, whole)
    calls_itself = np.zeros(len(parent), np.bool_)
    operator = _with_products_as_one(rank_trace)
    above = np.unique(around[(around != NO_PARENT) & (operator[name[whole]] == operator[name[around]])])
    while len(above):
        calls_itself[above] = True
        above = np.unique(nearest_above(parent, is_whole, above))
        above = above[above != NO_PARENT]
    return calls_itself


def _with_products_as_one(rank_trace: RankTrace) -> _Rows:
    """Return a number for each string id: -1 for the names of matrix products, and the string id itself for all others.

    `torch.vmap` may replace one kind of matrix product with another.
    """
    names = called_names(rank_trace)
    products = names.filter(rank_trace.texts(names).is_in(_PRODUCTS))
    operator: _Rows = np.arange(len(rank_trace.strings))
    operator[products.to_numpy()] = -1
    return operator


def _calls_on_host(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the calls that do work on the host.

    The time of a call is its self time plus the self time of the calls inside it that have no row of their own.
    """
    stacks = call_stacks(rank_trace)
    is_operator = (stacks["kind"] == EventKind.CPU_OP).to_numpy()
    operators = np.flatnonzero(is_operator)
    parent = stacks["parent_row"].to_numpy()
    own = (stacks["end_ns"] - stacks["start_ns"]).to_numpy().copy()
    inner = nearest_above(parent, is_operator, operators)
    np.subtract.at(
        own,
        inner[inner != NO_PARENT],
        (stacks["end_ns"] - stacks["start_ns"]).to_numpy()[operators[inner != NO_PARENT]],
    )
    owner = owning_call(rank_trace, stacks, operators)
    has_rule, _ = _rules_of(rank_trace, stacks)
    leaves_to_inner = _leaves_to_inner(parent, is_operator, operators[has_rule[operators] & (owner == operators)])
    owner = np.where(leaves_to_inner[owner], operators, owner)
    works = ~leaves_to_inner[operators]
    rows, group = np.unique(owner[works], return_inverse=True)
    sums = np.zeros(len(rows), np.int64)
    np.add.at(sums, group, np.maximum(own[operators[works]], 0))
    nothing = np.zeros(len(rows), np.int64)
    return pl.DataFrame(
        {
            "row": rows,
            "busy_ns": sums,
            "tensor_core_ns": nothing,
            "other_core_ns": nothing,
            "kernel": pl.Series([None] * len(rows), dtype=pl.UInt32),
            "is_on_tensor_cores": np.zeros(len(rows), np.bool_),
            "product_count": nothing,
            "is_graph": np.zeros(len(rows), np.bool_),
        }
    )


def _leaves_to_inner(parent: _Rows, is_operator: _Bools, with_rule: _Rows) -> _Bools:
    """Return which calls contain a call that has a rule; `_calls_on_host` drops them and keeps the inner calls."""
    leaves = np.zeros(len(parent), np.bool_)
    above = nearest_above(parent, is_operator, with_rule)
    while len(above):
        above = np.unique(above[above != NO_PARENT])
        above = above[~leaves[above]]
        leaves[above] = True
        above = nearest_above(parent, is_operator, above)
    return leaves


def _numbered(rank_trace: RankTrace, calls: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, RelatedOperators]:
    """Assign a key to each call; calls with the same key have the same cost.

    Return three values: the calls, each with the number of its key; the keys, in the order of their numbers; and the
    other operators on which the costs of the calls depend.
    """
    stacks, rows = call_stacks(rank_trace), calls["row"].to_numpy()
    event_index = gathered(stacks["event_index"], rows)
    related, of_forward = _related(rank_trace, stacks, rows)
    inputs = described_events(rank_trace, "operator_inputs", ["event_index", *INPUTS])
    compiled = described_events(rank_trace, "compiled_kernels", ["event_index", *_RECORDED])
    described = (
        calls.select("kernel", "is_on_tensor_cores", "is_graph")
        .with_columns(
            gathered(stacks["name"], rows).alias("name"),
            steps_with_sums(rank_trace, stacks, rows),
            related.numbers,
            product_count=calls["product_count"].zip_with(of_forward, pl.Series([None], dtype=pl.Int64)),
        )
        .hstack(of_events(inputs, event_index))
        .hstack(of_events(compiled, event_index))
        .select(_KEYS)
    )
    differing = [column for column in _KEYS if described[column].n_unique() > 1] or [_KEYS[0]]
    keys = described.unique(differing, keep="first", maintain_order=True)
    number = described.select(differing).join(
        keys.select(differing).with_row_index("key"), on=differing, how="left", nulls_equal=True, maintain_order="left"
    )
    counted = calls.drop("kernel", "is_on_tensor_cores", "product_count", "is_graph")
    return counted.with_columns(event_index=event_index, key=number["key"]), keys, related


def _related(rank_trace: RankTrace, stacks: pl.DataFrame, rows: _Rows) -> tuple[RelatedOperators, pl.Series]:
    """Return, for each call, the related operators that its rule reads, and whether these are forward operators."""
    numbers = pl.Series("related", [None], dtype=pl.UInt32).new_from_index(0, len(rows))
    lists: list[tuple[tuple[str | None, ...], ...]] = []
    of_forward = pl.Series([False]).new_from_index(0, len(rows))
    for reads, described in (("inside", operators_inside), ("forward", forward_operators)):
        is_reading = _read(rank_trace, stacks, rows, reads)
        if is_reading.any():
            chosen = described(rank_trace, rows[is_reading.to_numpy()])
            numbers = numbers.scatter(is_reading.arg_true(), chosen.numbers + len(lists))
            lists.extend(chosen.lists)
            of_forward = of_forward | (is_reading & (reads == "forward"))
    return RelatedOperators(numbers, tuple(lists)), of_forward


def _read(rank_trace: RankTrace, stacks: pl.DataFrame, rows: _Rows, reads: str) -> pl.Series:
    """Return, for each call, whether its cost rule uses related operators of the kind `reads`.

    The kind is "inside" (the operators inside the call) or "forward" (the forward operator of a backward call).
    """
    names, known = called_names(rank_trace), _known_rules(rank_trace)
    rules = [known[text] for text in rank_trace.texts(names)]
    reading = names.filter(pl.Series([rule is not None and rule.reads == reads for rule in rules], dtype=pl.Boolean))
    if reading.is_empty():
        return pl.Series([False]).new_from_index(0, len(rows))
    return gathered(stacks["name"], rows).is_in(reading.implode()).fill_null(value=False)


def _costs(rank_trace: RankTrace, keys: pl.DataFrame, related: RelatedOperators) -> pl.DataFrame:
    """Return the cost of each key."""
    texts = {column: rank_trace.texts(keys[column]).to_list() for column in ("name", "kernel", "step_name", *INPUTS)}
    recorded = keys.select(_RECORDED).rows()
    others = tuple(tuple(_arguments(*texts_of_call) for texts_of_call in calls) for calls in related.lists)
    rules = _known_rules(rank_trace)
    costs = [
        unknown(_GRAPH)
        if is_graph
        else _bounded(
            _cost(
                rules.get(values[0] or ""),
                dict(zip(texts, values, strict=True)),
                *of_kernel,
                related=() if number is None else others[number],
                product_count=product_count,
            )
        )
        for values, of_kernel, is_graph, number, product_count in zip(
            zip(*texts.values(), strict=True),
            recorded,
            keys["is_graph"],
            keys["related"],
            keys["product_count"],
            strict=True,
        )
    ]
    rows = [
        (
            cost.flops,
            cost.bytes,
            cost.work,
            computed_precision(cost.precision, kernel, is_on_tensor_cores=is_on_tensor_cores),
            cost.dense_flops,
            cost.reason,
            cost.repeated_flops,
        )
        for cost, kernel, is_on_tensor_cores in zip(costs, texts["kernel"], keys["is_on_tensor_cores"], strict=True)
    ]
    return pl.DataFrame(rows, schema=_COSTS, orient="row")


def _cost(  # noqa: PLR0913 -- the columns of a key
    rule: Rule | None,
    texts: dict[str, str | None],
    kernel_flop: float | None,
    kernel_gigabytes: float | None,
    *,
    related: tuple[Arguments, ...],
    product_count: int | None,
) -> Cost:
    name = texts["name"]
    if name is None:
        return unknown("the operator is unknown")
    if texts["input_dims"] is None and rule is not None:
        return unknown("the shapes of the inputs were not recorded (record_shapes=True)")
    recorded = {"flops": kernel_flop, "bytes": None if kernel_gigabytes is None else 1e9 * kernel_gigabytes}
    arguments = replace(
        _arguments(name, texts["input_dims"], texts["input_types"], texts["concrete_inputs"], texts["input_strides"]),
        kernels=() if texts["kernel"] is None else (texts["kernel"],),
        recorded={key: value for key, value in recorded.items() if value is not None},
        sums=request_sums(texts["step_name"]),
        related=related,
        product_count=product_count,
    )
    return cost_by(rule, arguments)


def _arguments(
    name: str | None, dims: str | None, types: str | None, values: str | None, strides: str | None = None
) -> Arguments:
    """Parse the inputs of a call from their texts in the trace file."""
    return Arguments(
        name or "",
        tuple(recorded_list(dims)),
        tuple(map(str, recorded_list(types))),
        tuple(recorded_list(strides)),
        tuple(map(str, recorded_list(values))),
    )


def computed_precision(of_inputs: str | None, kernel: str | None, *, is_on_tensor_cores: bool) -> str | None:
    """Return the precision of a kernel's arithmetic, given the precision of its inputs.

    float32 inputs on NVIDIA's tensor cores mean TF32, because these cores, unlike AMD's matrix cores, do not compute in
    float32. The names of 8-, 6- and 4-bit types are shortened, such as `float8_e4m3fn` to `float8`.
    """
    if of_inputs is None:
        return None
    name = kernel or ""
    if of_inputs == "float32" and (_TF32.search(name) or (is_on_tensor_cores and not _AMD.search(name))):
        return "tf32"
    return _SMALL.sub(r"\1", of_inputs)


def _bounded(cost: Cost) -> Cost:
    """Return the cost, or an unknown cost if a count is too large for its column."""
    counts = (cost.flops or 0, cost.bytes or 0, cost.dense_flops or 0, cost.repeated_flops)
    return cost if all(0 <= count <= _LARGEST for count in counts) else unknown("the sizes exceed those of any device")
