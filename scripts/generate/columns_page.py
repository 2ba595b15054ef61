"""Generates `docs/reference/columns.md`, which lists the columns of all results."""

from __future__ import annotations

from markdown_table import table

from holotrace.questions.result_columns import GROUPS, ResultColumn

_BEGINNING = """\
# Columns of results

A column name has the same meaning in all results, tables, CSV and JSON files, and SQL views. Times are whole
nanoseconds; points in time count from the Unix epoch, in UTC. A column may be null unless its meaning says otherwise.
The page of each analysis lists its tables.

- A name ends with its unit: `_ns`, `_fraction` (0 to 1), `_bytes`, `_bytes_per_s`, `_count`.
- `duration_ns` is the duration of one event, `total_ns` a sum over several events, and `self_ns` the time outside nested events.
- A name begins with its statistic: `mean_call_ns`, `median_launch_delay_ns`.
- `control_` and `test_` mark the two traces of a comparison.
"""

_RENAMED = {
    "all results": {
        "compute_ns, compute_fraction": "computation_ns, computation_fraction",
        "non_compute_ns, non_compute_fraction": "non_computation_ns, non_computation_fraction",
        "comm_ns": "communication_ns",
        "sum_ns": "total_ns",
        "calls": "call_count",
    },
    "`kernel_breakdown.per_state`, `critical_path.per_class` and `.per_name`": {"duration_ns": "total_ns"},
    "`critical_path`, values of path_class": {"compute": "computation"},
    "`idle_time.statistics`": {"count": "gap_count"},
    "`step_time.per_step`": {"kernel_ns, …, other_ns": "kernel_part_ns, …, other_part_ns"},
    "`distributed.per_step`": {
        "computation_ns": "computation_only_ns",
        "communication_ns": "exposed_ns",
        "other_ns": "neither_ns",
    },
    "`distributed.per_device`": {"process": "process_id"},
    "`distributed.per_rank`": {"step_ns, …, unmatched_ns": "mean_step_ns, …, mean_unmatched_ns"},
    "`distributed.per_operation`": {"latency_ns, mean_latency_ns": "collective_ns, mean_collective_ns"},
    "`kernels`": {
        "by_name, by_launch": "per_kernel, per_launch_shape",
        "mean_occupancy": "mean_occupancy_fraction",
    },
    "`launch_statistics`": {
        "call_sum_ns, call_mean_ns": "total_call_ns, mean_call_ns",
        "delay_ns, delay_median_ns, delay_max_ns": "launch_delay_ns, median_launch_delay_ns, max_launch_delay_ns",
        "unknown_count": "unknown_launch_count",
        "call_start_ns": "launch_start_ns",
        "count (of lengths)": "launch_count",
    },
    "`queue_length` and `memory_bandwidth`": {"by_time, by_change": "time_weighted, change_weighted"},
    "`operators`": {"by_name, by_shape, by_stack": "per_operator, per_input_shape, per_call_stack"},
    "`modules`": {"operator_calls": "operator_call_count"},
    "`operator_kernels.per_sequence`": {
        "count": "call_count",
        "launch_delay_mean_ns, start_delay_mean_ns": "mean_operator_to_launch_ns, mean_launch_to_kernel_ns",
    },
    "`kernel_sequences.per_pattern`": {"count, kernel_count": "call_count, kernel_count_per_call"},
    "`user_annotations`": {"inclusive_ns, exclusive_ns": "total_ns, self_ns"},
    "`stragglers`": {"mean_lateness_ns": "mean_skew_ns"},
    "`cupti_counters`": {"op_stack, top_level_op, bottom_level_op": "operator_stack, top_operator, operator"},
    "`memory_timeline` and `operator_memory`": {
        "device_id": "device (int32)",
        "reserved_peak_bytes": "peak_reserved_bytes",
    },
    "`compare_traces`": {
        "control_count, test_count, count_difference": "control_event_count, test_event_count, event_count_difference",
        "control_count_per_step, test_count_per_step": "control_event_count_per_step, test_event_count_per_step",
        "control_ns, test_ns": "control_total_ns, test_total_ns",
    },
    "`compare_operators`": {
        "control_ns, test_ns, difference_ns": "control_ns_per_step, test_ns_per_step, difference_ns_per_step",
        "control_calls, test_calls": "control_call_count, test_call_count",
    },
    "SQL views": {"delay_ns": "launch_delay_ns", "exclusive_ns": "self_ns", "device_id (of memory)": "device (int32)"},
}
"""Earlier names of columns and tables, and the names that replaced them."""

_EARLIER = """\
## Earlier names

Development versions used these names. The package `holotrace-hta` keeps HTA's names.
"""


def columns_page() -> str:
    """Return the text of the page."""
    sections = [_section(title, columns) for title, columns in GROUPS.items()]
    return "\n".join([_BEGINNING, *sections, _EARLIER, table(("where", "earlier", "now"), _renamed())])


def _section(title: str, columns: tuple[ResultColumn, ...]) -> str:
    rows = [(f"`{column.name}`", column.type, column.unit, column.meaning) for column in columns]
    return f"## {title}\n\n" + table(("column", "type", "unit", "meaning"), rows)


def _renamed() -> list[tuple[str, str, str]]:
    return [(where, _code(before), _code(now)) for where, names in _RENAMED.items() for before, now in names.items()]


def _code(names: str) -> str:
    """Mark each name as code, but not the text in parentheses after it."""
    return ", ".join(part if part == "…" else _marked(part) for part in names.split(", "))


def _marked(name: str) -> str:
    word, _, rest = name.partition(" ")
    return f"`{word}` {rest}".rstrip()
