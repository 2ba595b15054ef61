"""The rule about Python loops that call operators for each element or row, in jobs that compute on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import concatenated, holding, intervals_of, union, union_of
from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above, nearest_above
from holotrace.analyses.diagnosis.evidence.callers import NAMELESS
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, Place, RankCase, Rule, Said
from holotrace.analyses.diagnosis.rules.host.launches import OPTIMIZER, named_ranges
from holotrace.enrich.events.event_rows import rows_of_events
from holotrace.enrich.host.frames import OF_AUTOGRAD, is_user_frame
from holotrace.enrich.host.host_names import MODULE_PREFIX
from holotrace.enrich.job_graph.causes.cause_names import host_ranges
from holotrace.schema import EventKind

_LEAST_SHARE = 0.05
_MANY = 64
"""If one call of a function runs an operator this often, the function almost certainly contains a loop."""
_MANY_OF_A_MODULE = 32
"""If one call of a function calls one module this often, the function almost certainly contains a loop. This limit can
be lower than the limit for operators, because each layer of a deep model is its own module, even if the layers are
identical."""
_OF_SAME_LOOP, _FEWEST = 4, 16
"""An operator belongs to the same loop as the function's most frequent operator if it runs at least a quarter as often
as that operator, and at least 16 times in one call of the function."""
_SMALL_NS = 200_000
"""Longer operators spend most of their time computing, so a loop of them costs little more than one large operator."""
_SHORT_NS = 100_000
"""Longer intervals of Python between two operators are separate work, not overhead of the loop."""

_CELLS = r"^aten::(lstm|gru|rnn_tanh|rnn_relu)_cell$"
"""Operators that process one step of a sequence. A module that processes the whole sequence at once is faster than
a loop of these operators, even if each operator takes long."""
_SAVED_BY_SEQUENCE = 0.5
"""Measured on a CPU: nn.LSTM instead of a loop of nn.LSTMCell (150 steps, batch 32, 128 wide) saves 27 % of a training step."""

_RUN_BACKWARD = r"^<built-in method run_backward"
_READS = r"^aten::(item|_local_scalar_dense|is_nonzero)$"
_ELEMENTS = r"^aten::(item|_local_scalar_dense|is_nonzero|select|unbind)$"
"""Operators that run when a script reads a tensor element by element."""

_CONVERTS = r"^<built-in method (tensor|as_tensor|scalar_tensor)\b"
"""PyTorch's functions that make a tensor from a Python number or list."""

_PLACE = ["module", "frame"]
_OPERATOR = [*_PLACE, "name"]


def operator_loops(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for each function that runs small operators in a loop, in jobs that compute on the host.

    If Python functions were not recorded, only reads of single elements show that there is a loop. If another operator
    runs many times, the reason may be that many modules call it.
    """
    pieces = outside_optimizers(evidence)
    if pieces.is_empty() or not evidence.computes_on_host:
        return
    over_modules = {case.subject: case for case in _loops_over_modules(evidence, pieces)}
    for case in _loops_in_functions(evidence, pieces):
        yield _of_both(evidence, case, over_modules.pop(case.subject, None))
    yield from over_modules.values()


def _of_both(evidence: RankEvidence, over_operators: Case, over_modules: Case | None) -> Case:
    """Combine a function's two cases, a loop over operators and a loop over modules; describe the costlier loop."""
    if over_modules is None:
        return over_operators
    cases = sorted((over_operators, over_modules), key=lambda case: case.value, reverse=True)
    explained = union(*concatenated([case.explained for case in cases]))
    return replace(cases[0], explained=explained, value=evidence.share(explained))


def _loops_in_functions(evidence: RankEvidence, pieces: pl.DataFrame) -> Iterator[Case]:
    """Yield a case for each function that calls an operator many times, directly or in modules."""
    calls, conversions = _calls(evidence, pieces), _conversions(evidence, pieces)
    calls = calls.filter((pl.col("median_ns") <= _SMALL_NS) | pl.col("name").str.contains(_CELLS))
    most = pl.col("per_function").max().over("frame")
    loops = calls.filter((most >= _MANY) & (pl.col("per_function") >= pl.max_horizontal(most / _OF_SAME_LOOP, _FEWEST)))
    loops = loops.filter(pl.col("frame").is_not_null() | pl.col("name").str.contains(_READS))
    for (frame,), of_place in loops.group_by("frame", maintain_order=True):
        converted = conversions.get(str(frame), 0.0)
        explained = _pieces_of_loop(pieces, str(frame) if frame else None, of_place, converts=converted >= _MANY)
        times = union_of(explained)
        first = explained.row(0, named=True)
        is_cell = pl.col("name").str.contains(_CELLS)
        by_calls = of_place.sort(is_cell, "call_count", descending=True, maintain_order=True)
        most_called, has_cells = by_calls.row(0, named=True), bool(of_place.select(is_cell.any()).item())
        modules = of_place["module"].unique()
        module = modules[0] if len(modules) == 1 else None
        yield Case(
            times,
            evidence.share(times),
            saved_fraction=_SAVED_BY_SEQUENCE if has_cells else 1.0,
            count=int(of_place["call_count"].sum()),
            subject=str(frame or most_called["name"]),
            place=Place(module, most_called["name"], None, first["frame"], first["event_index"], first["start_ns"]),
            words={
                "per_function": most_called["per_function"],
                "has_function": frame is not None,
                "name": most_called["name"],
                "reads": bool(of_place["name"].str.contains(_READS).any()),
                "module": module,
                "converted": converted if converted >= _MANY else None,
            },
        )


def _conversions(evidence: RankEvidence, pieces: pl.DataFrame) -> dict[str, float]:
    """Return how many Python numbers or lists each function converts to tensors in one call."""
    converting = pieces.filter((pl.col("cause") == "python") & pl.col("name").str.contains(_CONVERTS))
    counts = converting.drop_nulls("frame").group_by("frame").agg(pl.col("event_index").n_unique().alias("count"))
    calls = _function_counts(evidence) if len(counts) else {}
    return {frame: count / calls.get(frame, evidence.step_count) for frame, count in counts.iter_rows()}


def _loops_over_modules(evidence: RankEvidence, pieces: pl.DataFrame) -> Iterator[Case]:
    """Yield a case for each function that calls the same module many times, for example once per sample."""
    known, calls = host_ranges(evidence.rank_trace), _repeated_modules(evidence)
    for (function,), repeated in calls.group_by("function", maintain_order=True):
        outermost = repeated.filter(pl.col("module") == pl.col("module").first())
        module = str(outermost["module"][0])
        is_call = np.zeros(len(known.ranges), np.bool_)
        is_call[repeated["row"].to_numpy()] = True
        rows = rows_of_events(known.ranges, pieces["event_index"])
        inside = pieces.filter(pl.Series(itself_or_above(known.parent, is_call, rows) != NO_PARENT))
        operators = inside.filter(pl.col("cause") == "operator")
        if operators.is_empty() or _length(operators) > _SMALL_NS * operators["event_index"].n_unique():
            continue
        of_autograd = pl.col("name").str.starts_with(OF_AUTOGRAD).fill_null(value=False)
        modules = operators["module"].drop_nulls().unique()
        backward = pieces.filter(of_autograd & pl.col("module").is_in(modules.implode()))
        times = union_of(pl.concat([inside, backward]).sort("start_ns"))
        first = inside.row(0, named=True)
        yield Case(
            times,
            evidence.share(times),
            count=len(outermost),
            subject=str(function),
            place=Place(module, None, None, str(function), first["event_index"], first["start_ns"]),
            words={"per_function": len(outermost) / outermost["caller"].n_unique(), "called_module": module},
        )


def _repeated_modules(evidence: RankEvidence) -> pl.DataFrame:
    """Return the calls of modules that a user function calls many times in a single run.

    The columns are row (of the module call), caller (the row of the function call), function and module.
    """
    known, texts = host_ranges(evidence.rank_trace), evidence.rank_trace.strings
    name = known.ranges["name"].to_numpy()
    is_python = (known.ranges["kind"] == EventKind.PYTHON_FUNCTION).to_numpy()
    is_user = is_python & (is_user_frame(texts) & ~texts.str.contains(NAMELESS).fill_null(value=False)).to_numpy()[name]
    is_module = is_python & texts.str.starts_with(MODULE_PREFIX).fill_null(value=False).to_numpy()[name]
    is_module &= holding(evidence.step_windows, known.ranges["start_ns"].to_numpy()) >= 0
    rows = np.flatnonzero(is_module)
    calls = pl.DataFrame({"row": rows, "caller": nearest_above(known.parent, is_user, rows), "module": name[rows]})
    many = calls.filter((pl.col("caller") != NO_PARENT) & (pl.len().over("caller", "module") >= _MANY_OF_A_MODULE))
    callers = pl.Series(name[many["caller"].to_numpy()], dtype=pl.UInt32)
    return many.with_columns(
        evidence.rank_trace.texts(callers).alias("function"),
        evidence.rank_trace.texts(many["module"].cast(pl.UInt32)).str.strip_prefix(MODULE_PREFIX).alias("module"),
    )


def outside_optimizers(evidence: RankEvidence) -> pl.DataFrame:
    """Return the rows of `RankEvidence.while_idle` outside optimizer steps; another rule examines optimizer steps."""
    pieces, updates = evidence.while_idle, named_ranges(evidence, OPTIMIZER)
    inside = holding(intervals_of(updates.sort("start_ns")), pieces["start_ns"].to_numpy())
    return pieces.filter(pl.Series(inside < 0))


def _calls(evidence: RankEvidence, pieces: pl.DataFrame) -> pl.DataFrame:
    """Return how often each function calls each operator.

    The columns are module, frame, name, call_count, median_ns and per_function (calls of the operator in one call of
    the function).
    """
    operators = pieces.filter((pl.col("cause") == "operator") & ~pl.col("name").str.starts_with(OF_AUTOGRAD))
    events = evidence.rank_trace.table("events", ["event_index", "name", "duration_ns"])
    own = operators.unique("event_index", keep="first", maintain_order=True).join(
        events.rename({"name": "own_name"}), on="event_index", how="left", maintain_order="left"
    )
    called = own.filter(evidence.rank_trace.texts(own["own_name"]) == own["name"])
    called = called.join(of_the_backward_pass(evidence), on="event_index", how="anti", maintain_order="left")
    counts = called.group_by(_OPERATOR, maintain_order=True).agg(
        pl.len().alias("call_count"), pl.col("duration_ns").median().alias("median_ns")
    )
    functions = pl.col("frame").replace_strict(_function_counts(evidence), default=None, return_dtype=pl.Int64)
    rounds = functions.fill_null(evidence.step_count).clip(lower_bound=1)
    return counts.with_columns((pl.col("call_count") / rounds).alias("per_function"))


def of_the_backward_pass(evidence: RankEvidence) -> pl.DataFrame:
    """Return the events (event_index) that the backward pass runs directly, not in a Python function that it calls.

    Examples are the copies that DDP makes.
    """
    known = host_ranges(evidence.rank_trace)
    is_python = (known.ranges["kind"] == EventKind.PYTHON_FUNCTION).to_numpy()
    caller = itself_or_above(known.parent, is_python, np.arange(len(known.ranges)))
    names = evidence.rank_trace.texts(known.ranges["name"])
    is_backward = names.str.contains(_RUN_BACKWARD).fill_null(value=False).to_numpy()
    return known.ranges.filter(pl.Series((caller != NO_PARENT) & is_backward[caller])).select("event_index")


def _function_counts(evidence: RankEvidence) -> dict[str, int]:
    """Return how often each Python function is called in the steady steps."""
    rows = evidence.rank_trace.events_of([EventKind.PYTHON_FUNCTION], ["name", "start_ns"])
    steady = rows.filter(pl.Series(holding(evidence.step_windows, rows["start_ns"].to_numpy()) >= 0))
    counts = steady.group_by("name").agg(pl.len().alias("count"))
    return dict(zip(evidence.rank_trace.texts(counts["name"]).to_list(), counts["count"].to_list(), strict=True))


def _pieces_of_loop(pieces: pl.DataFrame, frame: str | None, looped: pl.DataFrame, *, converts: bool) -> pl.DataFrame:
    """Return a loop's operators, the Python code between them, and the backward pass of the modules in the loop.

    The Python code between the operators is included in three cases:

    - the loop converts Python numbers to tensors (`converts`);
    - functions were not recorded (`frame` is None);
    - the operators in the loop take at least half of the time that all operators of the function take.

    In all other cases, the Python code is left out, because the loop may be a small part of a training function, and
    most of the Python code may run outside the loop.
    """
    of_frame = pieces.filter(pl.col("frame").eq_missing(pl.lit(frame, pl.String)))
    is_autograd = pl.col("name").str.starts_with(OF_AUTOGRAD).fill_null(value=False)
    operators = of_frame.filter((pl.col("cause") == "operator") & ~is_autograd)
    names = looped.select("module", "name")
    if looped["name"].str.contains(_READS).any():
        elements = operators.filter(pl.col("name").str.contains(_ELEMENTS)).select("module", "name")
        names = pl.concat([names, elements]).unique(maintain_order=True)
    parts = [operators.join(names, on=["module", "name"], how="semi", nulls_equal=True, maintain_order="left")]
    if converts or frame is None or 2 * _length(parts[0]) >= _length(operators):
        is_short = pl.col("end_ns") - pl.col("start_ns") < _SHORT_NS
        parts.append(of_frame.filter(pl.col("cause").is_in(["python", "host_idle"]) & is_short))
    modules = looped["module"].drop_nulls().unique()
    backward = pieces.filter((pl.col("cause") == "operator") & is_autograd)
    parts.append(backward.filter(pl.col("module").is_in(modules.implode())))
    return pl.concat(parts).sort("start_ns")


def _length(pieces: pl.DataFrame) -> int:
    return int((pieces["end_ns"] - pieces["start_ns"]).sum())


def _say(cases: Sequence[RankCase]) -> Said:
    words, place = cases[0].words, cases[0].place
    if "called_module" in words:
        return Said(
            f"the script calls {words['called_module']} in a loop: {words['per_function']:,.0f} times in each call of "
            f"{place.source_line}",
            _BATCHING,
        )
    if words["converted"]:
        return Said(
            f"the script converts Python numbers to tensors one at a time: {words['converted']:,.0f} in each call of "
            f"{place.source_line}",
            "Call torch.tensor once, on the whole list or on a NumPy array, because each call costs microseconds, however small its tensor is.",
        )
    times = f"{words['per_function']:,.0f} times"
    where = f"in each call of {place.source_line}" if words["has_function"] else "in each step"
    what = f"{words['module']} runs" if words["module"] else "the script runs"
    return Said(
        f"{what} small operators in a loop: {words['name']} {times} {where}",
        _READING if words["reads"] else _CALLING,
    )


_READING = (
    "Compute with whole tensors (comparisons, masks, sums) instead of reading single elements, or convert the tensor to a Python list "
    "once with tolist()."
)
_BATCHING = (
    "Stack the samples and call the module once, because each operator costs microseconds, however little it computes. If each "
    "iteration needs the previous result, use a fused module such as nn.LSTM, or compile the loop with torch.compile."
)
_CALLING = (
    "Run one operator on a stacked tensor (batched or torch._foreach_ functions, or a fused module such as nn.LSTM), or compile the "
    "loop with torch.compile, because each call costs microseconds, however little it computes."
)

RULES = (
    Rule(
        "operator_loops",
        "functions that, in each call, run a small operator at least 64 times or a module at least 32 times, in jobs without device work",
        threshold=_LEAST_SHARE,
        unit=OF_THE_STEP,
        reason="Without a loop, a function or module rarely calls an operator more than a few dozen times. If a loop "
        "takes less than 5 % of the step, rewriting it saves little.",
        source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        check=operator_loops,
        say=_say,
        precedence=1,
        confidence="medium",
    ),
)
"""The rule about loops of small operators."""
