"""Find library calls that only prepare data on the host, and calls that send Python objects to other ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, furthest_above, itself_or_above, nearest_above, subtree_sums
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rules.known_names import PICKLES
from holotrace.enrich.events.event_rows import gathered, rows_of_events
from holotrace.enrich.host.frames import is_library_frame
from holotrace.enrich.job_graph.causes.cause_names import HostRanges, host_ranges
from holotrace.schema import LAUNCH_KINDS, EventKind

_OF_OPERATORS = 0.25
"""A library call that only prepares data spends at most this share of its time in operators. A call that spends
more than this share in operators is part of the computation, so its time outside operators is Python overhead."""
_WITHOUT_DEVICE = 0.02
"""The same limit as `_OF_OPERATORS`, but for jobs that compute on the host. It is lower because in such jobs, all
computation with tensors takes place in operators, so a call that only prepares data spends almost no time there."""


def library_calls(evidence: RankEvidence, pieces: pl.DataFrame, training: Sequence[str]) -> pl.Series:
    """Return, for each row of `pieces`, the library function that encloses the activity; null if there is none.

    A library function belongs to a library other than PyTorch, launches no device work and spends little time in
    operators: a tokenizer, an image processor or a video decoder, for example. PyTorch's functions that send Python
    objects to other ranks count as library functions, too. If several library functions enclose the activity, the
    outermost one is returned.

    If the activity is outside all training functions, the result is null, unless the outermost library function sends
    Python objects.

    Args:
        evidence: what is known about the rank.
        pieces: rows of `RankEvidence.activity`.
        training: the names of the user's training functions.
    """
    known, texts = host_ranges(evidence.rank_trace), evidence.rank_trace.strings
    is_python = (known.ranges["kind"] == EventKind.PYTHON_FUNCTION).to_numpy()
    name = known.ranges["name"].to_numpy()
    is_library = is_python & is_library_frame(texts).to_numpy()[name]
    is_pickling = is_python & texts.str.contains(PICKLES).fill_null(value=False).to_numpy()[name]
    if not (is_library | is_pickling).any():
        return pl.Series([None] * len(pieces), dtype=pl.String)
    is_quiet = is_library & _is_quiet(known, _OF_OPERATORS if evidence.has_device_work else _WITHOUT_DEVICE)
    rows, is_call = rows_of_events(known.ranges, pieces["event_index"]), is_quiet | is_pickling
    outermost = furthest_above(known.parent, is_call, rows)
    outermost = np.where(outermost == NO_PARENT, itself_or_above(known.parent, is_call, rows), outermost)
    names = evidence.rank_trace.texts(gathered(known.ranges["name"], outermost))
    in_training = pieces["frame"].is_in(list(training)).fill_null(value=False)
    is_shown = in_training | pl.Series((outermost != NO_PARENT) & is_pickling[outermost])
    return pl.select(pl.when(is_shown).then(names)).to_series()


def _is_quiet(known: HostRanges, most: float) -> npt.NDArray[np.bool_]:
    """Return whether each range launches no device work and spends at most `most` (0..1) of its time in operators."""
    kind = known.ranges["kind"].to_numpy()
    length = (known.ranges["end_ns"] - known.ranges["start_ns"]).to_numpy()
    is_operator = kind == EventKind.CPU_OP
    is_outer = is_operator & (nearest_above(known.parent, is_operator, np.arange(len(kind))) == NO_PARENT)
    launches = subtree_sums(known.parent, np.isin(kind, LAUNCH_KINDS).astype(np.int64))
    operators_ns = subtree_sums(known.parent, np.where(is_outer, length, 0))
    return np.asarray((launches == 0) & (operators_ns <= most * length), np.bool_)
