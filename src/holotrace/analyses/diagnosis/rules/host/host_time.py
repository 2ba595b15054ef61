"""Rules about hosts that keep devices waiting: data loading, garbage collection, slow Python functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import holding, union_of
from holotrace.analyses.diagnosis.evidence.callers import called_by_training
from holotrace.analyses.diagnosis.evidence.library_calls import library_calls
from holotrace.analyses.diagnosis.evidence.lock_holders import lock_holder
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, Place, RankCase, Rule, Said, who_waits
from holotrace.analyses.diagnosis.rules.host.launches import AFTER_BREAK, FUNCTION_NS, graph_breaks
from holotrace.analyses.diagnosis.rules.known_names import LOCKS, PICKLES, WRITES
from holotrace.analyses.diagnosis.rules.needs import needs_stacks
from holotrace.enrich.critical_path.what_if import Remove
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.host.frames import TORCH_WAITING, is_built_in, is_user_frame
from holotrace.enrich.host.source_lines import records_python
from holotrace.enrich.job_graph.causes.cause_names import host_ranges
from holotrace.schema import EventKind

_LEAST_SHARE = 0.02
_LEAST_FUNCTION = 0.05
_LONG_NS = 100_000
"""Python that runs at least this long between two operators counts as separate work; usually, Python takes only a few
microseconds between operators."""

_READY_NS = 300_000
"""Fetching a batch that workers have prepared takes up to this long per step if the profiler records Python
functions."""
_OF_MODELS = 0.25
"""A function that spends more than this share of its time in operators is model code. The time that it spends
outside operators is Python overhead."""
_OF_TRAINING = 0.02
"""A function that spends more than this share of its time in operators is part of training and cannot be moved elsewhere."""
_WITH_WORKERS, _WITHOUT = "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"
_LARGE_SHARE = 0.1
"""Waits for data shorter than `_READY_NS` are also reported if they take at least this share of the step."""

_NAMELESS = "<built-in method >"
"""A method that pybind11 recorded without its name."""

_HELD_UP = "held_up"
"""Subject of findings about time in PyTorch functions such as `linear`, but outside the operators that they run."""

_OF_TORCH = r"^<built-in method \w+ of (torch\._C\.|(Tensor|Parameter|type) object)|" + TORCH_WAITING
"""PyTorch's own methods in which a thread runs operators or autograd, or waits for other ranks."""

_CONVERTS = r"^<built-in method (tensor|as_tensor|asarray|tolist|frombuffer)\b"
"""PyTorch's functions that convert to or from Python lists, element by element."""


def data_loading(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the idle time in which the host waits for its data loader; none if the batches were ready."""
    for case in _cases(evidence, evidence.while_idle.filter(pl.col("cause") == "data_loading"), ""):
        if evidence.per_step(case.explained) >= _READY_NS or case.value >= _LARGE_SHARE:
            yield replace(case, words={**case.words, "has_workers": _only_with_workers(evidence)})


def _only_with_workers(evidence: RankEvidence) -> bool:
    """Return whether the job uses data loaders, and all of them have worker processes."""
    return [len(names_matching(evidence.rank_trace, name)) > 0 for name in (_WITH_WORKERS, _WITHOUT)] == [True, False]


def garbage_collection(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for the idle time in which Python collects garbage."""
    yield from _cases(evidence, evidence.while_idle.filter(pl.col("cause") == "garbage_collection"), "")


def slow_functions(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for each Python function that runs for a long time outside operators while the devices are idle.

    Other rules report short intervals of Python between operators, and functions that resume after a graph break. A
    library function is treated like a user function if the training code calls it and it runs hardly any operators.
    """
    shares = _operator_shares(evidence)
    training = shares.filter(pl.col("operator_share") > _OF_TRAINING)["name"].drop_nulls()
    python = _without_torch(evidence, _long_python(_in_library_calls(evidence, training), training))
    calling = shares.filter(pl.col("operator_share") > _OF_MODELS).select("name")
    own = python.join(calling, on="name", how="anti")
    is_break = pl.col("name").str.contains(AFTER_BREAK).fill_null(value=False)
    if own.select(is_break.any()).item() and any(True for _ in graph_breaks(evidence)):
        own = own.filter(~is_break)
    known = own.with_columns(_subjects(evidence, own, training).alias("subject"))
    for (name,), pieces in known.group_by("subject", maintain_order=True):
        for case in _cases(evidence, _without_recording(evidence, pieces), str(name)):
            words = {"runs_operators": name in set(training), **_how_often(evidence, pieces, str(name))}
            what = {"is_held_up": name == _HELD_UP, "writes": _mostly_writes(pieces)}
            called = str(name) if is_user_frame(pl.Series([name])).item() else None
            what["pickles"] = re.search(PICKLES, case.place.source_line or "") is not None
            what["caller"] = pieces["caller"].drop_nulls().first()
            what["holder"] = lock_holder(evidence, pieces) if re.search(LOCKS, case.words["name"]) else None
            yield replace(case, words={**case.words, **what, **words, "called": called})


def _in_library_calls(evidence: RankEvidence, training: pl.Series) -> pl.DataFrame:
    """Return `while_idle`, but attribute the time in a library function to this function, not to its caller.

    In such rows, `frame` names the library function, and `caller` names the user's function that calls it.
    """
    pieces = evidence.while_idle
    of_library = library_calls(evidence, pieces, training.to_list())
    frame, is_own = pl.col("frame"), pl.col("name") == pl.col("frame")
    return pieces.with_columns(of_library.alias("of_library")).with_columns(
        pl.coalesce("of_library", frame).alias("frame"),
        pl.when(is_own).then(pl.coalesce("of_library", "name")).otherwise("name").alias("name"),
        pl.when(pl.col("of_library").is_not_null()).then(frame).alias("caller"),
    )


def _without_recording(evidence: RankEvidence, pieces: pl.DataFrame) -> pl.DataFrame:
    """Shorten each interval by its share of the overhead of recording Python functions.

    The shares are proportional to the lengths of the intervals; an interval longer than 0.1 ms counts as 0.1 ms.
    """
    if not records_python(evidence.rank_trace):
        return pieces
    short_ns = pl.min_horizontal(pl.col("end_ns") - pl.col("start_ns"), pl.lit(_LONG_NS))
    added_ns = FUNCTION_NS * pieces["event_index"].n_unique()
    share = min(1.0, added_ns / max(1, int(pieces.select(short_ns.sum()).item())))
    left = pieces.with_columns((pl.col("start_ns") + (short_ns * share).cast(pl.Int64)).alias("start_ns"))
    return left.filter(pl.col("start_ns") < pl.col("end_ns"))


def _subjects(evidence: RankEvidence, own: pl.DataFrame, training: pl.Series) -> pl.Series:
    """Return the subject of each interval: the function that a finding about the interval names.

    Usually, the subject is the function that training code calls directly, even if that function is in turn running a
    helper. There are two exceptions:

    - If the innermost Python frame is a training function, the subject is what runs directly in this frame, for
      example a built-in function.
    - If that is one of PyTorch's built-in functions that run operators, the subject is `_HELD_UP`.
    """
    is_part = ~pl.col("frame").is_in(training.implode())
    callers = called_by_training(evidence, own["event_index"], training.to_list())
    subject = pl.when(is_part).then(pl.coalesce(callers, "frame")).otherwise("name")
    is_held_up = ~is_part & pl.col("name").is_in(_builtins_with_operators(evidence).implode())
    return own.select(pl.when(is_held_up).then(pl.lit(_HELD_UP)).otherwise(subject)).to_series()


def _builtins_with_operators(evidence: RankEvidence) -> pl.Series:
    """Return the names of PyTorch's built-in functions that run an operator, such as `<built-in function linear>`."""
    known = host_ranges(evidence.rank_trace)
    is_operator = (known.ranges["kind"] == EventKind.CPU_OP).to_numpy()
    parents = np.unique(known.parent[is_operator & (known.parent >= 0)])
    names = known.causes["name"].gather(pl.Series(known.cause_row[parents], dtype=pl.UInt32))
    return names.filter(is_built_in(names) & ~names.str.contains(_CONVERTS)).unique()


def _mostly_writes(pieces: pl.DataFrame) -> bool:
    """Return whether most of the time is spent in functions that write files."""
    time = pl.col("end_ns") - pl.col("start_ns")
    sums = pieces.group_by("name", "frame").agg(time.sum().alias("time_ns"))
    writes = pl.concat_str("name", "frame", separator=" ", ignore_nulls=True).str.contains(WRITES)
    return bool(sums.select(2 * pl.col("time_ns").filter(writes).sum() >= pl.col("time_ns").sum()).item())


def _long_python(pieces: pl.DataFrame, training: pl.Series) -> pl.DataFrame:
    """Return the intervals in which Python runs for at least 0.1 ms in one of the user's functions.

    Outside training functions, adjacent intervals count as one: the profiler records each call of a built-in function, so a
    loop that calls one consists of thousands of short intervals.
    """
    is_python = (pl.col("cause") == "python") & pl.col("frame").is_not_null()
    joins = is_python & ~pl.col("frame").is_in(training.implode())
    begins = ~(joins & joins.shift(1) & (pl.col("start_ns") == pl.col("end_ns").shift(1))).fill_null(value=False)
    runs = pieces.with_columns(begins.cum_sum().alias("run"))
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().over("run")
    return runs.filter(is_python & (length >= _LONG_NS)).drop("run")


def _how_often(evidence: RankEvidence, pieces: pl.DataFrame, function: str) -> dict[str, Any]:
    """Return in how many steps a function runs, and in how many of these steps it is slow.

    The result is empty in three cases: the recording has no steps, the function does not run in every step, or it is
    slow in more than half of the steps.
    """
    ran, slow = (_steps_of(evidence, rows) for rows in (evidence.activity.filter(pl.col("frame") == function), pieces))
    is_rare = evidence.has_steps and ran == evidence.step_count and 2 * slow <= ran
    return {"steps": ran, "slow_steps": slow, "confidence": "low"} if is_rare else {}


def _steps_of(evidence: RankEvidence, rows: pl.DataFrame) -> int:
    """Return the number of steady steps in which any of these rows begins."""
    windows = (evidence.steady["start_ns"].to_numpy(), evidence.steady["end_ns"].to_numpy())
    inside = holding(windows, rows["start_ns"].to_numpy())
    return len(set(inside[inside >= 0].tolist()))


def _operator_shares(evidence: RankEvidence) -> pl.DataFrame:
    """Return each user function with the share of its time that it spends in operators: name, operator_share."""
    time = pl.col("end_ns") - pl.col("start_ns")
    operators = time.filter(pl.col("cause") == "operator").sum()
    return evidence.activity.group_by(name="frame").agg((operators / time.sum()).alias("operator_share"))


def _without_torch(evidence: RankEvidence, pieces: pl.DataFrame) -> pl.DataFrame:
    """Leave out the time in PyTorch's own methods, except those that convert to or from Python lists."""
    if pieces.is_empty():
        return pieces
    texts = evidence.rank_trace.strings
    is_torch = texts.str.contains(_OF_TORCH) & ~texts.str.contains(_CONVERTS)
    ids = pl.Series(is_torch.fill_null(value=False).arg_true(), dtype=pl.UInt32)
    events = evidence.rank_trace.table("events", ["event_index", "name"])
    of_torch = events.filter(pl.col("name").is_in(ids.implode())).select("event_index")
    return pieces.join(of_torch, on="event_index", how="anti", maintain_order="left")


def _cases(evidence: RankEvidence, pieces: pl.DataFrame, subject: str) -> Iterator[Case]:
    if pieces.is_empty():
        return
    explained = union_of(pieces)
    events = pieces["event_index"].drop_nulls().unique()
    largest = _largest(pieces)
    change = Remove(pl.col("event_index").is_in(events.implode())) if len(events) else None
    name = None if largest["name"] == _NAMELESS else largest["name"]
    words = {"name": name or largest["frame"] or "", "is_idle": evidence.has_device_work}
    yield Case(explained, evidence.share(explained), 1.0, len(events), subject, _place(pieces, largest), change, words)


def _largest(pieces: pl.DataFrame) -> dict[str, str | None]:
    """Return the combination of name, module and frame that takes the most time."""
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns")
    sums = pieces.group_by("name", "module", "frame", maintain_order=True).agg(time)
    return sums.sort("time_ns", descending=True, maintain_order=True).row(0, named=True)


def _place(pieces: pl.DataFrame, largest: dict[str, str | None]) -> Place:
    longest = (pieces["end_ns"] - pieces["start_ns"]).arg_max()
    first = pieces.row(longest or 0, named=True)
    return Place(
        module=largest["module"],
        source_line=largest["frame"],
        event_index=first["event_index"],
        at_ns=first["start_ns"],
    )


def _in(case: RankCase) -> str:
    line, name, called = case.place.source_line, case.words["name"], case.words.get("called")
    if called not in (None, line):
        return f"{called}, mostly {line if name == line else f'{name} in {line}'}"
    where = f" in {line}" if line and line != name else ""
    where += f", called in {case.words['caller']}" if case.words.get("caller") else ""
    return f"{name}{where}" if name else "outside all recorded functions"


def _say_loading(cases: Sequence[RankCase]) -> Said:
    return Said(
        f"{who_waits(cases[0])} for data loading ({_in(cases[0])})",
        _FASTER_WORKERS if cases[0].words["has_workers"] else _IN_WORKERS,
    )


_IN_WORKERS = (
    "Load and prefetch batches in worker processes (DataLoader with num_workers > 0, persistent_workers=True). If workers "
    "already run, add workers, or make each sample cheaper to load."
)
_FASTER_WORKERS = (
    "Worker processes already load the batches, but too slowly: add workers (num_workers), prefetch more (prefetch_factor), or make each "
    "sample cheaper to load. If epochs are short, keep the workers between epochs (persistent_workers=True)."
)


def _say_collection(cases: Sequence[RankCase]) -> Said:
    return Said(
        f"{who_waits(cases[0])} while Python collects garbage ({_in(cases[0])})",
        "Call gc.freeze() after setup and gc.disable() during training. Collect garbage between epochs or every few hundred "
        "steps, on all ranks in the same step.",
    )


def _say_function(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    if words["is_held_up"]:
        return Said(
            f"{who_waits(cases[0])} while something blocks the thread in {_in(cases[0])}, a call that normally takes "
            "microseconds",
            "Look for Python threads that hold the GIL (hand-written loaders, loggers), and for other processes on the cores of "
            "this rank.",
        )
    if words["runs_operators"]:
        return Said(
            f"{who_waits(cases[0])} while Python runs {_in(cases[0])}, between the operators that it calls",
            "Profile this function with py-spy or line_profiler to see what it does between operators, or compile it with "
            "torch.compile, which removes the Python code.",
        )
    if "slow_steps" in words:
        return Said(
            f"{who_waits(cases[0])} while Python runs {_in(cases[0])}, which is slow in only {words['slow_steps']} of "
            f"{words['steps']} steps",
            "If the function does the same work in each step, something else slows it down: look for other processes on the cores of "
            "this rank, and for Python threads that hold the GIL.",
        )
    holder = f"; meanwhile, another thread runs {words['holder']}" if words["holder"] else ""
    return Said(f"{who_waits(cases[0])} while Python runs {_in(cases[0])}{holder}", _way_out(cases[0]))


def _way_out(case: RankCase) -> str:
    """Return advice about a slow function, depending on what it does and where it is called."""
    if re.search(LOCKS, case.words["name"]):
        return (
            "Another thread holds the lock for which the training thread waits. Make that thread hold it for less time (copy the data, "
            "then work on the copy without the lock), or pass the data through a queue."
        )
    if case.words["pickles"]:
        return "Exchange tensors instead of Python objects, which each rank pickles and unpickles, or exchange objects less often."
    if case.words["writes"]:
        return "Write files less often, or in the background; for checkpoints, use torch.distributed.checkpoint.async_save."
    if case.place.module is not None:
        return (
            f"If {case.place.module} needs the result, compute it with operators on whole tensors instead of loops in Python or "
            "NumPy. Otherwise, call the function less often or outside the step."
        )
    return "Move this work out of the training step or into a worker process, or do it less often."


RULES = (
    Rule(
        "data_loading",
        "time in which all devices are idle while the training thread waits for its data loader",
        threshold=_LEAST_SHARE,
        unit=OF_THE_STEP,
        reason="If data is loaded in the background, fetching a batch takes well below 1 % of a step. Waits below "
        "0.3 ms per step are reported only if they take at least a tenth of the step.",
        source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        check=data_loading,
        say=_say_loading,
        precedence=0,
    ),
    Rule(
        "garbage_collection",
        "time in which all devices are idle while Python collects garbage",
        threshold=_LEAST_SHARE,
        unit=OF_THE_STEP,
        reason="Collecting a young generation takes microseconds; only full collections reach 2 % of a step.",
        source="https://docs.python.org/3/library/gc.html",
        check=garbage_collection,
        say=_say_collection,
        precedence=0,
        needs=needs_stacks,
    ),
    Rule(
        "slow_function",
        "a user's Python function that runs for a long time while all devices are idle",
        threshold=_LEAST_FUNCTION,
        unit=OF_THE_STEP,
        reason="If a function takes less than 5 % of a step, moving it out of the step saves little.",
        source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        check=slow_functions,
        say=_say_function,
        precedence=1,
        needs=needs_stacks,
    ),
)
