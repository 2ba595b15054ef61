"""The plugin's views of one job, as methods of `TraceAnalysis`."""

from __future__ import annotations

from typing import Literal

import holotrace
from holotrace import figures
from holotrace.enrich.compat import Compat, checked_compat
from hta.facade import answers
from hta.facade.imports.modules_later import pd
from hta.facade.results.show import show
from hta.facade.results.times import frame_in_microseconds
from hta.facade.trace.trace_view import TraceView


class PluginViews:
    """The plugin's views of a job, as methods of `TraceAnalysis`.

    With `compat="torch_tb_profiler"`, the methods return the numbers that the plugin's last version shows.
    All times are in microseconds.
    """

    t: TraceView

    def get_step_time_breakdown(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002 -- as in HTA's methods
        annotation: str | None = None,
        compat: Compat | None = None,
    ) -> pd.DataFrame:
        """Return the time of each rank's steps by category; the categories of a step add up to its duration.

        Returns:
            The table `per_step` of `holotrace.step_time`, with times in µs: rank, step, start(us), end(us),
            duration(us), kernel_part(us), memcpy_part(us), memset_part(us), communication_part(us), runtime_part(us),
            dataloader_part(us), cpu_part(us), other_part(us).
        """
        result = holotrace.step_time(self.t.trace_by_steps, annotation=annotation, compat=compat)
        if visualize:
            show(figures.plot_step_time(result))
        return frame_in_microseconds(result.per_step)

    def get_gpu_summary(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002 -- as in HTA's methods
        compat: Compat | None = None,
    ) -> pd.DataFrame:
        """Return each device's properties and utilization: the table `per_device` of `holotrace.gpu_summary`."""
        result = holotrace.gpu_summary(self.t.trace, compat=compat)
        if visualize:
            show(figures.plot_gpu_summary(result))
        return frame_in_microseconds(result.per_device)

    def get_kernel_summary(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002 -- as in HTA's methods
        compat: Compat | None = None,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return two tables of `holotrace.kernels`: `per_kernel` and `per_launch_shape`, with times in µs."""
        result = holotrace.kernels(self.t.trace, compat=compat)
        if visualize:
            show(figures.plot_kernels(result))
        return frame_in_microseconds(result.per_kernel), frame_in_microseconds(result.per_launch_shape)

    def get_operator_summary(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002 -- as in HTA's methods
        group_by: Literal["name", "shape", "stack"] = "name",
        compat: Compat | None = None,
    ) -> pd.DataFrame:
        """Return the time of each operator of each rank: a table of `holotrace.operators`, times in µs.

        Args:
            visualize: show the figure.
            group_by: `name`, `shape` (with input_shape), or `stack` (with input_shape and call_stack).
            compat: "torch_tb_profiler" for the numbers of PyTorch's TensorBoard plugin.
        """
        result = holotrace.operators(self.t.trace, compat=compat)
        if visualize:
            show(figures.plot_operators(result))
        tables = {"name": result.per_operator, "shape": result.per_input_shape, "stack": result.per_call_stack}
        return frame_in_microseconds(tables[group_by])

    def get_module_summary(
        self,
        visualize: bool = True,  # noqa: FBT001, FBT002 -- as in HTA's methods
        compat: Compat | None = None,
    ) -> pd.DataFrame:
        """Return the time of each module of each rank: the table `per_module` of `holotrace.modules`."""
        result = holotrace.modules(self.t.trace, compat=compat)
        if visualize:
            show(figures.plot_modules(result))
        return frame_in_microseconds(result.per_module)

    def get_distributed_summary(self, visualize: bool = True, compat: Compat | None = None) -> pd.DataFrame:  # noqa: FBT001, FBT002 -- as in HTA's methods
        """Return each step's compute and communication time per rank, and how much of the communication is waiting.

        Returns:
            The table `per_step` of `holotrace.distributed`, with times in µs: rank, step, step(us),
            computation_only(us), overlap(us), exposed(us), neither(us), collective_count, collective(us), transfer(us),
            synchronising(us), unmatched(us).
        """
        result = holotrace.distributed(self.t.trace_by_steps, compat=compat)
        if visualize:
            show(figures.plot_distributed(result))
        return frame_in_microseconds(result.per_step)

    def get_communication_operations(self, compat: Compat | None = None) -> pd.DataFrame:
        """Return the calls, sizes and times of each rank's collectives, by element type.

        Returns:
            The table `per_operation` of `holotrace.distributed`, times in µs and sizes in bytes: rank, collective,
            dtype, call_count, bytes, mean_bytes, collective(us), mean_collective(us), matched_count, transfer(us),
            mean_transfer(us).
        """
        return frame_in_microseconds(holotrace.distributed(self.t.trace_by_steps, compat=compat).per_operation)

    def get_memory_curve(self, visualize: bool = True) -> pd.DataFrame:  # noqa: FBT001, FBT002 -- as in HTA's methods
        """Return the memory of each device after each allocation and free.

        Returns:
            The table `series` of `holotrace.memory_timeline`, with times in µs since the first event of the job and
            sizes in bytes: rank, device_type, device, time(us), change_bytes, allocated_bytes, reserved_bytes.
        """
        result = holotrace.memory_timeline(self.t.trace)
        if visualize:
            show(figures.plot_memory_timeline(result))
        return answers.memory.memory_frame(result.series, self.t.origin_ns)

    def get_memory_events(
        self, start_us: float | None = None, end_us: float | None = None, compat: Compat | None = None
    ) -> pd.DataFrame:
        """Return every memory block with its allocating operator, allocation time and release time.

        Args:
            start_us: include blocks allocated or released from this time on, in µs since the first event of the job.
            end_us: include blocks allocated or released up to this time, in the same unit.
            compat: "torch_tb_profiler" for the numbers of PyTorch's TensorBoard plugin.

        Returns:
            The table `blocks` of `holotrace.operator_memory`, with times in µs since the first event of the job: rank,
            device_type, device, operator, caller, block_bytes, allocated(us), released(us), lifetime(us).
        """
        return answers.memory.memory_frame(self._memory_within(start_us, end_us, compat).blocks, self.t.origin_ns)

    def get_memory_statistics(
        self, start_us: float | None = None, end_us: float | None = None, compat: Compat | None = None
    ) -> pd.DataFrame:
        """Return the memory that each operator allocates and frees between `start_us` and `end_us`.

        Returns:
            The table `per_operator` of `holotrace.operator_memory`, with sizes in bytes: rank, device_type, device,
            operator, call_count, total_increase_bytes, self_increase_bytes, total_allocation_count,
            self_allocation_count, total_allocated_bytes, self_allocated_bytes, self_unreleased_bytes.
        """
        return frame_in_microseconds(self._memory_within(start_us, end_us, compat).per_operator)

    def get_recommendations(self, compat: Compat | None = None) -> pd.DataFrame:
        """Return causes of lost time with advice, costliest first: the table `per_finding` of `holotrace.diagnosis`.

        With `compat`, return the plugin's recommendations instead: rule, rank, device, value_fraction, limit_fraction, advice.
        """
        if checked_compat(compat) is None:
            return frame_in_microseconds(holotrace.diagnosis(self.t.trace_by_steps).per_finding)
        from hta.tensorboard_plugin.recommendations import plugin_recommendations  # noqa: PLC0415 -- few scripts need it

        return frame_in_microseconds(plugin_recommendations(self.t.trace_by_steps))

    def _memory_within(
        self, start_us: float | None, end_us: float | None, compat: Compat | None
    ) -> holotrace.OperatorMemory:
        return answers.memory.memory_within(self.t.trace, start_us, end_us, compat, self.t.origin_ns)
