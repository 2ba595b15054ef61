"""Rules about kernels with too few blocks, low occupancy or very short run times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from holotrace.algorithms.intervals import covered_before, union_of
from holotrace.analyses.diagnosis.evidence.kernel_evidence import BEST_BANDWIDTH, with_launch_shapes
from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.rule import OF_THE_STEP, Case, RankCase, Rule, Said
from holotrace.analyses.diagnosis.rules.device.device_cases import (
    DURATION,
    FIXED_NS,
    FLOOR,
    LEAST_SHARE,
    case_of,
    gaps_before,
)
from holotrace.analyses.diagnosis.rules.needs import needs_device
from holotrace.enrich.device.devices import properties_of
from holotrace.schema import KernelKind
from holotrace.units import duration_text, number_text, percent_text

_LONG_NS = 10_000
"""Kernels shorter than this spend most of their time on fixed costs of a launch."""
_TINY_NS = 5_000
_FEW_BLOCKS = 0.5
_LOW_OCCUPANCY = 0.25
_ENOUGH_OCCUPANCY = 0.5
_PRODUCTS = r"(?i)gemm|conv|cutlass|attention|attn|fmha|flash|matmul|(^|_)(mm|bmm|dot)(_|$)"
"""Kernels that multiply matrices. They need few warps, because they keep their data in registers."""
_WARP = 32
_MOST_BLOCKS = 32
_REGISTER_UNIT = 256


def small_grids(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for each kernel of 10 µs or more that has less than one block for every two SMs."""
    shaped = with_launch_shapes(evidence.rank_trace, evidence.costed)
    is_small = (pl.col("blocks_per_sm") < _FEW_BLOCKS) & (DURATION >= _LONG_NS)
    # If the same work were spread over all SMs, the kernel's duration would be multiplied by `blocks_per_sm`, which
    # is less than 1. But no duration can fall below the lower bound that follows from the device's peak rates.
    least = pl.max_horizontal(DURATION * pl.col("blocks_per_sm"), FLOOR / BEST_BANDWIDTH)
    alone = _share_alone(evidence.kernels, small := shaped.filter(is_small))
    rows = small.with_columns(saved_ns=(DURATION - least).clip(lower_bound=0) * alone)
    for (kernel,), of_kernel in rows.group_by("kernel", maintain_order=True):
        blocks = float(of_kernel["blocks_per_sm"].median() or 0)  # type: ignore[arg-type]
        yield replace(
            case_of(evidence, of_kernel, subject=str(kernel), words={"blocks_per_sm": blocks}), is_at_most=True
        )


def _share_alone(kernels: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """Return, for each kernel in `rows`, the share of its time in which no other stream of its device runs a kernel."""
    shares = np.ones(len(rows))
    for (device, stream), of_stream in rows.with_row_index("place").group_by("device", "stream"):
        others = kernels.filter((pl.col("device") == device) & (pl.col("stream") != stream))
        starts, ends = of_stream["start_ns"].to_numpy(), of_stream["end_ns"].to_numpy()
        within = union_of(others)
        shared_ns = covered_before(within, ends) - covered_before(within, starts)
        shares[of_stream["place"].to_numpy()] -= shared_ns / np.maximum(1, ends - starts)
    return pl.Series("alone", shares)


def low_occupancy(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for each long kernel that runs few warps per SM, except matrix products.

    User-written kernels are included, although their names do not show whether they use tensor cores.
    """
    limits = _limits(evidence)
    if limits is None:
        return
    shaped = with_launch_shapes(evidence.rank_trace, evidence.costed)
    candidates = shaped.filter(
        (DURATION >= _LONG_NS)
        & pl.col("cores").ne_missing("matrix")
        & ~pl.col("kernel").str.contains(_PRODUCTS)
        & pl.col("uses_tensor_cores").ne_missing(other=True)
        & (pl.col("blocks_per_sm") >= 1)
    ).with_columns(**limits)
    blocks = pl.min_horizontal("by_registers", "by_shared_memory", "by_threads", pl.lit(_MOST_BLOCKS))
    occupancy = (blocks * pl.col("threads") / pl.col("most_threads")).alias("occupancy")
    # More warps hide more latency. At best, twice as many warps halve the kernel's time, but not below its lower
    # bound.
    least = pl.max_horizontal(DURATION * pl.col("occupancy") / _ENOUGH_OCCUPANCY, FLOOR / BEST_BANDWIDTH)
    low = candidates.with_columns(occupancy).filter(pl.col("occupancy") <= _LOW_OCCUPANCY)
    rows = low.with_columns(saved_ns=(DURATION - least).clip(lower_bound=0))
    for (kernel,), of_kernel in rows.group_by("kernel", maintain_order=True):
        first = of_kernel.row(int(of_kernel["saved_ns"].arg_max() or 0), named=True)
        words = {"occupancy": first["occupancy"], "limit": _limit(first), **first}
        yield replace(case_of(evidence, of_kernel, subject=str(kernel), words=words), is_at_most=True)


def _limits(evidence: RankEvidence) -> dict[str, pl.Expr] | None:
    """Return how many blocks each resource allows on an SM; None if the file does not describe the device."""
    (properties,) = properties_of(evidence.rank_trace, [evidence.devices[0]["device"]]) if evidence.devices else ({},)
    names = ("regsPerMultiprocessor", "sharedMemPerMultiprocessor", "maxThreadsPerMultiprocessor")
    registers, shared, threads = (properties.get(name) for name in names)
    if not all(type(value) is int and value > 0 for value in (registers, shared, threads)):
        return None
    warps = (pl.col("threads") / _WARP).ceil()
    of_warp = (pl.col("registers_per_thread") * _WARP / _REGISTER_UNIT).ceil() * _REGISTER_UNIT
    return {
        "by_registers": pl.when(of_warp > 0).then((registers / (of_warp * warps)).floor()),
        "by_shared_memory": pl.when(pl.col("shared_memory_bytes") > 0).then(
            (shared / pl.col("shared_memory_bytes")).floor()
        ),
        "by_threads": pl.when(warps > 0).then((threads / (warps * _WARP)).floor()),
        "most_threads": pl.lit(threads),
    }


def _limit(row: dict[str, Any]) -> str:
    counts = {"registers": row["by_registers"], "shared memory": row["by_shared_memory"], "threads": row["by_threads"]}
    known = {name: count for name, count in counts.items() if count is not None}
    least = min(known, key=lambda name: known[name])
    return "block size" if known[least] > _MOST_BLOCKS else least


def tiny_kernels(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case for kernels shorter than 5 µs and the short gaps before them; most of this time is fixed cost."""
    tiny = evidence.costed.filter((pl.col("kernel_kind") == KernelKind.COMPUTATION) & (DURATION < _TINY_NS))
    # At best, fusion shortens each tiny kernel to the lower bound of its time, `FLOOR`.
    rows = tiny.with_columns(
        saved_ns=pl.min_horizontal(DURATION, pl.lit(FIXED_NS)).cast(pl.Float64), most_ns=DURATION - FLOOR.fill_null(0)
    )
    if len(rows):
        words = {"mean_ns": rows["duration_ns"].mean()}
        yield case_of(evidence, rows, words=words, waits=gaps_before(evidence, rows))


def _say_small(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"{words['kernel']} has {number_text(words['blocks_per_sm'], digits=2)} blocks per SM, so most SMs are idle while it runs",
        "Split its work into more blocks (use smaller tiles, or split the reduced dimension), or overlap it with other work on a "
        "second stream.",
    )


_MORE_WARPS = {
    "registers": "Use fewer registers per thread: keep fewer values, or set maxnreg (Triton) or __launch_bounds__ (CUDA).",
    "shared memory": "Use less shared memory per block (smaller tiles or fewer pipeline stages).",
    "threads": "Choose a block size that evenly divides the maximum number of threads per SM, for example 128 or 256.",
    "block size": "Use larger blocks (128 threads or more), because an SM runs at most 32 blocks.",
}


def _say_occupancy(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"{words['kernel']} occupies only {percent_text(words['occupancy'])} of the warps of an SM, limited by its {words['limit']} "
        f"({words['registers_per_thread']} registers per thread, {words['shared_memory_bytes']:,} bytes of shared memory and "
        f"{words['threads']} threads per block)",
        _MORE_WARPS[words["limit"]],
    )


def _say_tiny(cases: Sequence[RankCase]) -> Said:
    words = cases[0].words
    return Said(
        f"{words['count']:,.0f} kernels per step take only {duration_text(words['mean_ns'])} on average, and starting and "
        "finishing them costs much of this time",
        "Fuse them with torch.compile, batch the same operation on small tensors (torch._foreach_*, bmm), or replace loops over "
        "tensors with one operation.",
    )


def _needs_properties(evidence: RankEvidence) -> str | None:
    if (missing := needs_device(evidence)) is not None:
        return missing
    return None if _limits(evidence) is not None else "the file does not describe the device's SMs (deviceProperties)"


_GUIDE = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html"

_rule = partial(Rule, unit=OF_THE_STEP, source=_GUIDE, needs=needs_device)

RULES = (
    _rule(
        "small_grid",
        "kernels that take 10 µs or more and have less than one block for every two SMs",
        threshold=LEAST_SHARE,
        reason="With one block for every two SMs, half of the device is idle. Losses below 3 % of a step are smaller "
        "than the variation between steps.",
        check=small_grids,
        say=_say_small,
        confidence="medium",
    ),
    _rule(
        "low_occupancy",
        "kernels, except matrix products, that take 10 µs or more and occupy at most a quarter of an SM's warps "
        "because of their registers, shared memory or block size",
        threshold=0.05,
        reason="Memory-bound kernels need about half of the warps to hide the latency of memory; matrix products need far fewer.",
        check=low_occupancy,
        say=_say_occupancy,
        needs=_needs_properties,
        confidence="low",
    ),
    _rule(
        "tiny_kernels",
        "kernels that each take less than 5 µs, but together take up much of the step",
        threshold=0.2,
        reason="Starting and draining a kernel takes about 2 µs. If these kernels take less than a fifth of the "
        "step, other causes matter more.",
        check=tiny_kernels,
        say=_say_tiny,
        precedence=2,
        confidence="medium",
    ),
)
"""The rules about the shape of kernels."""
