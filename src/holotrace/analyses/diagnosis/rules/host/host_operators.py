"""Rules about operators in jobs that compute on the host: needless copies, and float64."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import polars as pl

from holotrace.algorithms.intervals import concatenated, covered_length, intersection_length, union, union_of
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, Place, RankCase, Rule, Said, in_line
from holotrace.analyses.diagnosis.rules.host.launches import named_ranges
from holotrace.analyses.diagnosis.rules.host.operator_loops import of_the_backward_pass, outside_optimizers
from holotrace.enrich.collectives.collectives import answers
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.host.frames import OF_AUTOGRAD
from holotrace.units import percent_text

_LAYOUT = r"^aten::(clone|contiguous|copy_|reshape|flatten)$"
_GROWTH = r"^aten::(cat|concat|concatenate|stack|hstack|vstack|dstack|column_stack|row_stack)$"
_ONE_HOT = r"^aten::one_hot$"
_CASTS = r"^aten::(to|_to_copy|type_as)$"
_FILLS = (
    r"^aten::(zeros|ones|full|eye|zeros_like|ones_like|full_like|new_zeros|new_ones|new_full|zero_|fill_|repeat|tile|"
    r"repeat_interleave|flip|roll|rot90)$"
)
_COPIES = f"{_LAYOUT}|{_GROWTH}|{_ONE_HOT}|{_CASTS}|{_FILLS}"
"""Operators that compute nothing: they copy, convert or fill elements."""

_VIEWS = (
    r"^aten::(view|_unsafe_view|permute|transpose|t|as_strided|expand|unsqueeze|squeeze|select|slice|chunk|split|unbind|detach|alias"
    r"|movedim|swapaxes|view_as|expand_as|narrow|unflatten)$"
)
"""Operators that return a view of their input."""

_DEEPCOPY = r"\bcopy\.py\(\d+\): deepcopy$"

_MUCH_COPYING = 0.1
_MUCH_DOUBLE = 0.25
_NEARLY_ALL = 0.9
_NARROWER = r'"(float|c10::Half|c10::BFloat16)"'
_LISTS = '"TensorList"'
_SAVED_BY_FLOAT32 = 0.5
"""float32 takes half the memory of float64, and a vector unit processes twice as many elements at once."""


def host_copies(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for each function that spends much time in operators that only copy, convert or fill tensors."""
    pieces = outside_optimizers(evidence)
    if pieces.is_empty() or not evidence.computes_on_host:
        return
    operators = pieces.filter(pl.col("cause") == "operator")
    own = operators.join(of_the_backward_pass(evidence), on="event_index", how="anti", maintain_order="left")
    is_copy = pl.col("name").str.contains(_COPIES).fill_null(value=False)
    in_deepcopy = evidence.within(pieces, union_of(named_ranges(evidence, _DEEPCOPY)))
    for (frame,), of_frame in own.group_by("frame", maintain_order=True):
        copies = of_frame.filter(is_copy)
        if evidence.share(union_of(copies)) >= _MUCH_COPYING:
            case = case_of_operators(evidence, copies, subject=str(frame or ""))
            case = _of_deepcopy(evidence, case, in_deepcopy.filter(pl.col("frame") == frame))
            calls = _calls(evidence, of_frame).with_columns(is_copy.alias("is_copy"))
            words = {
                "count": calls["is_copy"].sum() / evidence.step_count,
                "again": _again(calls) / evidence.step_count,
            }
            yield replace(case, count=int(calls["is_copy"].sum()), words={**case.words, **words})


def _of_deepcopy(evidence: RankEvidence, case: Case, in_deepcopy: pl.DataFrame) -> Case:
    """Extend a case to all time in `copy.deepcopy` if at least half of the case's time is in `copy.deepcopy`."""
    times = union_of(in_deepcopy)
    is_most = 2 * intersection_length(times, case.explained) >= covered_length(*case.explained)
    whole = union(*concatenated([times, case.explained]))
    words = {**case.words, "is_deepcopy": is_most}
    return (
        replace(case, words=words)
        if not is_most
        else replace(case, explained=whole, value=evidence.share(whole), words=words)
    )


def _calls(evidence: RankEvidence, pieces: pl.DataFrame) -> pl.DataFrame:
    """Return the operators that Python calls, in order: name, elements (size of the first input; null if unknown)."""
    owns = pieces.unique("event_index", keep="first", maintain_order=True)
    names = of_events(evidence.rank_trace.table("events", ["event_index", "name"]), owns["event_index"])["name"]
    called = owns.filter(evidence.rank_trace.texts(names) == owns["name"])
    inputs = evidence.rank_trace.table("operator_inputs", ["event_index", "input_dims"])
    dims = evidence.rank_trace.texts(of_events(inputs, called["event_index"])["input_dims"])
    return called.select("name", answers(dims, _first_size, pl.Int64).alias("elements"))


def _first_size(dims: str | None) -> int | None:
    """Return the number of elements of the first input; None if it is unknown or not a tensor."""
    try:
        first = json.loads(dims or "")[0]
        return prod(first) or None if all(isinstance(size, int) for size in first) else None
    except (IndexError, TypeError, ValueError, RecursionError):
        return None


def _again(calls: pl.DataFrame) -> int:
    """Count the copies that follow a copy of equal size, with nothing but views between the two."""
    working = calls.filter(~pl.col("name").str.contains(_VIEWS))
    is_same = pl.col("elements") == pl.col("elements").shift()
    return int(working.select((pl.col("is_copy") & pl.col("is_copy").shift() & is_same).sum()).item() or 0)


def double_precision(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the operators on the host that compute in float64.

    For lists of tensors, such as the inputs of a fused optimizer, the profiler does not record element types. Operators
    whose inputs are lists of tensors are included if float64 operators take nearly all of the time of the other
    floating-point operators.
    """
    if not evidence.computes_on_host:
        return
    operators = evidence.while_idle.filter(pl.col("cause") == "operator")
    recorded = evidence.rank_trace.table("operator_inputs", ["event_index", "input_types"])
    types = evidence.rank_trace.texts(of_events(recorded, operators["event_index"])["input_types"])
    is_double = types.str.contains('"double"').fill_null(value=False)
    double = operators.filter(is_double)
    if double.is_empty():
        return
    double_ns, narrower_ns = (
        covered_length(*union_of(rows))
        for rows in (double, operators.filter(types.str.contains(_NARROWER).fill_null(value=False) & ~is_double))
    )
    if double_ns >= _NEARLY_ALL * (double_ns + narrower_ns):
        double = operators.filter(is_double | types.str.contains(_LISTS).fill_null(value=False))
    yield case_of_operators(evidence, double, saved_fraction=_SAVED_BY_FLOAT32)


def case_of_operators(
    evidence: RankEvidence, pieces: pl.DataFrame, *, subject: str = "", saved_fraction: float = 1.0
) -> Case:
    """Return the case for these operators; it names the operator that takes the most time."""
    times = union_of(pieces)
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns")
    first = pl.col("event_index", "start_ns").first()
    sums = pieces.group_by("name", "module", "frame", maintain_order=True).agg(time, first)
    most = sums.sort("time_ns", descending=True, maintain_order=True).row(0, named=True)
    name = most["name"].removeprefix(OF_AUTOGRAD)
    return Case(
        times,
        evidence.share(times),
        saved_fraction,
        count=pieces["event_index"].n_unique(),
        subject=subject,
        place=Place(most["module"], name, None, most["frame"], most["event_index"], most["start_ns"]),
        words={"share": evidence.share(times), "name": name},
        is_at_most=True,
    )


def _say_copies(cases: Sequence[RankCase]) -> Said:
    words, place = cases[0].words, cases[0].place
    if words["is_deepcopy"]:
        return Said(
            f"copy.deepcopy copies {words['count']:,.0f} tensors per step{in_line(place)}",
            "Make the copy less often, or copy only the tensors that you need. Tensor.copy_() into tensors that you allocated once is faster.",
        )
    again = (
        f"; {words['again']:,.0f} of them directly after another copy of the same size" if words["again"] >= 1 else ""
    )
    return Said(
        f"{words['count']:,.0f} calls per step that only copy, convert or fill tensors take {percent_text(words['share'])} of the "
        f"step, mostly {words['name']}{in_line(place)}{again}",
        next(advice for pattern, advice in _WAYS_OUT.items() if re.search(pattern, words["name"])),
    )


_WAYS_OUT = {
    _LAYOUT: "Drop .clone() where nothing changes the tensor in place, and .contiguous() before operators that accept other "
    "layouts; keep one layout across consecutive operators.",
    _GROWTH: "Allocate the full tensor once and write into slices of it, or collect the pieces in a list and concatenate them once at "
    "the end.",
    _ONE_HOT: "Look up the rows with torch.nn.functional.embedding instead of multiplying by a one-hot matrix.",
    _CASTS: "Create each tensor in the type in which it is used, and keep one type across consecutive operators.",
    _FILLS: "Create the tensor once outside the loop, and use expand() instead of repeat().",
}
"""The advice for each pattern of operator names. A finding gives the advice for the operator that takes the most
time."""


def _say_double(cases: Sequence[RankCase]) -> Said:
    words, place = cases[0].words, cases[0].place
    return Said(
        f"operators compute in float64 for {percent_text(words['share'])} of the step, mostly {words['name']}{in_line(place)}",
        "If the model does not need float64, convert its inputs with .float() (NumPy arrays are float64) and drop .double() and "
        "torch.set_default_dtype(torch.float64).",
    )


RULES = (
    Rule(
        "host_copies",
        "functions whose operators only copy, convert or fill tensors, in jobs without device work",
        threshold=_MUCH_COPYING,
        unit=OF_THE_STEP,
        reason="Models copy a little in each step, for example to split heads, but this takes less than a tenth of the step.",
        source="https://docs.pytorch.org/docs/stable/tensor_view.html",
        check=host_copies,
        say=_say_copies,
        precedence=1,
        confidence="medium",
    ),
    Rule(
        "double_precision",
        "operators with float64 inputs on the host, in jobs without device work",
        threshold=_MUCH_DOUBLE,
        unit=OF_THE_STEP,
        reason="A few statistics in float64 cost little. If float64 takes a quarter of the step, the model itself uses "
        "float64.",
        source="https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html",
        check=double_precision,
        say=_say_double,
        precedence=2,
        confidence="medium",
    ),
)
"""The rules about operators on the host."""
