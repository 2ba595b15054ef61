"""TraceAnalysis, with HTA's interface.

Names, arguments, defaults and columns are HTA's; results are pandas frames with times in microseconds. All numbers come from
the analyses of `holotrace`, so they are exact where HTA rounds or guesses. docs/reference/from_hta.md explains the differences.
In new code, use `holotrace.open_trace` and the functions of `holotrace` instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import holotrace
from holotrace.enrich.steps.steps import before_last_step
from hta.configs.default_values import DEFAULT_TRACE_DIR
from hta.configs.parser_config import ParserConfig
from hta.facade import answers, graphs
from hta.facade.imports.elsewhere import names_of
from hta.facade.imports.modules_later import import_pandas_aside, pd
from hta.facade.trace.sources import source_of
from hta.facade.trace.trace_view import TraceView
from hta.tensorboard_plugin import PluginViews

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)


class TraceAnalysis(PluginViews):
    """HTA's interface to the analyses of a job, and the views of PyTorch's TensorBoard plugin.

    Args:
        trace_files: `{rank: file}`, or a list of files whose ranks `holotrace.open_trace` detects. Relative paths are
            resolved against `trace_dir` first, as in HTA, and then against the current folder.
        trace_dir: the folder of the traces; if `trace_files` is None, opens all traces in it.
        include_last_profiler_step: keep the last step. By default, it is dropped if there are at least two steps, as in HTA.
        parser_config: the args that become columns of `t.get_trace(rank)`; by default the same as in HTA. Analyses ignore it.

    Raises:
        TraceNotFoundError: these paths contain no trace.
    """

    def __init__(
        self,
        trace_files: Mapping[int, str] | Sequence[str] | None = None,
        trace_dir: str = DEFAULT_TRACE_DIR,
        include_last_profiler_step: bool | None = False,  # noqa: FBT001, FBT002 -- HTA's signature
        parser_config: ParserConfig | None = None,
    ) -> None:
        import_pandas_aside()
        trace = holotrace.open_trace(source_of(trace_files, trace_dir))
        kept = trace if include_last_profiler_step else trace.where(before_last_step)
        self.t = TraceView(kept, trace_dir, parser_config)

    @classmethod
    def of(cls, t: TraceView) -> TraceAnalysis:
        """Return an analyzer for an open trace: an `hta.common.trace.Trace`, or `analyzer.t` of another analyzer."""
        analyzer = TraceAnalysis.__new__(cls)
        analyzer.t = t
        return analyzer

    @property
    def _trace(self) -> holotrace.Trace:
        """The trace that analyses read: the trace of `t`, with all changes that scripts made to the frames of `t`."""
        return self.t.trace

    def get_profiler_steps(self) -> list[int]:
        """Return the profiler step numbers of all ranks in ascending order."""
        return sorted({step for rank in self.t.get_ranks() for step in self.t.get_iterations(rank)})

    def dashboard(self, theme: Literal["light", "dark"] = "light") -> answers.dashboard.Dashboard:
        """Return the verdict and figures of all analyses; notebooks show them if this is the last expression in a cell.

        Args:
            theme: `light` or `dark`, to match the notebook.
        """
        return answers.dashboard.dashboard_of(self._trace, theme)

    def get_temporal_breakdown(self, visualize: bool = True) -> pd.DataFrame:  # noqa: FBT001, FBT002 -- HTA's
        """Return how each rank's time is split into idle, compute and other time, summed over its devices.

        Returns:
            rank, idle_time(us), compute_time(us), non_compute_time(us), kernel_time(us), idle_time_pctg,
            compute_time_pctg, non_compute_time_pctg: percentages have two decimals. If no rank has GPU work, the frame
            is empty and `attrs["reason"]` says why.
        """
        return answers.breakdowns.temporal_frame(self._trace, visualize=visualize)

    def get_comm_comp_overlap(self, visualize: bool = True) -> pd.DataFrame:  # noqa: FBT001, FBT002 -- HTA's
        """Return the percentage of each rank's communication time that overlaps with computation.

        Returns:
            rank, comp_comm_overlap_pctg: two decimals, NaN for a rank that does not communicate. If no rank has GPU
            work, every value is NaN and `attrs["reason"]` says why.
        """
        return answers.breakdowns.overlap_frame(self._trace, visualize=visualize)

    def get_gpu_kernel_breakdown(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002
        duration_ratio: float = 0.8,
        num_kernels: int = 10,
        include_memory_kernels: bool = True,  # noqa: FBT001, FBT002
        image_renderer: str = "",
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the time of each kind of work over all ranks, and statistics of each rank's kernels.

        If a rank has more than `num_kernels` kernels of a kind, only the kernels with the longest total time have their
        own rows: as many as are needed to cover `duration_ratio` of the kind's time, but at most `num_kernels`. The
        remaining kernels are merged into one row, `others`.

        Returns:
            First frame: kernel_type, sum, percentage (one decimal); longest first. `sum` is the time during which
            exactly the kinds of work in kernel_type run. Second frame: name, sum (us), max (us), min (us), stddev,
            mean (us), kernel_type, rank, count: statistics over individual calls, also in the row `others`; sorted by
            kernel_type, name, rank. If no rank has GPU work, both frames are empty and their `attrs["reason"]` says
            why.
        """
        return answers.breakdowns.kernel_frames(
            self._trace,
            visualize=visualize,
            duration_ratio=duration_ratio,
            num_kernels=num_kernels,
            include_memory_kernels=include_memory_kernels,
            image_renderer=image_renderer,
        )

    def get_idle_time_breakdown(  # noqa: PLR0913, PLR0917 -- HTA's signature
        self,
        ranks: Iterable[int] | None = None,
        streams: Iterable[int] | None = None,
        visualize: bool = True,  # noqa: FBT001, FBT002
        visualize_pctg: bool = True,  # noqa: FBT001, FBT002
        show_idle_interval_stats: bool = False,  # noqa: FBT001, FBT002
        consecutive_kernel_delay: float = 30,
    ) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """Return the idle time of each stream by cause.

        Args:
            ranks: the ranks to include; by default all.
            streams: the streams to include; by default all.
            visualize: show the figure.
            visualize_pctg: show percentages instead of times in the figure.
            show_idle_interval_stats: also return statistics of the idle intervals.
            consecutive_kernel_delay: a threshold in microseconds. Idle time after the launch of the next work counts
                as kernel_wait if it is shorter than this, and otherwise as other.

        Returns:
            First frame: rank, stream, idle_category, idle_time, idle_time_ratio, device: one row for each stream and category
            (host_wait, kernel_wait or other); times are in microseconds; idle_time_ratio is the fraction of the
            stream's idle time, with two decimals. Second frame (None if not requested): statistics indexed by
            idle_category: rank, stream, count, mean, std, min, 25%, 50%, 75%, max, device. If no rank has GPU work,
            both frames are empty and their `attrs["reason"]` says why.

        Raises:
            UnknownRankError, InvalidOptionError: the rank or stream does not exist.
        """
        return answers.breakdowns.idle_frames(
            self._trace,
            ranks,
            streams,
            visualize=visualize,
            visualize_pctg=visualize_pctg,
            show_idle_interval_stats=show_idle_interval_stats,
            consecutive_kernel_delay=consecutive_kernel_delay,
        )

    def get_cuda_kernel_launch_stats(
        self,
        ranks: Iterable[int] | None = None,
        runtime_cutoff: float = 50,
        launch_delay_cutoff: float = 100,
        include_memory_events: bool = True,  # noqa: FBT001, FBT002
        visualize: bool = True,  # noqa: FBT001, FBT002
    ) -> dict[int, pd.DataFrame]:
        """Return every launch call of each rank, with the device work that it launched.

        Args:
            ranks: the ranks to include; by default all.
            runtime_cutoff: in microseconds; the figure marks longer calls as slow.
            launch_delay_cutoff: in microseconds; the figure marks launches with a longer delay as late.
            include_memory_events: include copies and memsets as well as kernels.
            visualize: show the figure.

        Returns:
            {rank: frame} with the columns correlation, cpu_duration, gpu_duration, launch_delay, kernel, operator, stream,
            rank, launch. Times are in microseconds; launch_delay is never negative; launch is the name of the call.
        """
        return answers.launch_statistics.launch_frames(
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
        """Return the kernels that each rank's operators launch, with their launch delays.

        Args:
            ranks: the ranks to include; by default all.
            sort_by: columns to sort by, in descending order; by default occurrence_count.

        Returns:
            {rank: frame} with the columns aten_op_name, kernel_sequence, occurrence_count, avg_aten_op_launch_delay,
            avg_runtime_delay. avg_aten_op_launch_delay is the mean delay from the operator to its first launch, and
            avg_runtime_delay the mean delay from the launch to the kernel; both are in microseconds, with three decimals.
        """
        return answers.operator_kernels.operator_kernel_frames(self._trace, ranks, sort_by)

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
        """Return the kernel sequences that an operator launches; write a copy of the trace in which they are marked.

        Args:
            operator_name: selects operators and annotations whose name contains this text. If matches are nested,
                selects only the outermost.
            output_dir: the folder for the copy, `overlaid_<file name>`; replaces an earlier copy.
            min_pattern_len: ignore operator calls that launch fewer kernels than this.
            rank: the rank to read.
            top_k: the number of sequences to mark, the most frequent first.
            visualize: show the figure.
            compress_other_kernels: drop the details of unmarked events to make the file smaller.

        Returns:
            pattern, count, GPU kernel duration (us), CPU op duration (us): sorted by count, largest first.
            `attrs["overlaid_trace"]` is the path of the copy; if there is no sequence, no copy is written and `attrs["reason"]`
            says why.

        Raises:
            InvalidOptionError: the folder is missing or not writable, or the name is empty.
        """
        return answers.kernel_sequences.sequence_frame(
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
        """Return the queue length of each stream after each change, by default for all ranks.

        Returns:
            {rank: frame} for the ranks that launch work, with the columns ts (microseconds since the first event of the
            job), pid, tid, stream, queue_length; sorted by stream and ts. The label of a row is the `index` of the
            event that changes the queue length.
        """
        return answers.queue_length.queue_length_time_series(self._trace, ranks, self.t.origin_ns)

    def get_queue_length_summary(self, ranks: Iterable[int] | None = None) -> pd.DataFrame:
        """Return statistics of queue lengths per rank and stream: count, mean, std, min, quartiles and max.

        The length after each change has the same weight, no matter how long it lasts.
        `holotrace.queue_length(trace).time_weighted` weights each length by its duration.
        """
        return answers.queue_length.queue_length_summary(self.get_queue_length_time_series(ranks))

    def get_queue_length_summary_from_time_series(self, queue_length_dict: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
        """Summarize frames of `get_queue_length_time_series` without changing them."""
        return answers.queue_length.queue_length_summary(queue_length_dict)

    def get_time_spent_blocked_on_full_queue(
        self, queue_length_dict: Mapping[int, pd.DataFrame], max_queue_length: int = 1024
    ) -> pd.DataFrame:
        """Return how long each stream's queue was full.

        Returns:
            rank, stream, duration_at_max_queue_length (us), relative_duration_at_max_queue_length (the same as a
            fraction of the time from the start of the rank's first event to the start of its last event); one row for
            each stream whose queue was ever full.
        """
        return answers.queue_length.time_blocked(self._trace, queue_length_dict, max_queue_length)

    def get_memory_bw_time_series(self, ranks: Iterable[int] | None = None) -> dict[int, pd.DataFrame]:
        """Return the total bandwidth of the running copies after each change, by default for all ranks.

        Returns:
            {rank: frame} for the ranks that have copies, with the columns ts (microseconds since the first event of the
            job), pid, name (kind of copy), memory_bw_gbps; sorted by name and ts.
        """
        return answers.memory_bandwidth.memory_bw_time_series(self._trace, ranks, self.t.origin_ns)

    def get_memory_bw_summary(self, ranks: Iterable[int] | None = None) -> pd.DataFrame:
        """Return statistics of nonzero bandwidths per rank and kind of copy: count, mean, std, min, quartiles and max.

        Each bandwidth counts once, however long it lasts. `holotrace.memory_bandwidth(trace).time_weighted` weights
        bandwidths by time.
        """
        return answers.memory_bandwidth.memory_bw_summary(self.get_memory_bw_time_series(ranks))

    def generate_trace_with_counters(
        self,
        time_series: answers.counters.TimeSeriesTypes | None = None,
        ranks: Iterable[int] | None = None,
        output_suffix: str = "_with_counters",
        output_dir: str | None = None,
        overwrite: bool = True,  # noqa: FBT001, FBT002 -- like the other methods
    ) -> dict[int, str]:
        """Copy the trace files of some ranks, by default all, and add queue lengths and bandwidths as counters for Perfetto.

        Args:
            time_series: the counters to add; by default both.
            ranks: the ranks to copy.
            output_suffix: inserted before `.json` in the name of each copy.
            output_dir: the folder for the copies; by default, each file's own folder.
            overwrite: replace earlier copies; otherwise raise an error.

        Returns:
            {rank: path of the copy}
        """
        return answers.counters.traces_with_counters(
            self._trace, time_series, ranks, output_suffix, output_dir, overwrite=overwrite
        )

    def get_gpu_kernels_with_user_annotations(
        self,
        rank: int,
        expand_names: bool = True,  # noqa: FBT001, FBT002
        shorten_names: bool = True,  # noqa: FBT001, FBT002
        shortern_names: bool | None = None,  # noqa: FBT001 -- as HTA 0.5 spelled it
    ) -> pd.DataFrame:
        """Return a rank's device work with the innermost annotation in which each event starts.

        If the trace has no annotations on GPU streams, uses the innermost host annotation around the launch of each
        event; in this case, HTA returns None.

        Returns:
            The columns of `analyzer.t.get_trace(rank)`, plus `user_annotation`: the annotation's symbol id, or -1 if
            there is none. If `expand_names` is set, also the texts s_name (shortened if `shorten_names` is set), s_cat
            and s_user_annotation.

        Raises:
            UnknownRankError: the rank does not exist.
        """
        is_short = shorten_names if shortern_names is None else shortern_names
        return answers.user_annotations.kernels_with_annotations(
            self.t, rank, expand_names=expand_names, shorten_names=is_short
        )

    def get_gpu_user_annotation_breakdown(  # noqa: PLR0913, PLR0917 -- HTA's signature
        self,
        use_gpu_annotation: bool = True,  # noqa: FBT001, FBT002
        visualize: bool = True,  # noqa: FBT001, FBT002
        duration_ratio: float = 0.8,
        num_kernels: int = 1000,
        allowlist_patterns: list[str] | None = None,
        image_renderer: str | None = None,
    ) -> pd.DataFrame:
        """Return statistics of each rank's user annotations on the GPU or on the CPU.

        If a rank has more than `num_kernels` names, only the names with the longest total time have their own rows: as
        many as are needed to cover `duration_ratio` of the time, but at most `num_kernels`, plus the names that match
        `allowlist_patterns`. The remaining names are merged into one row, `others`.

        Returns:
            name, sum (us), max (us), min (us), stddev, mean (us), rank; sorted by rank and name. The statistics,
            even those in the row `others`, are over individual ranges.
        """
        return answers.user_annotations.annotation_breakdown(
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
        straggler_identification_impl: answers.stragglers.StragglerMethod | None = None,
    ) -> list[int]:
        """Return the ranks that other ranks wait for in collectives, worst first.

        Args:
            profiler_steps: the steps to include, by default all; numbers that do not exist are ignored.
            num_candidates: the maximum number of ranks; a rank that never arrived last is not returned.
            visualize: show how late each rank is.
            straggler_identification_impl: another method, such as HTA's own
                `hta.analyzers.straggler.find_stragglers_with_late_start_comm_kernels`. It receives a frame of all
                ranks, the symbol table, `num_candidates` and `visualize`, and returns a score for each rank. The
                default compares waiting times; see docs/reference/analyses/stragglers.md.

        Raises:
            InvalidOptionError: none of the given steps exists.
        """
        return answers.stragglers.potential_stragglers(
            self.t,
            profiler_steps=profiler_steps,
            num_candidates=num_candidates,
            visualize=visualize,
            method=straggler_identification_impl,
        )

    def get_cupti_counter_data_with_operators(self, ranks: list[int] | None = None) -> list[pd.DataFrame]:
        """Return the hardware counters of each kernel and the operators that launched the kernel, one frame per rank.

        Returns:
            A frame for each given rank that has counters: the columns of `analyzer.t.get_trace(rank)` with `cat` and
            `name` as text, one column per counter, index_runtime (the call that launched the kernel, -1 if unknown),
            op_stack (operators, outermost first), top_level_op and bottom_level_op.
        """
        return answers.cupti_counters.counters_with_operators(self.t, ranks)

    def critical_path_analysis(
        self,
        rank: int,
        annotation: str,
        instance_id: int | tuple[int, int] | None,
        data_load_events: list[str] | None = None,
    ) -> tuple[graphs.critical_path.CPGraph, bool]:
        """Find the critical path of a rank's trace, or of a window of it.

        Args:
            rank: the rank to analyze.
            annotation: a name or part of a name that selects annotations, such as "ProfilerStep"; "" for the whole trace.
            instance_id: which of the selected annotations to analyze: the number of an annotation (0 is the one that
                starts first), a pair of numbers (first, last; both are included), or None for the first annotation.
            data_load_events: texts that the names of data loading events contain; by default, the names of PyTorch's
                DataLoader.

        Returns:
            The graph with its critical path, and whether the analysis succeeded: see `CPGraph.critical_path`.

        Raises:
            UnknownRankError: the rank does not exist.
            InvalidOptionError: the annotation or instance does not exist; the message lists the existing ones.
            MissingDataError: the window contains no events.
        """
        return graphs.critical_path.critical_path_of(self.t, rank, annotation, instance_id, data_load_events)

    def overlay_critical_path_analysis(
        self,
        rank: int,
        critical_path_graph: graphs.critical_path.CPGraph,
        output_dir: str,
        only_show_critical_events: bool = True,  # noqa: FBT001, FBT002 -- HTA's signature
        show_all_edges: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
    ) -> str:
        """Write a copy of a rank's trace that marks the critical path for Perfetto.

        Events on the path have the arg `critical`; arrows with the category `critical_path` connect consecutive events on the
        path.

        Args:
            rank: the rank to copy.
            critical_path_graph: the graph that `critical_path_analysis` returned.
            output_dir: the folder for `overlaid_critical_path_<file name>`; created if missing. Replaces an earlier
                copy.
            only_show_critical_events: of the events with a duration, keep only annotations, Python functions and the
                events on the path.
            show_all_edges: draw all edges of the graph; requires `only_show_critical_events=False`. The edges of launches
                without a delay are drawn only if the environment variable CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE
                is 1.

        Returns:
            The path of the copy.

        Raises:
            InvalidOptionError: the folder is not writable, or the graph belongs to another rank.
        """
        return graphs.critical_path.overlaid_critical_path(
            self.t,
            rank,
            critical_path_graph,
            output_dir,
            only_show_critical_events=only_show_critical_events,
            show_all_edges=show_all_edges,
        )
