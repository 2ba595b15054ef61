"""Read sums over the requests of an inference step from the name of its annotation.

vLLM and SGLang name a step `execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37…)`. The
number after `context` counts the requests in prefill; the number after `generation` counts those in decode. Let q be
the number of new tokens of a request, and k the number of its tokens in the cache. The numbers in parentheses are sums
over these requests: of q (sq), k (sk), q·q (sqsq) and q·k (sqsk). `holotrace.enrich.inference.step_names` parses the
names.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import nearest_above
from holotrace.enrich.events.event_rows import gathered
from holotrace.enrich.host.call_stack import called_names
from holotrace.enrich.inference.step_names import step_of_name
from holotrace.store.trace import RankTrace


def request_sums(step: str | None) -> dict[str, int]:
    """Return the sums over requests that the name of a step contains; an empty dict if it contains none.

    The keys are c_sq, c_sk, c_sqsq and c_sqsk for prefill, and g_sq, g_sk, g_sqsq and g_sqsk for decode.

    >>> request_sums("execute_3_context_1(sq2sk5sqsq4sqsk10)_generation_1(sq1sk7sqsq1sqsk7)")["c_sqsk"]
    10
    """
    said = step_of_name(step)
    return dict(said.sums) if said is not None else {}


def steps_with_sums(rank_trace: RankTrace, stacks: pl.DataFrame, rows: npt.NDArray[np.int64]) -> pl.Series:
    """Return the name (string id) of the step that contains each row, if the name contains sums over requests.

    If several such steps contain the row, the innermost is chosen. If there is no such step, the name is null.
    """
    distinct = called_names(rank_trace)
    has_sums = pl.Series([bool(request_sums(text)) for text in rank_trace.texts(distinct)], dtype=pl.Boolean)
    named = distinct.filter(has_sums)
    if named.is_empty():
        return pl.Series("step_name", [None] * len(rows), dtype=pl.UInt32)
    is_step = stacks["name"].is_in(named.implode()).to_numpy()
    around = nearest_above(stacks["parent_row"].to_numpy(), is_step, rows)
    return gathered(stacks["name"], around).alias("step_name")
