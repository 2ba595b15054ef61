"""The analyses in the order they are read; the command line, the report and the pages loop over this list.

One word leads through all of it: analysis `idle_time` is computed by `hta.analyses.idle_time.idle_time`, drawn by
`hta.figures.idle_time.plot_idle_time`, printed by `hta idle-time` and explained in `reference/analyses/idle_time.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from hta import tables
from hta.analyses.communication_overlap import communication_overlap
from hta.analyses.idle_time import idle_time
from hta.analyses.kernel_breakdown import kernel_breakdown
from hta.analyses.temporal_breakdown import temporal_breakdown
from hta.tables import View

if TYPE_CHECKING:
    import plotly.graph_objects as go


class Result(Protocol):
    """What all results have in common: a sentence for each thing noticed on the way. The rest are tables."""

    @property
    def findings(self) -> tuple[str, ...]:
        """What was noticed."""


@dataclass(frozen=True)
class Analysis:
    """One question about a trace.

    name         the word that leads to its function, figure, command and page
    title        what people call it
    question     what it answers
    compute      `compute(trace, *, executor) -> result`
    views        its tables for people, the most telling one first
    definitions  the terms it uses, each with its meaning
    """

    name: str
    title: str
    question: str
    compute: Callable[..., Result]
    views: tuple[View, ...]
    definitions: tuple[tuple[str, str], ...]

    @property
    def command(self) -> str:
        """Name of its command: `idle-time`."""
        return self.name.replace("_", "-")

    @property
    def main_views(self) -> tuple[View, ...]:
        """The tables of a summary: those not by stream, of which a job has many."""
        return tuple(view for view in self.views if not view.is_detail)

    @property
    def page(self) -> str:
        """Its page, from the root of the documentation."""
        return f"reference/analyses/{self.name}.md"

    @property
    def python(self) -> str:
        """The line that gives its result, for a trace that is open."""
        return f"hta.{self.name}(trace)"

    def plot(self, result: Result, **options: object) -> go.Figure:
        """Draw a result; plotly is loaded here, so that tables alone stay fast."""
        module = import_module(f"hta.figures.{self.name}")
        figure: go.Figure = getattr(module, f"plot_{self.name}")(result, **options)
        return figure


_TEMPORAL_BREAKDOWN = Analysis(
    name="temporal_breakdown",
    title="Temporal breakdown",
    question="Where does each GPU's time go?",
    compute=temporal_breakdown,
    views=(View("Each device, from its first to its last work", tables.temporal_per_device, "idle_fraction"),),
    definitions=(
        (
            "from first to last work",
            "from the start of the device's first kernel, copy or memset to the end of its last",
        ),
        ("computing", "at least one computation kernel runs, whatever else runs beside it"),
        ("other work only", "something runs, such as communication or copies, but no computation"),
        ("idle", "nothing runs on any stream of the device"),
    ),
)
_KERNEL_BREAKDOWN = Analysis(
    name="kernel_breakdown",
    title="Kernel breakdown",
    question="What do the GPUs run?",
    compute=kernel_breakdown,
    views=(
        View("Kinds of work, alone and at once, over all ranks", tables.states_over_ranks, "duration_ns"),
        View("Kernels, over all ranks; mean, min and max are of one call", tables.kernels_over_ranks, "sum_ns"),
    ),
    definitions=(
        ("communication", "collectives and sends: by their collective's name, else by the rules for kernel names"),
        ("memory", "copies between or within devices, and memsets"),
        ("computation", "every other kernel"),
        ("a + b", "moments in which kinds a and b run at once; each moment counts in exactly one row"),
        ("share of a kernel", "its summed time in the summed time of all kernels; parallel kernels both count"),
    ),
)
_COMMUNICATION_OVERLAP = Analysis(
    name="communication_overlap",
    title="Communication overlap",
    question="How much communication is hidden behind computation?",
    compute=communication_overlap,
    views=(View("Each rank, over its devices", tables.overlap_per_rank, "exposed_ns"),),
    definitions=(
        (
            "communication",
            "time in which at least one communication kernel runs; waiting for a late rank is part of it",
        ),
        ("hidden", "the part of it in which at least one computation kernel runs on the same device"),
        ("exposed", "the rest: the device communicates and does not compute"),
    ),
)
_IDLE_TIME = Analysis(
    name="idle_time",
    title="Idle time",
    question="What were the idle GPUs waiting for?",
    compute=idle_time,
    views=(
        View("Each device: no stream runs anything", tables.idle_per_device, "idle_ns"),
        View("Each stream: between two pieces of its own work", tables.idle_per_stream, "idle_ns", is_detail=True),
    ),
    definitions=(
        ("the host", "the part of a gap before the host called for the next work: the device had nothing to do"),
        (
            "the kernel's start",
            "the rest of a gap, where it is shorter than 30 µs: the usual time it takes to start a kernel",
        ),
        ("something else", "the rest of a gap, where it is longer: an event, another stream, or an unknown cause"),
    ),
)

ANALYSES: tuple[Analysis, ...] = (_TEMPORAL_BREAKDOWN, _KERNEL_BREAKDOWN, _COMMUNICATION_OVERLAP, _IDLE_TIME)
"""All analyses, the most general first."""


def analysis(name: str) -> Analysis:
    """Return the analysis of that name; KeyError where there is none."""
    return {each.name: each for each in ANALYSES}[name]
