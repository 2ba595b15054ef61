"""TraceAnalysis as scripts and notebooks written for Holistic Trace Analysis know it.

Names, arguments, defaults and columns are HTA's; results are pandas frames, times are in microseconds. Behind it are
the analyses of this package, so the numbers are exact where HTA rounds or guesses; what differs, and why, is listed in
docs/reference/from_hta.md. New code is better off with `holotrace.open_trace` and the functions of `holotrace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from holotrace.analyses.temporal_breakdown.compute import temporal_breakdown
from holotrace.enrich.steps.steps import before_last_step
from holotrace.errors import InvalidOptionError, MissingDataError
from holotrace.ingest.open_trace import open_trace
from hta.configs.default_values import DEFAULT_TRACE_DIR
from hta.configs.parser_config import ParserConfig
from hta.facade.imports.elsewhere import names_of
from hta.facade.imports.later import called_later
from hta.facade.imports.pandas_later import import_pandas_aside
from hta.facade.results.show import show
from hta.facade.results.times import frame_in_microseconds
from hta.facade.results.without_gpu_work import no_idle_times, no_kernels, no_overlap, no_times
from hta.facade.trace.sources import source_of
from hta.facade.trace.trace_view import TraceView

if TYPE_CHECKING:
    import pandas as pd

    from holotrace.analyses.communication_overlap.compute import communication_overlap
    from holotrace.analyses.distributed.compute import distributed
    from holotrace.analyses.gpu_summary.compute import gpu_summary
    from holotrace.analyses.idle_time.compute import IdleTime, idle_time
    from holotrace.analyses.kernel_breakdown.compute import KernelBreakdown, kernel_breakdown
    from holotrace.analyses.kernels.compute import kernels
    from holotrace.analyses.memory_timeline.compute import memory_timeline
    from holotrace.analyses.modules.compute import modules
    from holotrace.analyses.operator_memory.compute import OperatorMemory
    from holotrace.analyses.operators.compute import operators
    from holotrace.analyses.step_time.compute import step_time
    from holotrace.drawing.theme import Theme
    from holotrace.enrich.host.host_names import Compat
    from holotrace.export.counters import TimeSeriesTypes
    from holotrace.figures import (
        plot_communication_overlap,
        plot_distributed,
        plot_gpu_summary,
        plot_idle_time,
        plot_kernel_breakdown,
        plot_kernels,
        plot_memory_timeline,
        plot_modules,
        plot_operators,
        plot_step_time,
        plot_temporal_breakdown,
    )
    from holotrace.overview import overview
    from holotrace.recommendations.advice import advice
    from holotrace.recommendations.rules import Thresholds
    from holotrace.store.trace import Trace
    from hta.facade.answers.counters import traces_with_counters
    from hta.facade.answers.cupti_counters import counters_with_operators
    from hta.facade.answers.dashboard import Dashboard
    from hta.facade.answers.kernel_sequences import sequence_frame
    from hta.facade.answers.launch_statistics import launch_frames
    from hta.facade.answers.memory import memory_frame, memory_within
    from hta.facade.answers.memory_bandwidth import memory_bw_summary, memory_bw_time_series
    from hta.facade.answers.operator_kernels import operator_kernel_frames
    from hta.facade.answers.queue_length import queue_length_summary, queue_length_time_series, time_blocked
    from hta.facade.answers.stragglers import StragglerMethod, potential_stragglers
    from hta.facade.answers.user_annotations import annotation_breakdown, kernels_with_annotations
    from hta.facade.graphs.critical_path import CPGraph, critical_path_of, overlaid_critical_path
else:
    from hta.facade.imports.pandas_later import pd

    # A script that asks one question waits for plotly and twenty analyses otherwise: half a second.
    globals().update(
        called_later(
            {
                **{
                    name: f"holotrace.analyses.{name}.compute"
                    for name in (
                        "communication_overlap",
                        "distributed",
                        "gpu_summary",
                        "idle_time",
                        "kernel_breakdown",
                        "kernels",
                        "memory_timeline",
                        "modules",
                        "operators",
                        "step_time",
                    )
                },
                **{
                    f"plot_{name}": "holotrace.figures"
                    for name in (
                        "communication_overlap",
                        "distributed",
                        "gpu_summary",
                        "idle_time",
                        "kernel_breakdown",
                        "kernels",
                        "memory_timeline",
                        "modules",
                        "operators",
                        "step_time",
                        "temporal_breakdown",
                    )
                },
                "Dashboard": "hta.facade.answers.dashboard",
                "IdleTime": "holotrace.analyses.idle_time.compute",
                "advice": "holotrace.recommendations.advice",
                "annotation_breakdown": "hta.facade.answers.user_annotations",
                "counters_with_operators": "hta.facade.answers.cupti_counters",
                "critical_path_of": "hta.facade.graphs.critical_path",
                "kernels_with_annotations": "hta.facade.answers.user_annotations",
                "launch_frames": "hta.facade.answers.launch_statistics",
                "memory_bw_summary": "hta.facade.answers.memory_bandwidth",
                "memory_bw_time_series": "hta.facade.answers.memory_bandwidth",
                "memory_frame": "hta.facade.answers.memory",
                "memory_within": "hta.facade.answers.memory",
                "operator_kernel_frames": "hta.facade.answers.operator_kernels",
                "overlaid_critical_path": "hta.facade.graphs.critical_path",
                "overview": "holotrace.overview",
                "potential_stragglers": "hta.facade.answers.stragglers",
                "queue_length_summary": "hta.facade.answers.queue_length",
                "queue_length_time_series": "hta.facade.answers.queue_length",
                "sequence_frame": "hta.facade.answers.kernel_sequences",
                "time_blocked": "hta.facade.answers.queue_length",
                "traces_with_counters": "hta.facade.answers.counters",
            }
        )
    )
    __getattr__ = names_of(__name__)

_STATE_KINDS = ("computation", "communication", "memory")
_OTHERS = "others"


class TraceAnalysis:
    """The analyses of a job, with the interface of HTA.

    Args:
        trace_files: `{rank: file}`, or a list of files whose ranks are found as `holotrace.open_trace` finds them. Relative
            names are looked for in `trace_dir` first, as HTA does, and then in the current folder.
        trace_dir: the folder of the traces; all of them are opened where `trace_files` is None.
        include_last_profiler_step: keep the last step, which HTA leaves out where there are at least two.
        parser_config: which args are columns of `t.get_trace(rank)`; by default HTA's. No result depends on it.

    Raises:
        TraceNotFoundError: there is no trace at these paths.
    """

    def __init__(
        self,
        trace_files: Mapping[int, str] | Sequence[str] | None = None,
        trace_dir: str = DEFAULT_TRACE_DIR,
        include_last_profiler_step: bool | None = False,  # noqa: FBT001, FBT002 -- HTA's signature
        parser_config: ParserConfig | None = None,
    ) -> None:
        import_pandas_aside()
        trace = open_trace(source_of(trace_files, trace_dir))
        kept = trace if include_last_profiler_step else trace.where(before_last_step)
        self.t = TraceView(kept, trace_dir, parser_config)

    @classmethod
    def of(cls, t: TraceView) -> TraceAnalysis:
        """Return the analyses of a trace that is open: `hta.common.trace.Trace`, or `analyzer.t` of another analyzer."""
        analyzer = TraceAnalysis.__new__(cls)
        analyzer.t = t
        return analyzer

    @property
    def _trace(self) -> Trace:
        """What the analyses work on: `t`, with what scripts changed in its frames."""
        return self.t.trace

    def _memory_within(self, start_us: float | None, end_us: float | None, compat: Compat | None) -> OperatorMemory:
        return memory_within(self._trace, start_us, end_us, compat, self.t.origin_ns)

    def get_profiler_steps(self) -> list[int]:
        """Return the numbers of the profiler steps of all ranks, in rising order."""
        return sorted({step for rank in self.t.get_ranks() for step in self.t.get_iterations(rank)})

    def dashboard(self, theme: Theme = "light") -> Dashboard:
        """Return the verdict and the figures of all analyses; a notebook shows them where a cell ends with this.

        Args:
            theme: `light` or `dark`, as the notebook is.
        """
        return Dashboard(overview(self._trace), theme)

    def get_temporal_breakdown(self, visualize: bool = True) -> pd.DataFrame:  # noqa: FBT001, FBT002 -- HTA's
        """Return how each rank's time splits into idle, computing and other time; devices of a rank are added up.

        Returns:
            rank, idle_time(us), compute_time(us), non_compute_time(us), kernel_time(us), idle_time_pctg,
            compute_time_pctg, non_compute_time_pctg: percentages have two decimals. Where no rank has GPU work there
            are no rows, and the attrs have a `reason`.
        """
        try:
            result = temporal_breakdown(self._trace)
        except MissingDataError as error:
            return no_times(str(error))
        if visualize:
            show(plot_temporal_breakdown(result))
        sums = pl.col("idle_ns", "compute_ns", "non_compute_ns", "window_ns").sum()
        per_rank = result.per_device.group_by("rank", maintain_order=True).agg(sums)
        times = {
            f"{name}_time(us)": _microseconds(per_rank[f"{name}_ns"]) for name in ("idle", "compute", "non_compute")
        }
        return pd.DataFrame(
            {
                "rank": _whole_numbers(per_rank["rank"]),
                **times,
                "kernel_time(us)": _microseconds(per_rank["window_ns"]),
                **{
                    f"{name}_time_pctg": _percentage(per_rank[f"{name}_ns"], per_rank["window_ns"], decimals=2)
                    for name in ("idle", "compute", "non_compute")
                },
            }
        )

    def get_comm_comp_overlap(self, visualize: bool = True) -> pd.DataFrame:  # noqa: FBT001, FBT002 -- HTA's
        """Return which percentage of each rank's communication time was hidden behind computation.

        Returns:
            rank, comp_comm_overlap_pctg: two decimals, NaN for a rank that does not communicate. Where no rank has GPU
            work, NaN for each, and the attrs have a `reason`.
        """
        try:
            result = communication_overlap(self._trace)
        except MissingDataError as error:
            return no_overlap(self._trace.ranks, str(error))
        if visualize:
            show(plot_communication_overlap(result))
        table = result.per_rank
        percentage = _percentage(table["overlap_ns"], table["comm_ns"], decimals=2)
        return pd.DataFrame({"rank": _whole_numbers(table["rank"]), "comp_comm_overlap_pctg": percentage})

    def get_gpu_kernel_breakdown(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002
        duration_ratio: float = 0.8,
        num_kernels: int = 10,
        include_memory_kernels: bool = True,  # noqa: FBT001, FBT002
        image_renderer: str = "",
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the time of each kind of work over all ranks, and the statistics of each rank's kernels.

        A rank with more than `num_kernels` kernels of a kind keeps the longest of them: as many as it takes to cover
        `duration_ratio` of the kind's time, and at most `num_kernels`. The rest become one row called `others`.

        Returns:
            kernel_type, sum, percentage: disjoint combinations of kinds, the longest first, one decimal.
            name, sum (us), max (us), min (us), stddev, mean (us), kernel_type, rank, count: statistics of calls,
            also those of `others`; sorted by kernel_type, name, rank. Where no rank has GPU work both are empty, and
            their attrs have a `reason`.
        """
        try:
            result = kernel_breakdown(self._trace)
        except MissingDataError as error:
            return no_kernels(str(error))
        if visualize:
            show(plot_kernel_breakdown(result), image_renderer)
        kinds = _STATE_KINDS if include_memory_kernels else _STATE_KINDS[:2]
        return _kernel_types(result, kinds), _kernel_statistics(result, kinds, duration_ratio, num_kernels)

    def get_idle_time_breakdown(  # noqa: PLR0913, PLR0917 -- HTA's signature
        self,
        ranks: Iterable[int] | None = None,
        streams: Iterable[int] | None = None,
        visualize: bool = True,  # noqa: FBT001, FBT002
        visualize_pctg: bool = True,  # noqa: FBT001, FBT002
        show_idle_interval_stats: bool = False,  # noqa: FBT001, FBT002
        consecutive_kernel_delay: float = 30,
    ) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """Return how long each stream was idle, by what it waited for.

        Args:
            ranks: only these; by default all there are.
            streams: only these; by default all there are.
            visualize: show the figure.
            visualize_pctg: let the figure show shares instead of times.
            show_idle_interval_stats: return statistics of the idle intervals as well.
            consecutive_kernel_delay: from this wait on, in microseconds, a kernel was held up by something else.

        Returns:
            rank, stream, idle_category, idle_time, idle_time_ratio, device: the categories host_wait, kernel_wait and
            other of each stream; time in microseconds, ratio in the stream's idle time with two decimals.
            None, or indexed by idle_category: rank, stream, count, mean, std, min, 25%, 50%, 75%, max, device.
            Where no rank has GPU work both are without rows, and their attrs have a `reason`.

        Raises:
            UnknownRankError, InvalidOptionError: there is no such rank, or stream.
        """
        threshold_ns = round(1_000 * consecutive_kernel_delay)
        try:
            found = idle_time(self._trace.select(_listed(ranks)), gap_threshold_ns=threshold_ns)
        except MissingDataError as error:
            times, statistics = no_idle_times(str(error))
            return times, statistics if show_idle_interval_stats else None
        result = found if streams is None else _of_streams(found, list(streams))
        if visualize:
            show(plot_idle_time(result, by="stream", as_share=visualize_pctg))
        return _idle_times(result), _idle_statistics(result) if show_idle_interval_stats else None

    def get_cuda_kernel_launch_stats(
        self,
        ranks: Iterable[int] | None = None,
        runtime_cutoff: float = 50,
        launch_delay_cutoff: float = 100,
        include_memory_events: bool = True,  # noqa: FBT001, FBT002
        visualize: bool = True,  # noqa: FBT001, FBT002
    ) -> dict[int, pd.DataFrame]:
        """Return every launch with the work it launched, for each rank.

        Args:
            ranks: only these; by default all there are.
            runtime_cutoff: the figure calls longer calls slow, in microseconds.
            launch_delay_cutoff: the figure calls longer delays late, in microseconds.
            include_memory_events: count copies and memsets as well as kernels.
            visualize: show the figure.

        Returns:
            {rank: correlation, cpu_duration, gpu_duration, launch_delay, kernel, operator, stream, rank, launch}: times
            in microseconds; launch_delay is at least 0; launch is the name of the call.
        """
        return launch_frames(
            self._trace,
            ranks,
            runtime_cutoff=runtime_cutoff,
            launch_delay_cutoff=launch_delay_cutoff,
            include_memory_events=include_memory_events,
            visualize=visualize,
        )

    def get_aten_op_kernels_and_delay(
        self, ranks: Iterable[int] | None = None, sort_by: Sequence[str] | None = None
    ) -> dict[int, pd.DataFrame]:
        """Return the kernels that each operator launches and how soon, for each rank.

        Args:
            ranks: only these; by default all there are.
            sort_by: columns, each from large to small; by default occurrence_count.

        Returns:
            {rank: aten_op_name, kernel_sequence, occurrence_count, avg_aten_op_launch_delay, avg_runtime_delay}: from the
            operator to its first launch, and from there to the kernel, in microseconds with three decimals.
        """
        return operator_kernel_frames(self._trace, ranks, sort_by)

    def get_frequent_cuda_kernel_sequences(  # noqa: PLR0913, PLR0917 -- HTA's signature
        self,
        operator_name: str,
        output_dir: str,
        min_pattern_len: int = 3,
        rank: int = 0,
        top_k: int = 5,
        visualize: bool = False,  # noqa: FBT001, FBT002
        compress_other_kernels: bool = True,  # noqa: FBT001, FBT002
    ) -> pd.DataFrame:
        """Return the sequences of kernels that an operator launches, and write a trace in which they are marked.

        Args:
            operator_name: operators and annotations whose name contains this, the outermost of each call stack.
            output_dir: where the trace is written, as `overlaid_<name of the file>`; an earlier one is replaced.
            min_pattern_len: calls that launch fewer kernels are left out.
            rank: whose trace.
            top_k: how many sequences to mark, the most frequent first.
            visualize: show the figure.
            compress_other_kernels: leave out what is known of events that are not marked, for a smaller file.

        Returns:
            pattern, count, GPU kernel duration (us), CPU op duration (us): the most frequent first. Its attrs have
            the path of the trace, `overlaid_trace`; where there is no such sequence, no trace but a `reason`.

        Raises:
            InvalidOptionError: the folder is missing or cannot be written, or the name is empty.
        """
        return sequence_frame(
            self._trace,
            operator_name,
            output_dir,
            min_pattern_len=min_pattern_len,
            rank=rank,
            top_k=top_k,
            visualize=visualize,
            compress_other_kernels=compress_other_kernels,
        )

    def get_queue_length_time_series(self, ranks: Iterable[int] | None = None) -> dict[int, pd.DataFrame]:
        """Return how many launches wait for each stream, after each change; by default on all ranks.

        Returns:
            {rank: frame} of the ranks that launch work, indexed by the event that changes the length: ts in microseconds
            from the first event of the job, pid, tid, stream, queue_length; sorted by stream and ts.
        """
        return queue_length_time_series(self._trace, ranks, self.t.origin_ns)

    def get_queue_length_summary(self, ranks: Iterable[int] | None = None) -> pd.DataFrame:
        """Return count, mean, std, min, quartiles and max of the queue lengths of each rank and stream.

        Every change counts once; `holotrace.queue_length(trace).by_time` weighs each length by how long it lasts.
        """
        return queue_length_summary(queue_length_time_series(self._trace, ranks, self.t.origin_ns))

    def get_queue_length_summary_from_time_series(self, queue_length_dict: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
        """Return the summary of frames that `get_queue_length_time_series` gave; the frames stay as they are."""
        return queue_length_summary(queue_length_dict)

    def get_time_spent_blocked_on_full_queue(
        self, queue_length_dict: Mapping[int, pd.DataFrame], max_queue_length: int = 1024
    ) -> pd.DataFrame:
        """Return how long the queue of each stream was full.

        Returns:
            rank, stream, duration_at_max_queue_length (us), relative_duration_at_max_queue_length: a share of the time
            from the rank's first event to the start of its last; a row for each stream that was ever full.
        """
        return time_blocked(self._trace, queue_length_dict, max_queue_length)

    def get_memory_bw_time_series(self, ranks: Iterable[int] | None = None) -> dict[int, pd.DataFrame]:
        """Return the bandwidth of the copies that run, after each change; by default on all ranks.

        Returns:
            {rank: frame} of the ranks that copy: ts in microseconds from the first event of the job, pid, name (kind of
            copy), memory_bw_gbps; sorted by name and ts.
        """
        return memory_bw_time_series(self._trace, ranks, self.t.origin_ns)

    def get_memory_bw_summary(self, ranks: Iterable[int] | None = None) -> pd.DataFrame:
        """Return count, mean, std, min, quartiles and max of the bandwidths above 0 of each rank and kind of copy.

        Every change counts once; `holotrace.memory_bandwidth(trace).by_time` weighs each bandwidth by how long it lasts.
        """
        return memory_bw_summary(memory_bw_time_series(self._trace, ranks, self.t.origin_ns))

    def generate_trace_with_counters(
        self,
        time_series: TimeSeriesTypes | None = None,
        ranks: Iterable[int] | None = None,
        output_suffix: str = "_with_counters",
        output_dir: str | None = None,
        overwrite: bool = True,  # noqa: FBT001, FBT002 -- as the others here
    ) -> dict[int, str]:
        """Copy the trace files with queue lengths and bandwidths as counters for Perfetto; by default of all ranks.

        Args:
            time_series: which counters, by default both.
            ranks: only these.
            output_suffix: comes before `.json` in the name of each copy.
            output_dir: where to write, by default beside each file.
            overwrite: replace earlier copies; else they are an error.

        Returns:
            {rank: path of the copy}
        """
        return traces_with_counters(self._trace, time_series, ranks, output_suffix, output_dir, overwrite=overwrite)

    def get_gpu_kernels_with_user_annotations(
        self,
        rank: int,
        expand_names: bool = True,  # noqa: FBT001, FBT002
        shorten_names: bool = True,  # noqa: FBT001, FBT002
        shortern_names: bool | None = None,  # noqa: FBT001 -- as HTA 0.5 spelled it
    ) -> pd.DataFrame:
        """Return the device work of a rank, each row with the innermost annotation it begins in.

        Where the profiler did not project annotations onto streams, work belongs to the annotation of the host in
        which it was launched; HTA returns None then.

        Returns:
            The columns of `analyzer.t.get_trace(rank)` and `user_annotation`: the number of its name, -1 for none.
            With `expand_names` also s_name (shortened if `shorten_names`), s_cat and s_user_annotation as texts.

        Raises:
            UnknownRankError: there is no such rank.
        """
        is_short = shorten_names if shortern_names is None else shortern_names
        return kernels_with_annotations(self.t, rank, expand_names=expand_names, shorten_names=is_short)

    def get_gpu_user_annotation_breakdown(  # noqa: PLR0913, PLR0917 -- HTA's signature
        self,
        use_gpu_annotation: bool = True,  # noqa: FBT001, FBT002
        visualize: bool = True,  # noqa: FBT001, FBT002
        duration_ratio: float = 0.8,
        num_kernels: int = 1000,
        allowlist_patterns: list[str] | None = None,
        image_renderer: str | None = None,
    ) -> pd.DataFrame:
        """Return the statistics of each rank's user annotations on the GPU, or on the CPU.

        A rank with more than `num_kernels` names keeps the longest that cover `duration_ratio` of the time, at most
        `num_kernels`, and those that a regular expression of `allowlist_patterns` finds; the rest become `others`.

        Returns:
            name, sum (us), max (us), min (us), stddev, mean (us), rank: of single ranges, also for `others`; sorted
            by rank and name.
        """
        return annotation_breakdown(
            self.t,
            use_gpu_annotation=use_gpu_annotation,
            visualize=visualize,
            duration_ratio=duration_ratio,
            num_kernels=num_kernels,
            allowlist_patterns=allowlist_patterns,
            image_renderer=image_renderer,
        )

    def get_potential_stragglers(
        self,
        profiler_steps: list[int] | None = None,
        num_candidates: int = 2,
        visualize: bool = False,  # noqa: FBT001, FBT002
        straggler_identification_impl: StragglerMethod | None = None,
    ) -> list[int]:
        """Return the ranks that the others wait for in their collectives, the worst one first.

        Args:
            profiler_steps: only these; numbers that do not exist are left out. By default all.
            num_candidates: return at most so many ranks; fewer where fewer ever came last.
            visualize: show how late each rank is.
            straggler_identification_impl: another method, such as HTA's own
                `hta.analyzers.straggler.find_stragglers_with_late_start_comm_kernels`: called with a frame of all
                ranks, the symbol table, `num_candidates` and `visualize`, returns a score for each rank. By default
                waits are compared, see docs/reference/analyses/stragglers.md.

        Raises:
            InvalidOptionError: none of the steps asked for exists.
        """
        return potential_stragglers(
            self.t,
            profiler_steps=profiler_steps,
            num_candidates=num_candidates,
            visualize=visualize,
            method=straggler_identification_impl,
        )

    def get_step_time_breakdown(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002 -- as HTA's methods have it
        annotation: str | None = None,
        compat: Compat | None = None,
    ) -> pd.DataFrame:
        """Return what each step of each rank spent its time on; the categories add up to the step.

        Returns:
            `per_step` of `holotrace.step_time`, times in µs: rank, step, start(us), end(us), duration(us), kernel(us),
            memcpy(us), memset(us), communication(us), runtime(us), dataloader(us), cpu(us), other(us).
        """
        result = step_time(self.t.trace_by_steps, annotation=annotation, compat=compat)
        if visualize:
            show(plot_step_time(result))
        return frame_in_microseconds(result.per_step)

    def get_gpu_summary(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002 -- as HTA's methods have it
        compat: Compat | None = None,
    ) -> pd.DataFrame:
        """Return what each device is and how well it is used: `per_device` of `holotrace.gpu_summary`, times in µs."""
        result = gpu_summary(self._trace, compat=compat)
        if visualize:
            show(plot_gpu_summary(result))
        return frame_in_microseconds(result.per_device)

    def get_kernel_summary(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002 -- as HTA's methods have it
        compat: Compat | None = None,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the kernels by name, and by operator and launch: the tables of `holotrace.kernels`, times in µs."""
        result = kernels(self._trace, compat=compat)
        if visualize:
            show(plot_kernels(result))
        return frame_in_microseconds(result.by_name), frame_in_microseconds(result.by_launch)

    def get_operator_summary(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002 -- as HTA's methods have it
        group_by: Literal["name", "shape", "stack"] = "name",
        compat: Compat | None = None,
    ) -> pd.DataFrame:
        """Return the time of each operator of each rank: a table of `holotrace.operators`, times in µs.

        Args:
            visualize: show the figure.
            group_by: `by_name`, `by_shape` (with input_shape), or `by_stack` (with input_shape and call_stack).
            compat: "torch_tb_profiler" for the numbers of PyTorch's TensorBoard plugin.
        """
        result = operators(self._trace, compat=compat)
        if visualize:
            show(plot_operators(result))
        tables = {"name": result.by_name, "shape": result.by_shape, "stack": result.by_stack}
        return frame_in_microseconds(tables[group_by])

    def get_module_summary(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002 -- as HTA's methods have it
        compat: Compat | None = None,
    ) -> pd.DataFrame:
        """Return the time of each module of each rank: `per_module` of `holotrace.modules`, times in µs."""
        result = modules(self._trace, compat=compat)
        if visualize:
            show(plot_modules(result))
        return frame_in_microseconds(result.per_module)

    def get_distributed_summary(self, visualize: bool = True, compat: Compat | None = None) -> pd.DataFrame:  # noqa: FBT001, FBT002 -- as HTA's methods have it
        """Return how each step of each rank divides into computing and communicating, and what of that is waiting.

        Returns:
            `per_step` of `holotrace.distributed`, times in µs: rank, step, step(us), computation(us), overlap(us),
            communication(us), other(us), collective_count, collective(us), transfer(us), synchronising(us),
            unmatched(us).
        """
        result = distributed(self.t.trace_by_steps, compat=compat)
        if visualize:
            show(plot_distributed(result))
        return frame_in_microseconds(result.per_step)

    def get_communication_operations(self, compat: Compat | None = None) -> pd.DataFrame:
        """Return calls, sizes and times of each collective of each rank, by element type.

        Returns:
            `per_operation` of `holotrace.distributed`, times in µs, sizes in bytes: rank, collective, dtype, call_count,
            bytes, mean_bytes, latency(us), mean_latency(us), matched_count, transfer(us), mean_transfer(us).
        """
        return frame_in_microseconds(distributed(self.t.trace_by_steps, compat=compat).per_operation)

    def get_memory_curve(self, visualize: bool = True) -> pd.DataFrame:  # noqa: FBT001, FBT002 -- as HTA's methods have it
        """Return the memory of each device after each allocation and free.

        Returns:
            `series` of `holotrace.memory_timeline`, times in µs since the first event of the job, sizes in bytes: rank, device_type, device_id, time(us),
            change_bytes, allocated_bytes, reserved_bytes.
        """
        result = memory_timeline(self._trace)
        if visualize:
            show(plot_memory_timeline(result))
        return memory_frame(result.series, self.t.origin_ns)

    def get_memory_events(
        self, start_us: float | None = None, end_us: float | None = None, compat: Compat | None = None
    ) -> pd.DataFrame:
        """Return every block of memory: who allocated it, and when it was allocated and released.

        Args:
            start_us: only blocks allocated or released from this time on, in µs as the frame shows them.
            end_us: only blocks allocated or released until this time.
            compat: "torch_tb_profiler" for the numbers of PyTorch's TensorBoard plugin.

        Returns:
            `blocks` of `holotrace.operator_memory`, times in µs since the first event of the job: rank, device_type, device_id, operator, caller,
            block_bytes, allocated(us), released(us), lifetime(us).
        """
        return memory_frame(self._memory_within(start_us, end_us, compat).blocks, self.t.origin_ns)

    def get_memory_statistics(
        self, start_us: float | None = None, end_us: float | None = None, compat: Compat | None = None
    ) -> pd.DataFrame:
        """Return what each operator allocates and frees, in the time from `start_us` to `end_us`.

        Returns:
            `per_operator` of `holotrace.operator_memory`, sizes in bytes: rank, device_type, device_id, operator, calls,
            total_increase_bytes, self_increase_bytes, total_allocation_count, self_allocation_count,
            total_allocated_bytes, self_allocated_bytes, self_unreleased_bytes.
        """
        return frame_in_microseconds(self._memory_within(start_us, end_us, compat).per_operator)

    def get_recommendations(self, thresholds: Thresholds | None = None, compat: Compat | None = None) -> pd.DataFrame:
        """Return what to try first, one row for each rule that applies: `recommendations` of `holotrace.advice`."""
        return frame_in_microseconds(
            advice(self.t.trace_by_steps, thresholds=thresholds, compat=compat).recommendations
        )

    def get_cupti_counter_data_with_operators(self, ranks: list[int] | None = None) -> list[pd.DataFrame]:
        """Return the hardware counters of each kernel with the operators that launched it, a frame for each rank.

        Returns:
            Of the ranks asked for, by default all, those that have counters: the columns of
            `analyzer.t.get_trace(rank)` with `cat` and `name` as texts, one column for each counter, index_runtime
            (the call that launched the kernel, -1 where it is not known), op_stack (operators, outermost first),
            top_level_op and bottom_level_op.
        """
        return counters_with_operators(self.t, ranks)

    def critical_path_analysis(
        self,
        rank: int,
        annotation: str,
        instance_id: int | tuple[int, int] | None,
        data_load_events: list[str] | None = None,
    ) -> tuple[CPGraph, bool]:
        """Find what bounds a part of a rank's recording, from its beginning to its end.

        Args:
            rank: whose trace.
            annotation: the name of annotations, or a part of their names such as "ProfilerStep"; "" for the whole
                trace.
            instance_id: which of them, counted from 0 as they begin; (first, last) for several with all between them;
                None for the first.
            data_load_events: what loads data has one of these in its name; by default the usual names.

        Returns:
            The graph with its critical path, and whether that succeeded: see `CPGraph.critical_path`.

        Raises:
            UnknownRankError: there is no such rank.
            InvalidOptionError: there is no such annotation or instance; the message says which there are.
            MissingDataError: nothing was recorded there.
        """
        return critical_path_of(self.t, rank, annotation, instance_id, data_load_events)

    def overlay_critical_path_analysis(
        self,
        rank: int,
        critical_path_graph: CPGraph,
        output_dir: str,
        only_show_critical_events: bool = True,  # noqa: FBT001, FBT002 -- HTA's signature
        show_all_edges: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
    ) -> str:
        """Write a copy of a rank's trace in which the critical path is marked, for Perfetto.

        Events on the path have the arg `critical`; arrows of the category `critical_path` lead along the path where it
        goes from one event to another.

        Args:
            rank: whose trace.
            critical_path_graph: what `critical_path_analysis` returned.
            output_dir: where to write, made where it is missing: `overlaid_critical_path_<name of the file>`; an
                earlier one is replaced.
            only_show_critical_events: leave out events with a duration that are not on the path, except annotations
                and Python functions.
            show_all_edges: draw all edges of the graph; only without `only_show_critical_events`. Launches that delay
                nothing are among them if the environment variable CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE is 1.

        Returns:
            The path of the copy.

        Raises:
            InvalidOptionError: the folder cannot be written, or the graph is of another rank.
        """
        return overlaid_critical_path(
            self.t,
            rank,
            critical_path_graph,
            output_dir,
            only_show_critical_events=only_show_critical_events,
            show_all_edges=show_all_edges,
        )


def _listed(values: Iterable[int] | None) -> list[int] | None:
    return None if values is None else list(values)


def _microseconds(values_ns: pl.Series) -> np.ndarray[Any, Any]:
    """Return whole numbers where all values are whole microseconds, else exact thousandths."""
    nanoseconds = values_ns.to_numpy().astype(np.int64)
    return nanoseconds / 1_000 if (nanoseconds % 1_000).any() else nanoseconds // 1_000


def _whole_numbers(values: pl.Series) -> np.ndarray[Any, Any]:
    return values.to_numpy().astype(np.int64)


def _rounded_microseconds(values_ns: pl.Series) -> np.ndarray[Any, Any]:
    """Return microseconds with two decimals, NaN for null."""
    nanoseconds = values_ns.cast(pl.Float64).fill_null(np.nan).to_numpy().astype(np.float64)
    return np.round(nanoseconds / 1_000, 2)


def _percentage(part: pl.Series, whole: pl.Series, *, decimals: int) -> np.ndarray[Any, Any]:
    """Return rounded percentages, NaN where the whole is 0."""
    parts, wholes = part.to_numpy().astype(np.float64), whole.to_numpy().astype(np.float64)
    shares = np.full(len(parts), np.nan)
    np.divide(parts, wholes, out=shares, where=wholes != 0)
    return np.round(100 * shares, decimals)


def _kernel_types(result: KernelBreakdown, kinds: Sequence[str]) -> pd.DataFrame:
    """Return the states of these kinds under HTA's names; what runs beside them does not count."""
    names = {state: _holotrace_state(state, kinds) for state in result.per_state["state"].unique()}
    named = result.per_state.with_columns(pl.col("state").replace_strict(names, return_dtype=pl.String))
    table = (
        named.filter(pl.col("state") != "")
        .group_by("state")
        .agg(pl.col("duration_ns").sum())
        .sort(["duration_ns", "state"], descending=[True, False])
    )
    total = pl.Series([table["duration_ns"].sum()] * len(table), dtype=pl.Int64)
    return pd.DataFrame(
        {
            "kernel_type": table["state"].to_list(),
            "sum": _microseconds(table["duration_ns"]),
            "percentage": _percentage(table["duration_ns"], total, decimals=1),
        }
    )


def _holotrace_state(state: str, kinds: Sequence[str]) -> str:
    return " overlapping ".join(kind.upper() for kind in state.split(" + ") if kind in kinds)


def _kernel_statistics(
    result: KernelBreakdown, kinds: Sequence[str], duration_ratio: float, num_kernels: int
) -> pd.DataFrame:
    kernels = result.per_kernel.filter(pl.col("kernel_kind").is_in(kinds))
    groups = kernels.partition_by("rank", "kernel_kind", maintain_order=True)
    rows = [row for group in groups for row in _with_others(group, duration_ratio, num_kernels)]
    schema = ["name", "sum", "max", "min", "std", "mean", "kind", "rank", "count"]
    table = pl.DataFrame(rows, schema=schema, orient="row", infer_schema_length=None).sort("kind", "name", "rank")
    return pd.DataFrame(
        {
            "name": table["name"].to_list(),
            "sum (us)": _microseconds(table["sum"]),
            "max (us)": _microseconds(table["max"]),
            "min (us)": _microseconds(table["min"]),
            "stddev": table["std"].to_numpy() / 1_000,
            "mean (us)": table["mean"].to_numpy() / 1_000,
            "kernel_type": table["kind"].to_list(),
            "rank": _whole_numbers(table["rank"]),
            "count": _whole_numbers(table["count"]),
        }
    )


def _with_others(group: pl.DataFrame, duration_ratio: float, num_kernels: int) -> list[tuple[Any, ...]]:
    """Return the rows of one rank and kind, those after the cut-off joined to one."""
    ordered = group.sort(["sum_ns", "name"], descending=[True, False])
    kept = len(ordered) if len(ordered) <= num_kernels else _kept_count(ordered["sum_ns"], duration_ratio, num_kernels)
    rows = [_kernel_row(row) for row in ordered.head(kept).iter_rows(named=True)]
    return [*rows, _others_row(ordered.slice(kept))] if kept < len(ordered) else rows


def _kept_count(sums: pl.Series, duration_ratio: float, num_kernels: int) -> int:
    """Return how many of the longest kernels cover that share of the time, at most `num_kernels`."""
    covered = np.cumsum(sums.to_numpy())
    return min(num_kernels, int(np.searchsorted(covered, duration_ratio * covered[-1])) + 1)


def _kernel_row(row: dict[str, Any]) -> tuple[Any, ...]:
    spread = row["std_ns"] or 0.0
    columns = ("name", "sum_ns", "max_ns", "min_ns")
    return (
        *(row[name] for name in columns),
        spread,
        row["mean_ns"],
        row["kernel_kind"].upper(),
        row["rank"],
        row["call_count"],
    )


def _others_row(rest: pl.DataFrame) -> tuple[Any, ...]:
    """Return the statistics over all calls of the kernels left out, from those of each kernel."""
    counts, means, spreads = (rest[name].to_numpy() for name in ("call_count", "mean_ns", "std_ns"))
    count, total = int(counts.sum()), int(rest["sum_ns"].sum())
    within = (np.maximum(counts - 1, 0) * np.nan_to_num(spreads) ** 2).sum()
    between = (counts * (means - total / count) ** 2).sum()
    spread = float(np.sqrt((within + between) / (count - 1))) if count > 1 else 0.0
    kind, rank = rest["kernel_kind"][0].upper(), rest["rank"][0]
    return _OTHERS, total, rest["max_ns"].max(), rest["min_ns"].min(), spread, total / count, kind, rank, count


def _of_streams(result: IdleTime, streams: list[int]) -> IdleTime:
    existing = set(result.per_stream["stream"])
    if unknown := [stream for stream in streams if stream not in existing]:
        raise InvalidOptionError.unknown(unknown, existing, what="stream")

    def chosen(table: pl.DataFrame) -> pl.DataFrame:
        return table.filter(pl.col("stream").is_in(streams))

    return IdleTime(chosen(result.per_stream), result.per_device, chosen(result.statistics), result.findings)


def _idle_times(result: IdleTime) -> pd.DataFrame:
    table = result.per_stream
    return pd.DataFrame(
        {
            "rank": _whole_numbers(table["rank"]),
            "stream": _whole_numbers(table["stream"]),
            "idle_category": table["category"].to_list(),
            "idle_time": _microseconds(table["idle_ns"]),
            "idle_time_ratio": np.round(table["fraction"].cast(pl.Float64).fill_null(np.nan).to_numpy(), 2),
            "device": _whole_numbers(table["device"]),
        }
    )


def _idle_statistics(result: IdleTime) -> pd.DataFrame:
    table = result.statistics
    columns = {"mean": "mean", "std": "std", "min": "min", "25%": "p25", "50%": "median", "75%": "p75", "max": "max"}
    return pd.DataFrame(
        {
            "rank": _whole_numbers(table["rank"]),
            "stream": _whole_numbers(table["stream"]),
            "count": _whole_numbers(table["count"]),
            **{name: _rounded_microseconds(table[f"{ours}_ns"]) for name, ours in columns.items()},
            "device": _whole_numbers(table["device"]),
        },
        index=pd.Index(table["category"].to_list(), name="idle_category"),
    )
