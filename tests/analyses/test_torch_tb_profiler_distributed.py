"""Tests that `distributed` with `compat="torch_tb_profiler"` reproduces the plugin's distributed view."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from holotrace.analyses.distributed.compute import Distributed, distributed
from holotrace.ingest.open_trace import open_trace
from holotrace.ingest.runs import find_runs
from holotrace.ingest.worker_names import worker_of
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder

SPLIT = ("computation_only_ns", "overlap_ns", "exposed_ns", "neither_ns")
WAITING = ("transfer_ns", "synchronising_ns")

REAL = {
    "param_dlrm_8rank/All@1": "dlrm_8rank/*",
    "hta_cpu_only/All@1": "cpu_only/*",
    "hta_df_index_resolver/All@default": "single_v100/*",
    "hta_ns_resolution/All@1": "ns_resolution/*",
    "hta_trace_diff_control/All@default": "diff/control/*",
    "hta_trace_diff_test/All@default": "diff/test/*",
}
UNIT = ("test_distributed_gloo_cpu", "test_distributed_gloo_gpu", "test_distributed_nccl")
EDGE = (
    "comm_11pct_ddp_gloo",
    "comm_op_outside_steps",
    "comm_sizes_by_dtype",
    "nccl_kernel_by_external_id",
    "two_workers_like_names",
)


@pytest.mark.parametrize("run", REAL)
def test_real_jobs_have_the_numbers_of_the_plugin(run, goldens, real_traces, tmp_path) -> None:
    """For real jobs, the steps, waiting times and operations equal the plugin's."""
    files = sorted(real_traces.glob(REAL[run]))
    names = {file: f"{worker_of(str(file))}.1" if "@1" in run else "worker0" for file in files}
    expect_the_view(opened(names, tmp_path), goldens / "tb" / run)


@pytest.mark.parametrize("name", UNIT)
def test_inputs_of_the_plugins_tests_give_its_numbers(name, goldens, tmp_path) -> None:
    """For the inputs of the plugin's own tests, with two workers, the numbers equal the plugin's."""
    folder = goldens / "tb" / "unit" / name
    names = {folder / str(number) / "input.json": f"worker{number}" for number in range(2)}
    expect_the_view(opened(names, tmp_path), folder / "All")


@pytest.mark.parametrize("name", EDGE)
def test_edge_cases_have_the_numbers_of_the_plugin(name, goldens, tmp_path) -> None:
    """For files that each exercise one rule of the plugin, the numbers equal the plugin's."""
    folder = goldens / "tb_edge" / name
    expect_the_view(opened({folder / "input.pt.trace.json": "worker0"}, tmp_path), folder / "head", "dist_")


@pytest.mark.parametrize("name", ["nccl_all_to_all_not_known", "nccl_and_gloo_both"])
def test_where_the_plugin_has_no_view_there_is_no_communication(name, goldens, tmp_path) -> None:
    """With `compat`, no communication is reported if a file has an unknown NCCL name, or both NCCL and gloo calls."""
    trace = opened({goldens / "tb_edge" / name / "input.pt.trace.json": "worker0"}, tmp_path)
    result = distributed(trace, compat="torch_tb_profiler")
    assert result.per_operation.is_empty()
    assert result.per_step["transfer_ns"].to_list() == [None]


def test_two_libraries_and_unknown_names_count_by_default(goldens, tmp_path) -> None:
    """By default, unknown NCCL kernels (50 µs) and gloo calls beside NCCL calls (12 µs) count as communication."""
    folder = goldens / "tb_edge"
    kernels = {folder / "nccl_all_to_all_not_known" / "input.pt.trace.json": "worker0"}
    hosts = {folder / "nccl_and_gloo_both" / "input.pt.trace.json": "worker0"}
    columns = ("collective", "call_count", "collective_ns")
    on_device = distributed(opened(kernels, tmp_path / "a")).per_operation.select(columns)
    on_host = distributed(opened(hosts, tmp_path / "b")).per_operation.select(columns)
    assert (on_device.rows(), on_host.rows()) == ([("send_recv", 1, 50_000)], [("all_reduce", 1, 12_000)])


@pytest.mark.parametrize(
    ("other", "unmatched"), [("comm_sizes_by_dtype", [5_000, 160_000]), ("nccl_all_to_all_not_known", [5_000, None])]
)
def test_ranks_with_different_collectives_have_no_view_in_the_plugin(other, unmatched, goldens, tmp_path) -> None:
    """If the workers' n-th collectives differ, the plugin shows no view, so all communication counts as unmatched."""
    folder = goldens / "tb_edge"
    inputs = ("two_workers_like_names", other)
    names = {folder / name / "input.pt.trace.json": f"worker{rank}" for rank, name in enumerate(inputs)}
    result = distributed(opened(names, tmp_path), compat="torch_tb_profiler")
    assert result.findings[0].startswith("the plugin shows no distributed view here")
    assert result.per_step["transfer_ns"].drop_nulls().sum() == 0
    assert result.per_step["unmatched_ns"].to_list() == unmatched


def test_the_mean_of_the_waiting_counts_a_doubled_step_once() -> None:
    """With `compat`, a step recorded twice counts once in the mean collective time but twice in the mean exposed time.

    Step 1 is recorded on the host and on the device, and step 2 only on the host. Their collectives take 30 and 10 µs.
    """
    builder = (
        TraceBuilder().step(1, 0, 100).step(2, 100, 100).gpu_annotation("ProfilerStep#1", start_us=0, duration_us=100)
    )
    for start, duration, identity in ((10, 30, 1), (110, 10, 2)):
        args = {"External id": identity}
        builder.annotation("gloo:all_reduce", start_us=start, duration_us=duration, args=args)

    result = distributed(builder.build(), compat="torch_tb_profiler")

    assert result.per_step.select("step", "collective_ns").rows() == [(1, 30_000), (1, 30_000), (2, 10_000)]
    means = result.per_rank.select("step_count", "mean_exposed_ns", "mean_collective_count", "mean_collective_ns").row(
        0
    )
    assert means == (3, pytest.approx(70_000 / 3), 1.0, 20_000.0)


def opened(workers: dict[Path, str], folder: Path) -> Trace:
    """Open copies of the files, renamed to the worker names that the plugin received."""
    folder.mkdir(exist_ok=True)
    for file, worker in workers.items():
        ending = ".pt.trace.json.gz" if file.suffix == ".gz" else ".pt.trace.json"
        shutil.copy(file, folder / f"{worker}{ending}")
    (run,) = find_runs(folder).runs
    return run.open(cache=False)


def expect_the_view(trace: Trace, folder: Path, prefix: str = "") -> None:
    """Assert that our result equals all four tables of the plugin's view."""
    result = distributed(trace, compat="torch_tb_profiler")
    workers = {rank: worker_of(rank_trace.source) for rank, rank_trace in trace.ranks.items()}

    def view(name: str) -> Any:
        content = json.loads((folder / f"{prefix}{name}.json").read_text())
        return content["data"] if content else {}

    assert per_step(result, workers, SPLIT) == as_expected(view("overlap"))
    assert per_step(result, workers, WAITING) == as_expected(view("waittime"))
    tables = {worker: {row[0]: row[1:] for row in table["rows"]} for worker, table in view("commops").items()}
    assert operations(result, workers) == as_expected(tables)
    expect_devices(result, view("gpuinfo"))


def as_expected(tables: Any) -> Any:
    """Wrap each row in `approx`, so that rounding errors in the plugin's sums are tolerated."""
    return {
        key: {name: pytest.approx(row, rel=1e-6, abs=0.01) for name, row in rows.items()}
        for key, rows in tables.items()
    }


def per_step(
    result: Distributed, workers: dict[int, str], columns: tuple[str, ...]
) -> dict[str, dict[str, list[float]]]:
    """Return {step: {worker: µs of each column}}, with the truncated means under the key `all`."""
    steps: dict[str, dict[str, list[float]]] = {}
    for row in result.per_step.drop_nulls(columns[0]).iter_rows(named=True):
        step = "null" if row["step"] is None else str(row["step"])
        steps.setdefault(step, {})[workers[row["rank"]]] = [row[column] / 1_000 for column in columns]
    rows = result.per_rank.iter_rows(named=True)
    return steps | {
        "all": {workers[row["rank"]]: [int(row[f"mean_{column}"] / 1_000) for column in columns] for row in rows}
    }


def operations(result: Distributed, workers: dict[int, str]) -> dict[str, dict[str, list[float]]]:
    """Return {worker: {collective: [calls, sizes, times in µs]}} with rounded means."""
    calls: dict[str, dict[str, list[float]]] = {}
    for row in result.per_operation.iter_rows(named=True):
        calls.setdefault(workers[row["rank"]], {})[row["collective"]] = [
            row["call_count"],
            row["bytes"],
            round(row["mean_bytes"]),
            row["collective_ns"] / 1_000,
            round(row["mean_collective_ns"] / 1_000),
            row["transfer_ns"] / 1_000,
            round(row["mean_transfer_ns"] / 1_000),
        ]
    return calls


def expect_devices(result: Distributed, tree: Any) -> None:
    """Assert that our devices equal those in the plugin's tree; the tree is empty if the file describes no device."""
    if not tree:
        assert result.per_device["device_name"].null_count() == len(result.per_device)
        return
    hosts: dict[str, Any] = {}
    for row in result.per_device.iter_rows(named=True):
        process = hosts.setdefault(row["host"], {}).setdefault(f"Process {row['process_id']}", {})
        if row["device"] is not None:
            process[f"GPU{row['device']}"] = {
                "Name": row["device_name"],
                "Memory": f"{round(row['memory_bytes'] / 1024**3, 2)} GB",
                "Memory Raw": row["memory_bytes"],
                "Compute Capability": row["compute_capability"],
            }
    assert hosts == tree


def test_the_default_separates_waiting_from_transfer_unlike_the_plugin(real_traces, tmp_path) -> None:
    """For NCCL kernels without args, rank 0 waits 5.58 ms by default but only 12 µs with `compat`."""
    trace = opened({file: worker_of(str(file)) for file in real_traces.glob("dlrm_8rank/*")}, tmp_path)
    default, plugin = distributed(trace), distributed(trace, compat="torch_tb_profiler")
    waiting = [result.per_step.filter(pl.col("rank") == 0)["synchronising_ns"][0] for result in (default, plugin)]
    assert waiting == [5_581_000, 12_000]


def test_every_type_has_its_size_by_default(goldens, tmp_path) -> None:
    """20 elements of each of eight types take 600 bytes in total; the plugin counts only 420."""
    text = (goldens / "tb_edge" / "comm_sizes_by_dtype" / "input.pt.trace.json").read_text()
    (tmp_path / "worker0.json").write_text(text.replace("nccl:", "gloo:"))
    trace = open_trace(tmp_path, cache=False)
    by_type = dict(distributed(trace).per_operation.select("dtype", "bytes").iter_rows())
    plugin = distributed(trace, compat="torch_tb_profiler").per_operation["bytes"].to_list()
    assert (sum(by_type.values()), by_type["float64"], by_type["int8"], plugin) == (600, 160, 20, [420])


def test_nccl_without_its_kernels_gives_a_finding(goldens, tmp_path) -> None:
    """NCCL calls without kernels do not count as communication, unlike in the plugin; a finding says so."""
    trace = opened({goldens / "tb_edge" / "comm_sizes_by_dtype" / "input.pt.trace.json": "worker0"}, tmp_path)
    result = distributed(trace)
    assert result.findings == (
        "8 collectives were called, but none of their kernels was recorded: record with ProfilerActivity.CUDA",
    )
