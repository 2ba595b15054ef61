"""Compare the diagnosis with the mistakes planted in recorded jobs, rule by rule.

    python benchmarks/diagnosis.py

The jobs are those of `examples/gpu` (one H100) and `tests/reference/traces/planted_causes` (CPUs): each has one planted mistake
or none. A finding of another rule counts as false, although some are true: a job that was recorded to show something else may
also multiply float32 matrices without TF32. Rules that describe a state rather than a mistake do not count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import holotrace

ROOT = Path(__file__).parent.parent
GPU = ROOT / "examples" / "gpu" / "traces"
CPU = ROOT / "tests" / "reference" / "traces" / "planted_causes"

PLANTED = {
    "small-slow_loading": "slow_function",
    "small-loader": "data_loading",
    "small-collects_garbage": "garbage_collection",
    "small-not_fused": "optimizer_not_fused",
    "small-reads_loss": "scalar_read",
    "training-not_fused": "optimizer_not_fused",
    "training-synchronized": "device_synchronisation",
    "training-full_precision": "tf32_off",
    "training-tf32": "mixed_precision_off",
    "training-odd_shapes": "unaligned_products",
    "training-math_attention": "unfused_attention",
    "training-empties_cache": "empties_cache",
    "training-checkpointed": "recomputation",
    "compiled-recompiles": "recompilation",
    "compiled-graph_breaks": "scalar_read",
    "rows-masked": "data_dependent_shape",
    "copies-pageable": "pageable_copy",
    "images-channels_first": "channels_first",
    "elementwise-unfused": "unfused_chain",
    "prefetching-in_turn": "copies_in_turn",
    "memory-fragmented": "memory_limit",
    "two_ranks-experts-slow_rank1": "late_rank",
    "two_ranks-sharded-slow_rank1": "late_rank",
    "two_ranks-tensor_parallel-slow_rank1": "late_rank",
    "two_ranks-pipeline-slow_rank1": "late_rank",
}
"""The rule that describes the mistake of each job."""

HIDDEN = "two_ranks-data_parallel-slow_rank1"
"""Its sleep costs nothing, so there is nothing to find."""

STATES = {
    "launch_bound",
    "python_overhead",
    "unexplained_idle",
    "exposed_communication",
    "exposed_on_one_rank",
    "pipeline_bubble",
    "small_collectives",
    "tiny_kernels",
    "float8_possible",
}
"""Rules that say what a job is like; healthy jobs have them, too."""


def main() -> None:
    """Print, for each rule, how many planted mistakes it finds, and in which jobs it finds what was not planted."""
    jobs = {path.name: path for path in sorted(GPU.iterdir()) if path.is_dir() and path.name != HIDDEN}
    late = {path.name: path for path in sorted(CPU.iterdir()) if path.is_dir()}
    planted = {**PLANTED, **{name: "late_rank" for name in late if not name.endswith("healthy")}}
    found: Counter[str] = Counter()
    missed, false = defaultdict(list), defaultdict(list)
    for name, path in {**jobs, **late}.items():
        rules = rules_of(path)
        wanted = planted.get(name)
        if wanted is not None:
            found[wanted] += wanted in rules
            if wanted not in rules:
                missed[wanted].append(name)
        for rule in rules - {wanted}:
            false[rule].append(name)
    every = sorted({*found, *missed, *false})
    print(f"{len(planted)} jobs with a planted mistake, {len(jobs) + len(late) - len(planted)} without")
    for rule in every:
        print(f"{rule}: found {found[rule]}, missed {missed[rule] or 0}, besides {false[rule] or 0}")
    print(f"recall {found.total() / len(planted):.3f}")


def rules_of(path: Path) -> set[str]:
    """Return the rules whose findings stand for themselves, without states."""
    findings = holotrace.diagnosis(holotrace.open_trace(path)).per_finding
    return {row["rule"] for row in findings.to_dicts() if row["part_of"] is None} - STATES


if __name__ == "__main__":
    main()
