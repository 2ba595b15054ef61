"""TraceDiff, with HTA's interface.

Names, arguments, defaults and columns are HTA's. The underlying `holotrace.compare_traces` returns more: separate rows
for each kind of event, means per call, and counts and times per step.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Literal, TypeAlias

import pandas as pd

from holotrace.analyses.compare_traces.compute import Device
from holotrace.analyses.compare_traces.figure import HEADINGS, MOST_NAMES
from holotrace.drawing.paired_bars import paired_bars
from holotrace.enrich.job.job_time import origin_ns
from holotrace.enrich.steps.steps import steps
from holotrace.errors import InvalidOptionError
from holotrace.export.new_file import expect_writable
from holotrace.ingest.open_trace import open_trace
from holotrace.locations import located
from holotrace.store.trace import Trace
from hta.facade.answers.comparison import comparison_frame, names_by_change
from hta.facade.imports.elsewhere import names_of
from hta.facade.results.show import save
from hta.facade.trace.names import shorten_name
from hta.facade.trace.trace_frame import symbol_table, trace_frame
from hta.facade.trace.trace_view import TraceView

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

TraceDir: TypeAlias = str
Numbers: TypeAlias = int | Iterable[int] | None


class DeviceType(Enum):
    """Which events to compare: host events, device events, or both."""

    CPU = 1
    GPU = 2
    ALL = 3


_DEVICES: dict[DeviceType, Device] = {DeviceType.CPU: "cpu", DeviceType.GPU: "gpu", DeviceType.ALL: "all"}


_UNNAMED = itertools.count()


class LabeledTrace:
    """A trace to compare, and the label of its columns in the result.

    The comparison includes the whole trace, even its last step.

    Args:
        label: the prefix of column names; by default `t0`, `t1` and so on.
        t: an open trace: `holotrace.open_trace(...)` or `TraceAnalysis(...).t`.
        trace_dir: the folder to open if `t` is None.

    Raises:
        InvalidOptionError: neither `t` nor `trace_dir` is given.
    """

    def __init__(
        self, label: str | None = None, t: Trace | TraceView | None = None, trace_dir: str | None = None
    ) -> None:
        if t is None and trace_dir is None:
            message = "LabeledTrace needs a trace: pass t=... or trace_dir=..."
            raise InvalidOptionError(message)
        self.t = TraceView(open_trace(str(trace_dir)), str(trace_dir)) if t is None else t
        self.label = label or f"t{next(_UNNAMED)}"

    @property
    def trace(self) -> Trace:
        """The trace to compare: all its events, with the changes that scripts made to its frames."""
        return _whole(self.t)

    @property
    def s_map(self) -> pd.Series:
        """The symbol id of each text."""
        return symbol_table(self.trace).get_sym_index_series()

    @property
    def s_tab(self) -> pd.Series:
        """The text of each symbol id."""
        return symbol_table(self.trace).get_sym_table_series()

    @property
    def iteration_df(self) -> pd.DataFrame:
        """One row per step: its name (`symbol`), the symbol id of its name (`id`), and its number (`iteration`)."""
        names = self.s_map[self.s_map.index.str.match(r"ProfilerStep#\d+$")]
        numbers = [int(name.removeprefix("ProfilerStep#")) for name in names.index]
        return pd.DataFrame({"symbol": names.index, "id": names.to_numpy(), "iteration": numbers})

    def ranks(self) -> list[int]:
        """Return the ranks in ascending order."""
        return list(self.trace.ranks)

    def iterations(self) -> list[int]:
        """Return the step numbers of all ranks in ascending order; empty if there are none."""
        ranks = self.trace.ranks.values()
        return sorted({step for rank_trace in ranks for step in steps(rank_trace)["step"].to_list()})

    def extract_ops(
        self, rank: Numbers = None, iteration: Numbers = None, device_type: DeviceType = DeviceType.ALL
    ) -> pd.DataFrame:
        """Return the events of some ranks and steps, by default of the first rank and step.

        Returns all events if the trace has no steps. Row labels are rank and `index`; `rank` is also a column.

        Raises:
            UnknownRankError, InvalidOptionError: the rank or step does not exist.
        """
        chosen = self.trace.select(self._ranks(rank))
        numbers = self._steps(iteration)
        symbols, origin = symbol_table(self.trace), origin_ns(self.trace)
        frames = {number: trace_frame(rank_trace, symbols, origin) for number, rank_trace in chosen.ranks.items()}
        joined = pd.concat(frames, names=["rank", None])
        joined.insert(0, "rank", joined.index.get_level_values(0))
        kept = joined if numbers is None else joined[joined["iteration"].isin(numbers)]
        return (
            kept if device_type is DeviceType.ALL else kept[(kept["stream"] != -1) == (device_type is DeviceType.GPU)]
        )

    def get_ops_summary(self, ops: pd.DataFrame) -> pd.DataFrame:
        """Return the count and summed duration of the events with each combination of category and name."""
        grouped = ops.groupby(["cat", "name"], as_index=False)["dur"].agg(["count", "sum"])
        texts = symbol_table(self.trace).get_sym_table()
        names = [texts[number] for number in grouped["name"]]
        return pd.DataFrame(
            {
                "cat": [texts[number] for number in grouped["cat"]],
                "name": names,
                "short_name": [shorten_name(name) for name in names],
                "counts": grouped["count"],
                "total_duration": grouped["sum"],
                "cat_id": grouped["cat"],
                "name_id": grouped["name"],
            }
        )

    def _ranks(self, rank: Numbers) -> list[int]:
        return self.ranks()[:1] if rank is None else _listed(rank)

    def _steps(self, iteration: Numbers) -> list[int] | None:
        """Return the given steps, by default the first step; None if the trace has no steps."""
        existing = self.iterations()
        if iteration is None:
            return existing[:1] or None
        wanted = _listed(iteration)
        unknown = [number for number in wanted if number not in existing]
        if unknown or not wanted:
            raise InvalidOptionError.unknown(unknown, existing, what="step")
        return wanted


AnyTrace: TypeAlias = str | Trace | TraceView | LabeledTrace


class TraceDiff:
    """Compare two traces by the names of their events."""

    @classmethod
    def compare_traces(  # noqa: PLR0913, PLR0917 -- HTA's signature
        cls,
        control: AnyTrace,
        test: AnyTrace,
        control_rank: Numbers = None,
        test_rank: Numbers = None,
        control_iteration: Numbers = None,
        test_iteration: Numbers = None,
        device_type: DeviceType = DeviceType.ALL,
        use_short_name: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
    ) -> pd.DataFrame:
        """Return the count and summed duration of each name in both traces, and the differences.

        Each trace is a folder, an open trace or a LabeledTrace. By default, compares the first step of the first rank, or
        the whole rank if a trace has no steps.

        Returns:
            indexed by name, or short_name: <control>_counts, <control>_total_duration, <test>_counts,
            <test>_total_duration, diff_counts, diff_duration, counts_change_categories (+, - or =); durations in µs.

        Raises:
            UnknownRankError, InvalidOptionError: the rank or step does not exist.
        """
        sides = _labeled(control, "Control"), _labeled(test, "Test")
        ranks, numbers = (control_rank, test_rank), (control_iteration, test_iteration)
        traces = [side.trace.select(side._ranks(rank)) for side, rank in zip(sides, ranks, strict=True)]  # noqa: SLF001
        chosen = [side._steps(number) for side, number in zip(sides, numbers, strict=True)]  # noqa: SLF001
        return comparison_frame(
            (traces[0], traces[1]),
            (chosen[0], chosen[1]),
            _labels(*sides),
            _DEVICES[device_type],
            use_short_name=use_short_name,
        )

    @classmethod
    def ops_diff(  # noqa: PLR0913, PLR0917 -- HTA's signature
        cls,
        control: AnyTrace,
        test: AnyTrace,
        control_rank: Numbers = None,
        test_rank: Numbers = None,
        control_iteration: Numbers = None,
        test_iteration: Numbers = None,
        device_type: DeviceType = DeviceType.ALL,
    ) -> dict[str, list[str]]:
        """Return {change: names} for five changes: added, deleted, or count increased, decreased or unchanged."""
        sides = _labeled(control, "Control"), _labeled(test, "Test")
        frame = cls.compare_traces(*sides, control_rank, test_rank, control_iteration, test_iteration, device_type)
        return names_by_change(frame, _labels(*sides))

    @classmethod
    def visualize_counts_diff(
        cls,
        df: pd.DataFrame,
        show_image: bool = True,  # noqa: FBT001, FBT002 -- HTA's signature
        export_image_path: str | None = None,
    ) -> None:
        """Show the names whose count changed most; optionally, write the figure to a new or existing file."""
        _visualize(df, "count", show_image=show_image, path=export_image_path)

    @classmethod
    def visualize_duration_diff(
        cls,
        df: pd.DataFrame,
        show_image: bool = True,  # noqa: FBT001, FBT002 -- HTA's signature
        export_image_path: str | None = None,
    ) -> None:
        """Show the names whose summed duration changed most; optionally, write the figure to a new or existing file."""
        _visualize(df, "duration", show_image=show_image, path=export_image_path)


def _visualize(df: pd.DataFrame, by: Literal["count", "duration"], *, show_image: bool, path: str | None) -> None:
    """Draw one of the two figures; writes `.html` files, or images if the package kaleido is installed."""
    change, ending = ("diff_counts", "_counts") if by == "count" else ("diff_duration", "_total_duration")
    if path is not None:
        expect_writable(located(path), overwrite=True)
    changed = df[df[change] != 0]
    shown = changed.reindex(changed[change].abs().sort_values(ascending=False, kind="stable").index).head(MOST_NAMES)
    scale = 1 if by == "count" else 1_000
    columns = [column for column in df.columns if column.endswith(ending) and column != change]
    sides = {column.removesuffix(ending): [round(scale * value) for value in shown[column]] for column in columns}
    figure = paired_bars([str(name) for name in shown.index], sides, by=by, heading=HEADINGS[by])
    if show_image:
        figure.show()
    if path is not None:
        save(figure, path)


def _labeled(trace: AnyTrace, label: str) -> LabeledTrace:
    if isinstance(trace, LabeledTrace):
        return trace
    return LabeledTrace(label, trace_dir=trace) if isinstance(trace, str) else LabeledTrace(label, t=trace)


def _labels(control: LabeledTrace, test: LabeledTrace) -> tuple[str, str]:
    """Return both labels; if they are equal, the label of the test trace gets a suffix."""
    return control.label, test.label if test.label != control.label else f"{test.label}_control_test"


def _whole(trace: Trace | TraceView) -> Trace:
    """Return the trace, or the trace of a view, with all of its events."""
    opened = trace.trace_by_steps if isinstance(trace, TraceView) else trace
    return Trace({rank: rank_trace.unselected for rank, rank_trace in opened.ranks.items()}, opened.skipped)


def _listed(numbers: int | Iterable[int]) -> list[int]:
    return [numbers] if isinstance(numbers, int) else list(numbers)
