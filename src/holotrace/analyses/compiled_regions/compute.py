"""What did torch.compile compile, and what do compiling, guards and graph breaks cost?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from holotrace.algorithms.nested.nesting import NO_PARENT, itself_or_above, nearest_above
from holotrace.analyses.compiled_regions.compile_log import CompileLog, CompileLogs, read_compile_logs
from holotrace.analyses.compiled_regions.findings import findings_of, findings_on_lines
from holotrace.analyses.compiled_regions.frames import frames
from holotrace.enrich.device.device_work import device_rows
from holotrace.enrich.device.launches import launches
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import gathered, of_events
from holotrace.enrich.graph_attribution.grafted_tables import described_events
from holotrace.enrich.graph_attribution.grafts import GENERATED_KERNEL
from holotrace.enrich.host.host_nodes import device_owner, host_nodes, runtime_owner
from holotrace.enrich.host.node_times import device_durations, node_times
from holotrace.enrich.job.findings import joined_findings
from holotrace.enrich.job.rank_tables import typed
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.locations.location import Address
from holotrace.questions.result import Result
from holotrace.schema import EventKind
from holotrace.store.captures import is_graph_launch
from holotrace.store.plan import Plan
from holotrace.store.trace import RankTrace, Trace

_Rows = npt.NDArray[np.int64]

_NOTHING = "the trace shows no use of torch.compile"
_WITHOUT_RANGES = "the job uses torch.compile, but this version of PyTorch does not record its compiled regions"
_OF_OLD_VERSIONS = r"^(CompiledFunction(Backward)?$|triton__\d)"
"""Names that show the use of torch.compile in traces of PyTorch 2.0, which records no ranges for compiled code."""
_REGION = r"^Torch-Compiled Region: (\d+/\d+)"
_COMPILED = r"^(Torch-Compiled Region|CompiledFunction(Backward)?$)"
_COMPILATION = r"^_compile\.compile_inner"
_COMPILED_REGION = r"^entire_frame_compile_data: .*\bcompile_id=(\d+/\d+)$"
"""Recent versions of PyTorch record this name just before they compile a region: torch/_dynamo/utils.py, `dynamo_timed`."""

_GUARDS = "TorchDynamo Cache Lookup"
_RESUMED = r"torch_dynamo_resume_in_(.*)$"
_ENTERED = r"torch/_dynamo/eval_frame\.py\(\d+\): compile_wrapper$"
_SIGNS = "|".join((_REGION, _COMPILED, _COMPILATION, f"^{_GUARDS}$", GENERATED_KERNEL, _RESUMED, _ENTERED))

_PER_REGION = {
    "rank": pl.Int32,
    "region": pl.String,
    "is_recompiled": pl.Boolean,
    "call_count": pl.Int64,
    "host_total_ns": pl.Int64,
    "device_total_ns": pl.Int64,
    "replay_count": pl.Int64,
    "compilation_ns": pl.Int64,
    "compiled_function": pl.String,
    "recompile_reason": pl.String,
}
_PER_FRAME = {
    "rank": pl.Int32,
    "compiled_frame": pl.Int64,
    "compiled_function": pl.String,
    "recompilation_count": pl.Int64,
    "compilation_count": pl.Int64,
    "compilation_ns": pl.Int64,
    "call_count": pl.Int64,
    "recompile_reason": pl.String,
}
_PER_RANK = {
    "rank": pl.Int32,
    "compilation_count": pl.Int64,
    "compilation_ns": pl.Int64,
    "guard_count": pl.Int64,
    "guard_ns": pl.Int64,
    "graph_break_count": pl.Int64,
    "compiled_device_ns": pl.Int64,
    "compiled_fraction": pl.Float64,
}
_PER_KERNEL = {
    "rank": pl.Int32,
    "operator": pl.String,
    "source_file": pl.String,
    "call_count": pl.Int64,
    "device_self_ns": pl.Int64,
    "source_line": pl.String,
}


@dataclass(frozen=True, eq=False, repr=False)
class CompiledRegions(Result):
    """The regions that torch.compile compiled, and the cost of torch.compile.

    per_region   one row per rank and compiled region, sorted by rank, the longest host_total_ns first:

        rank               int32
        region             str    numbers of the frame and of its version: `0/1` is the first recompilation of frame 0
        is_recompiled      bool   whether the region is a later version of its frame
        call_count         int64
        host_total_ns      int64
        device_total_ns    int64  time of the kernels, copies and memsets that the region launched, without its
                                  backward pass
        replay_count       int64  launches of CUDA graphs in the region
        compilation_ns     int64  host time spent compiling the region during the recording; null if no compilation
                                  was recorded
        compiled_function  str    such as `train.py(8): forward`; null without a log
        recompile_reason   str    guards of earlier versions that failed; null without a log, and for a first version

    per_frame    one row per rank and frame that was called or compiled, sorted by rank, the most recompilations first:

        rank                 int32
        compiled_frame       int64
        compiled_function    str    null without a log
        recompilation_count  int64  recompilations since the process began (the frame's highest version number)
        compilation_count    int64  compilations during the recording; null if the recording does not name their frames
        compilation_ns       int64  host time of these compilations
        call_count           int64  calls of all regions of the frame
        recompile_reason     str    why the frame was recompiled, one line per recompilation; null without a log

    per_rank     one row per rank that used torch.compile:

        rank                int32
        compilation_count   int64    compilations during the recording
        compilation_ns      int64    host time of these compilations
        guard_count         int64    lookups of a compiled version that fits the inputs
        guard_ns            int64    host time of these lookups
        graph_break_count   int64    functions that continued after a graph break; null if Python functions were not
                                     recorded
        compiled_device_ns  int64    device work launched by compiled code, forward and backward
        compiled_fraction   float64  0..1, compiled_device_ns as a share of all device work; null if there is none

    per_kernel   generated kernels, sorted by rank, the longest device_self_ns first:

        rank            int32
        operator        str    name of the kernel, which is also the name of its operator
        source_file     str    generated source; null if not recorded
        call_count      int64
        device_self_ns  int64
        source_line     str    lines of user code that the kernel was generated from, joined by `; `; null without a log

    findings     recompilations, graph breaks, and calls that ran no compiled region

    All tables are empty if the recording shows no use of torch.compile.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> trace = TraceBuilder().operator("Torch-Compiled Region: 0/1", start_us=0, duration_us=50)
    >>> trace = trace.kernel("triton_poi_fused_add_0", start_us=60, duration_us=9, launch_us=10).build()
    >>> holotrace.compiled_regions(trace).answer
    '1 compiled region ran; nothing was compiled during the recording.'
    """

    per_region: pl.DataFrame
    per_frame: pl.DataFrame
    per_rank: pl.DataFrame
    per_kernel: pl.DataFrame
    findings: tuple[str, ...] = ()


class _Partial(NamedTuple):
    per_region: pl.DataFrame
    per_frame: pl.DataFrame
    per_rank: pl.DataFrame
    per_kernel: pl.DataFrame
    findings: tuple[str, ...]


def compiled_regions(
    trace: Trace, *, compile_log: Address | None = None, executor: Executor = IN_PROCESS
) -> CompiledRegions:
    """List the regions that torch.compile compiled, its generated kernels, and the cost of compiling and of guards.

    Args:
        trace: the job.
        compile_log: the folder that TORCH_TRACE named when the job was recorded, or a file in it. The log contains the compiled
            functions, the failed guards and, if recorded with INDUCTOR_PROVENANCE=1, the source lines of each kernel.
        executor: processes each rank.

    Raises:
        InvalidOptionError: there is no log of torch.compile at `compile_log`.

    Source: docs/reference/analyses/compiled_regions.md explains the definitions.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> trace = TraceBuilder().operator("Torch-Compiled Region: 0/1", start_us=0, duration_us=50)
    >>> trace = trace.kernel("triton_poi_fused_add_0", start_us=60, duration_us=9, launch_us=10).build()
    >>> holotrace.compiled_regions(trace).per_region.select("region", "is_recompiled", "device_total_ns").rows()
    [('0/1', True, 9000)]
    """
    return plan(compile_log=compile_log).run(trace, executor)


def plan(*, compile_log: Address | None = None) -> Plan[_Partial, CompiledRegions]:
    """Return the two functions of `compiled_regions`: one runs on each rank, the other combines the results of the ranks."""
    logs = CompileLogs() if compile_log is None else read_compile_logs(compile_log)
    return Plan(partial(_one_rank, logs=logs), _combine)


def has_signs_of_compile(rank_trace: RankTrace) -> bool:
    """Return whether a rank's file shows any use of torch.compile; if not, all tables are empty."""
    described = described_events(rank_trace, "compiled_kernels", ["event_index"])
    return not described.is_empty() or bool(rank_trace.strings.str.contains(_SIGNS).any())


def _combine(partials: dict[int, _Partial]) -> CompiledRegions:
    findings = joined_findings({rank: of_rank.findings for rank, of_rank in partials.items()})
    has_any = any(not of_rank.per_rank.is_empty() for of_rank in partials.values())
    return CompiledRegions(
        pl.concat([of_rank.per_region for of_rank in partials.values()]),
        pl.concat([of_rank.per_frame for of_rank in partials.values()]),
        pl.concat([of_rank.per_rank for of_rank in partials.values()]),
        pl.concat([of_rank.per_kernel for of_rank in partials.values()]),
        findings if has_any or findings else (_NOTHING,),
    )


def _one_rank(rank_trace: RankTrace, *, logs: CompileLogs) -> _Partial:
    log = logs.of(rank_trace.rank)
    nodes = host_nodes(rank_trace).hstack(node_times(rank_trace))
    nodes = nodes.with_columns(rank_trace.texts(nodes["name"]).alias("text"))
    rank = pl.lit(rank_trace.rank, pl.Int32).alias("rank")
    compilations = _compilations(rank_trace, nodes)
    regions = _with_log(_regions(rank_trace, nodes, compilations), log)
    per_frame = frames(regions, compilations, log)
    kernels = _generated_kernels(rank_trace, nodes)
    lines = [log.lines_of(*row) for row in kernels.select("operator", "source_file").rows()]
    kernels = kernels.with_columns(pl.Series("source_line", lines, dtype=pl.String))
    costs = typed(_costs(rank_trace, nodes).with_columns(rank), _PER_RANK)
    is_used = regions.height or kernels.height or costs["compilation_count"].item() or costs["guard_count"].item()
    entered = _calls(rank_trace, _ENTERED)
    is_old = not is_used and rank_trace.strings.str.contains(_OF_OLD_VERSIONS).any()
    return _Partial(
        typed(regions.with_columns(rank), _PER_REGION),
        typed(per_frame.with_columns(rank), _PER_FRAME),
        costs if is_used else costs.clear(),
        typed(kernels.with_columns(rank), _PER_KERNEL),
        (
            *findings_of(regions, per_frame, costs, entered, has_log=bool(log.compilations)),
            *findings_on_lines(kernels),
            *([_WITHOUT_RANGES] if is_old else []),
        ),
    )


def _with_log(regions: pl.DataFrame, log: CompileLog) -> pl.DataFrame:
    """For each region in the log, add its function and the reason why it was recompiled."""
    said = [log.compilations.get(region) for region in regions["region"]]
    return regions.with_columns(
        pl.Series("compiled_function", [one.function if one else None for one in said], dtype=pl.String),
        pl.Series("recompile_reason", [one.reason if one else None for one in said], dtype=pl.String),
    )


def _compilations(rank_trace: RankTrace, nodes: pl.DataFrame) -> pl.DataFrame:
    """Return region (null if not recorded) and host_total_ns of the outermost compilations.

    The last annotation before the compilation names the region. If this annotation began before the event that
    encloses the compilation, it belongs to an earlier compilation, and the region is null.
    """
    compilations = _outermost(nodes, _COMPILATION).sort("start_ns")
    begin_ns = gathered(nodes["start_ns"], compilations["parent"].to_numpy()).alias("begin_ns")
    region = rank_trace.strings.str.extract(_COMPILED_REGION, 1)
    named = pl.DataFrame({"name": region.is_not_null().arg_true().cast(pl.UInt32), "region": region.drop_nulls()})
    said = event_ranges(rank_trace, [EventKind.USER_ANNOTATION], ["name", "start_ns"], names=named["name"])
    said = said.join(named, on="name").select("region", "start_ns", said_ns="start_ns").sort("start_ns")
    timed = compilations.select("start_ns", "host_total_ns", begin_ns).join_asof(said, on="start_ns")
    is_own = pl.col("said_ns") >= pl.col("begin_ns")
    return timed.select(pl.when(is_own).then("region").alias("region"), "host_total_ns")


def _regions(rank_trace: RankTrace, nodes: pl.DataFrame, compilations: pl.DataFrame) -> pl.DataFrame:
    named = nodes.with_columns(region=pl.col("text").str.extract(_REGION, 1))
    is_region = named["region"].is_not_null().to_numpy()
    replays = _replays(rank_trace, nodes["parent"].to_numpy(), is_region)
    calls = named.with_columns(replays=pl.Series(replays)).filter(pl.Series(is_region))
    sums = calls.group_by("region").agg(
        call_count=pl.len(),
        host_total_ns=pl.col("host_total_ns").sum(),
        device_total_ns=pl.col("device_total_ns").sum(),
        replay_count=pl.col("replays").sum(),
    )
    compiled = compilations.drop_nulls("region").group_by("region").agg(compilation_ns=pl.col("host_total_ns").sum())
    versions = sums.with_columns(is_recompiled=~pl.col("region").str.ends_with("/0"))
    return versions.join(compiled, on="region", how="left").sort("host_total_ns", "region", descending=[True, False])


def _replays(rank_trace: RankTrace, parent: _Rows, is_region: npt.NDArray[np.bool_]) -> _Rows:
    """Return the number of graph launches inside each region; 0 for nodes that are not regions."""
    launched = launches(rank_trace).select("launch_index", "launch_name").unique("launch_index").drop_nulls()
    graphs = launched.filter(is_graph_launch(rank_trace.texts(launched["launch_name"])))["launch_index"]
    around = of_events(runtime_owner(rank_trace), graphs)["node"].fill_null(NO_PARENT).to_numpy()
    regions = itself_or_above(parent, is_region, around)
    return np.bincount(regions[regions != NO_PARENT], minlength=len(parent)).astype(np.int64)


def _generated_kernels(rank_trace: RankTrace, nodes: pl.DataFrame) -> pl.DataFrame:
    """Return the operators whose kernel source was recorded, or whose names look like kernels that Inductor generates."""
    compiled = described_events(rank_trace, "compiled_kernels", ["event_index", "kernel_file"])
    described = nodes.join(compiled, on="event_index", how="left", maintain_order="left")
    is_generated = pl.col("kernel_file").is_not_null() | pl.col("text").str.contains(GENERATED_KERNEL)
    sums = (
        described.filter(is_generated)
        .group_by("text", "kernel_file")
        .agg(call_count=pl.len(), device_self_ns=pl.col("device_self_ns").sum())
    )
    named = sums.select(
        "call_count",
        "device_self_ns",
        operator="text",
        source_file=rank_trace.texts(sums["kernel_file"]),
    )
    return named.sort("device_self_ns", "operator", "source_file", descending=[True, False, False], nulls_last=True)


def _costs(rank_trace: RankTrace, nodes: pl.DataFrame) -> pl.DataFrame:
    compilations, guards = _outermost(nodes, _COMPILATION), _outermost(nodes, f"^{_GUARDS}$")
    compiled_ns = int(_outermost(nodes, _COMPILED)["device_total_ns"].sum())
    work = device_owner(rank_trace).join(device_rows(rank_trace).select("event_index"), on="event_index", how="semi")
    all_ns = int(device_durations(rank_trace).join(work, on="event_index", how="semi")["duration_ns"].sum())
    records_python = not rank_trace.events_of([EventKind.PYTHON_FUNCTION], ["event_index"]).is_empty()
    return pl.DataFrame(
        {
            "compilation_count": [compilations.height],
            "compilation_ns": [int(compilations["host_total_ns"].sum())],
            "guard_count": [guards.height],
            "guard_ns": [int(guards["host_total_ns"].sum())],
            "graph_break_count": [_calls(rank_trace, _RESUMED, distinct=True) if records_python else None],
            "compiled_device_ns": [compiled_ns],
            "compiled_fraction": [compiled_ns / all_ns if all_ns else None],
        },
        schema_overrides={"graph_break_count": pl.Int64, "compiled_fraction": pl.Float64},
    )


def _outermost(nodes: pl.DataFrame, pattern: str) -> pl.DataFrame:
    """Return the nodes whose names match, except those inside another matching node."""
    is_named = nodes["text"].str.contains(pattern).fill_null(value=False).to_numpy()
    rows = np.flatnonzero(is_named)
    outermost: _Rows = rows[nearest_above(nodes["parent"].to_numpy(), is_named, rows) == NO_PARENT]
    return nodes[outermost]


def _calls(rank_trace: RankTrace, pattern: str, *, distinct: bool = False) -> int:
    """Count the calls of Python functions whose names match; with `distinct`, count each function once."""
    ids = names_matching(rank_trace, pattern)
    if ids.is_empty():
        return 0
    names = rank_trace.events_of([EventKind.PYTHON_FUNCTION], ["name"])["name"]
    chosen = names.filter(names.is_in(ids.implode()))
    return rank_trace.texts(chosen.unique()).str.extract(_RESUMED, 1).n_unique() if distinct else len(chosen)
