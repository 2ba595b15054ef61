"""The figure of two aligned traces: control and test bars for the operators whose self time changed most."""

from __future__ import annotations

from collections.abc import Iterable

import plotly.graph_objects as go
import polars as pl

from holotrace.analyses.compare_operators.compute import OperatorComparison
from holotrace.analyses.compare_operators.question import QUESTION
from holotrace.drawing.names import cut_label
from holotrace.drawing.paired_bars import paired_bars
from holotrace.drawing.stacked_bars import Heading
from holotrace.drawing.theme import Theme

MOST_PLACES = 20
_SIDES = ("control", "test")
_LABEL_LENGTH = 90
_QUESTION = QUESTION.question
_OF_A_STEP = "Mean self time per step of the operators that changed most: on devices, or on the host where noted"
_IN_ALL = "Self time of the operators that changed most: on devices, or on the host where noted"


def plot_compare_operators(result: OperatorComparison, *, theme: Theme = "light") -> go.Figure:
    """Draw two bars for each operator whose self time changed most; its phase and module are written above the bars.

    The self time of an operator includes the kernels that it launches itself.

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> job = small_job()
    >>> result = holotrace.compare_operators(job.select([0]), job.select([1]))
    >>> figure = holotrace.figures.plot_compare_operators(result)
    >>> [bars.name for bars in figure.data]
    ['control', 'test']
    """
    own = _own_times(result.tree, [max(1, count) for count in result.sides["step_count"]])
    difference = pl.col("test") - pl.col("control")
    shown = own.filter(difference != 0).sort(difference.abs(), "place", descending=[True, False]).head(MOST_PLACES)
    sides = {label: [round(value) for value in shown[label]] for label in _SIDES}
    heading = Heading(_QUESTION, _OF_A_STEP if result.sides["step_count"].min() else _IN_ALL)
    return paired_bars(shown["place"].to_list(), sides, by="duration", theme=theme, heading=heading, labels=_cut_places)


def _cut_places(places: Iterable[str]) -> dict[str, str]:
    return {place: cut_label(place, _LABEL_LENGTH) for place in places}


def _own_times(tree: pl.DataFrame, lengths: list[int]) -> pl.DataFrame:
    """Return the self time of each path in both traces.

    Rows of kind `pair` come from the plugin's comparison and have no self time. For these rows, the total time of the
    innermost pairs is used instead.
    """
    is_phase, is_pair, is_kernel = (pl.col("kind") == kind for kind in ("phase", "pair", "kernel"))
    is_inner = pl.col("node").is_in(tree["parent"].implode())
    is_unowned = pl.col("parent").is_in(tree.filter(kind="phase")["node"].implode())
    has_own = pl.when(is_pair).then(~is_inner).when(is_kernel).then(is_unowned).otherwise(~is_phase)
    own = [_own_time(side).truediv(length).alias(side) for side, length in zip(_SIDES, lengths, strict=True)]
    return tree.with_columns(_places(tree)).filter(has_own).group_by("place").agg(each.sum() for each in own)


def _own_time(side: str) -> pl.Expr:
    is_device, is_pair = pl.col("measure") == "device", pl.col("kind") == "pair"
    device = pl.when(is_pair).then(f"{side}_device_total_ns").otherwise(f"{side}_device_self_ns")
    return pl.when(is_device).then(device).when(is_pair).then(f"{side}_host_total_ns").otherwise(f"{side}_host_self_ns")


def _places(tree: pl.DataFrame) -> pl.Series:
    """Return the phase, module and name of each path, with `(host)` appended if its host time is compared."""
    phases: list[str] = []
    modules: list[str] = []
    places: list[str] = []
    for name, kind, parent, measure in tree.select("name", "kind", "parent", "measure").iter_rows():
        phases.append(phases[parent] if parent >= 0 else name)
        modules.append(name if kind == "module" else modules[parent] if parent >= 0 else "")
        place = " > ".join(dict.fromkeys(part for part in (phases[-1], modules[-1], name) if part))
        places.append(f"{place} (host)" if measure == "host" else place)
    return pl.Series("place", places, pl.String)
