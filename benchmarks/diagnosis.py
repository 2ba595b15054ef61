"""Compare the diagnosis with the mistakes planted in simulated and in recorded jobs, rule by rule.

    python benchmarks/diagnosis.py [--seeds 3] [--first-seed 0] [--healthy 20] [--recorded] [RULE ...]

Simulated jobs come from `holotrace.testing.mistakes`: each has one mistake, and a twin without it. The cost of the
mistake is the difference between the two step times. Recorded jobs come from `examples/gpu` (one H100) and
`tests/reference/traces/planted_causes` (CPUs).

A finding of a mistake that was not planted is an alarm. In a simulated job, an alarm is true if the job is faster
without the named cause. In recorded jobs, `tests/reference/diagnosis_labels.toml` says whether each alarm is true, and
why. Findings that are part of other findings are ignored.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import holotrace
from holotrace.analyses.diagnosis.rules.all_rules import JOB_RULES, RULES
from holotrace.store.trace import Trace
from holotrace.testing.job_plan import BEGIN_NS
from holotrace.testing.mistakes.jobs import TrainingJob, step_ns_of
from holotrace.testing.mistakes.options import JobOptions
from holotrace.testing.mistakes.plans import Pair, drawn_healthy, drawn_pair, remedied, rules
from holotrace.testing.planted.job import PlantedJob
from holotrace.testing.planted.options import PlantedOptions

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
GPU = ROOT / "examples" / "gpu" / "traces"
CPU = ROOT / "tests" / "reference" / "traces" / "planted_causes"
LABELS = ROOT / "tests" / "reference" / "diagnosis_labels.toml"

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
    "two_ranks-pipeline-slow_rank1": "host_falls_behind",
    "ddp_sequence_lengths": "uneven_inputs",
}
"""The rule that describes the mistake of each recorded job. In the pipeline job, the host of the slow rank falls
behind, but no step takes longer yet."""

HIDDEN = "two_ranks-data_parallel-slow_rank1"
"""A recording that is left out, because its planted delay costs no time."""

WHAT_IF_ERROR = 0.03
"""A replayed step time or a predicted what-if saving may be wrong by up to this fraction of the measured step."""

BOUND_ERROR = 0.005
"""A bound may be too low by up to this fraction.

The step times of a job with a mistake and of its twin without the mistake also differ at random, by as much.
"""

LEAST_SAVED = 0.01
"""An alarm in a simulated job is true if removing the cause that it names saves at least this fraction of the step."""


@dataclass(frozen=True)
class Found:
    """All findings of one rule in a job: the sum of their stakes, and how the stakes were estimated."""

    stake_ns: float
    basis: str
    text: str


@dataclass
class Score:
    """The results of a rule: names of jobs and, if the true saving is known, the error of each predicted saving.

    Errors are fractions of the step.
    """

    found: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    true_alarms: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    replayed: list[tuple[float, str]] = field(default_factory=list)
    bounds: list[tuple[float, str]] = field(default_factory=list)
    estimates: list[tuple[float, str]] = field(default_factory=list)

    def stakes(self, basis: str) -> list[tuple[float, str]]:
        """Return the errors of the savings that were predicted by this method: what-if, estimate or bound."""
        return {"what-if": self.replayed, "estimate": self.estimates}.get(basis, self.bounds)


def main() -> None:
    """Print the table, then the wrong results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="simulated jobs for each rule")
    parser.add_argument(
        "--first-seed",
        type=int,
        default=0,
        help="the first seed of the simulated jobs; the next jobs use the next seeds",
    )
    parser.add_argument("--healthy", type=int, default=20, help="simulated jobs without a mistake")
    parser.add_argument("--recorded", action="store_true", help="only recorded jobs")
    parser.add_argument("rules", nargs="*", help="only simulated jobs with these mistakes")
    options = parser.parse_args()
    scores: defaultdict[str, Score] = defaultdict(Score)

    def seeds(count: int) -> range:
        return range(options.first_seed, options.first_seed + count)

    if not options.recorded:
        for rule in rules() if not options.rules else [rule for rule in options.rules if rule in rules()]:
            for seed in seeds(options.seeds):
                score_pair(scores, f"{rule} {seed}", drawn_pair(rule, seed))
            print("\n".join(mistakes({rule: scores[rule]})), file=sys.stderr, flush=True)
        for seed in seeds(0 if options.rules else options.healthy):
            job = drawn_healthy(seed)
            score_alarms(scores, f"healthy {seed}", job, findings_of_job(job))
    if not options.rules:
        score_recordings(scores)
    if not options.recorded and (not options.rules or "pipeline_bubble" in options.rules):
        for seed in seeds(options.seeds):
            score_pipeline(scores, seed)
    print("\n".join(table(scores)))
    print("\n".join(mistakes(scores)))


def score_pair(scores: defaultdict[str, Score], name: str, pair: Pair) -> None:
    """Diagnose a job with a mistake."""
    found = findings_of_job(pair.planted, only_first=pair.rule == "exposed_on_one_rank")
    score = scores[pair.rule]
    mine = found.pop(pair.rule, None)
    (score.missed if mine is None else score.found).append(name)
    if mine is not None and pair.rule not in WITHOUT_COST:
        step_ns = step_ns_of(pair.planted)
        parts_ns = sum(other.stake_ns for rule, other in found.items() if (pair.rule, rule) in SAME_MISTAKE)
        is_shared = pair.rule == "launch_bound" and "slow_recording" in found
        cost_ns = (without_stacks(pair) if is_shared else pair).cost_ns
        error = (mine.stake_ns + parts_ns - cost_ns) / step_ns
        score.stakes(mine.basis).append((error, name))
    score_alarms(scores, name, pair.planted, found, pair.healthy)


def without_stacks(pair: Pair) -> Pair:
    """Return the pair as if both jobs had been recorded without stacks.

    Recording stacks slows launches down. This slowdown is already part of the time that `slow_recording` reports, so
    it must not be part of the time that `launch_bound` reports.
    """
    return replace(pair, planted=replace(pair.planted, stacks=False), healthy=replace(pair.healthy, stacks=False))


SAME_MISTAKE = {
    ("jitter", "slow_function"),
    ("late_rank", "slow_function"),
    ("late_rank", "data_loading"),
    ("graph_breaks", "slow_function"),
}
"""Pairs of rules: a mistake that is planted to test the first rule may also be a true finding of the second rule.

For example, a rank may be late because of a slow function.
"""

WITHOUT_COST = ("memory_limit", "fragmentation", "host_falls_behind", "data_parallel")
"""Rules for mistakes that cost no time yet, or whose cost is unknown."""


def score_alarms(
    scores: defaultdict[str, Score],
    name: str,
    job: JobOptions,
    found: dict[str, Found],
    healthy: JobOptions | None = None,
) -> None:
    """Decide which alarms in a simulated job are true; `healthy` is the same job without the planted mistake."""
    for rule, alarm in found.items():
        better = healthy if (name.partition(" ")[0], rule) in SAME_MISTAKE else remedied(job, rule)
        step_ns = step_ns_of(job)
        is_true = better is not None and step_ns - step_ns_of(better) >= LEAST_SAVED * step_ns
        listed = scores[rule].true_alarms if is_true else scores[rule].false_alarms
        listed.append(f"{name} ({alarm.stake_ns / step_ns:.1%} of the step)")


def score_pipeline(scores: defaultdict[str, Score], seed: int) -> None:
    """Diagnose a pipeline with few microbatches; its twin divides the same work into many microbatches."""
    stages, few = ((4, 4), (2, 2), (8, 8), (4, 8))[seed % 4]
    planted = PlantedOptions(data=1, pipeline=stages, microbatches=few, layer_ns=3_200_000 // few, steps=4, seed=seed)
    many = replace(planted, microbatches=8 * stages, layer_ns=400_000 // stages)
    job, name = PlantedJob(planted), f"pipeline_bubble {seed}"
    with tempfile.TemporaryDirectory() as folder:
        found = findings(holotrace.open_trace(job.write(Path(folder))))
    mine = found.pop("pipeline_bubble", None)
    score = scores["pipeline_bubble"]
    (score.missed if mine is None else score.found).append(name)
    step_ns = _mean_step_ns(job)
    if mine is not None:
        score.bounds.append(((mine.stake_ns - step_ns + _mean_step_ns(PlantedJob(many))) / step_ns, name))
    for rule in found:
        (scores[rule].true_alarms if rule in OF_PIPELINES else scores[rule].false_alarms).append(name)


OF_PIPELINES = ("data_loading", "exposed_communication")
"""Rules whose findings are true alarms in every simulated pipeline.

In each pipeline, the main process loads data for 0.5 ms per step, and no computation overlaps with the sends of the
last stage.
"""


def _mean_step_ns(job: PlantedJob) -> float:
    return float(job.times.max() - BEGIN_NS) / job.options.steps


def score_recordings(scores: defaultdict[str, Score]) -> None:
    """Diagnose the recorded jobs; an alarm without a label counts as a false alarm."""
    labels = judged()
    for name, path, planted in recordings():
        found = findings(holotrace.open_trace(path))
        if planted is not None:
            (scores[planted].found if planted in found else scores[planted].missed).append(name)
        for rule in found.keys() - {planted}:
            is_true = labels.get((name, rule), False)
            (scores[rule].true_alarms if is_true else scores[rule].false_alarms).append(name)


def recordings() -> Iterator[tuple[str, Path, str | None]]:
    """Yield name, folder and planted rule of each recorded job."""
    for path in sorted(GPU.iterdir()):
        if path.is_dir() and path.name != HIDDEN:
            yield path.name, path, PLANTED.get(path.name)
    for path in sorted(CPU.iterdir()):
        if path.is_dir():
            yield path.name, path, None if path.name.endswith("healthy") else PLANTED.get(path.name, "late_rank")


@cache
def judged() -> dict[tuple[str, str], bool]:
    """Return whether each alarm in a recorded job is true, by job and rule."""
    entries = tomllib.loads(LABELS.read_text())["judged"]
    return {(job, entry["rule"]): entry["is_true"] for entry in entries for job in entry["jobs"]}


def findings_of_job(job: JobOptions, *, only_first: bool = False) -> dict[str, Found]:
    """Write a simulated job, and diagnose it; with `only_first`, open only the trace of rank 0."""
    with tempfile.TemporaryDirectory() as folder:
        path = TrainingJob(job).write(Path(folder))
        return findings(holotrace.open_trace(path / "rank0.pt.trace.json.gz" if only_first else path))


def findings(trace: Trace) -> dict[str, Found]:
    """Return the findings of the diagnosis by rule, without those that are part of other findings."""
    rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in holotrace.diagnosis(trace).per_finding.to_dicts():
        if row["part_of"] is None:
            rows[row["rule"]].append(row)
    return {rule: _together(of_rule) for rule, of_rule in rows.items()}


def _together(rows: list[dict[str, Any]]) -> Found:
    stake_ns = sum(row["stake_ns"] or 0 for row in rows)
    bases = {row["basis"] for row in rows}
    return Found(stake_ns, bases.pop() if len(bases) == 1 else "bound", rows[0]["finding"])


def table(scores: dict[str, Score]) -> Iterator[str]:
    """Yield the lines of the table of all rules."""
    yield "rule                      planted found alarms  true precision recall  what-if error  bound - cost  estimate - cost"
    names = [rule.name for rule in (*RULES, *JOB_RULES)]
    total = Score()
    for name in names:
        score = scores.get(name, Score())
        yield _line(name, score)
        for part in ("found", "missed", "true_alarms", "false_alarms", "replayed", "bounds", "estimates"):
            getattr(total, part).extend(getattr(score, part))
    yield _line("all", total)


def _line(name: str, score: Score) -> str:
    found, alarms = len(score.found), len(score.true_alarms) + len(score.false_alarms)
    planted = found + len(score.missed)
    right = found + len(score.true_alarms)
    precision = f"{right / (found + alarms):9.3f}" if found + alarms else "         "
    recall = f"{found / planted:6.3f}" if planted else "      "
    return (
        f"{name:25} {planted:7} {found:5} {alarms:6} {len(score.true_alarms):5} {precision} {recall}  "
        f"{_range(score.replayed):>13}  {_range(score.bounds):>12}  {_range(score.estimates):>15}"
    )


def _range(errors: Iterable[tuple[float, str]]) -> str:
    """Return the smallest and the largest error in percent of the step."""
    shares = [100 * error for error, _ in errors]
    return f"{min(shares):+.1f}..{max(shares):+.1f} %" if shares else ""


def mistakes(scores: dict[str, Score]) -> Iterator[str]:
    """Yield a line for each rule and each kind of wrong result: missed mistakes, false alarms and wrong savings."""
    for rule, score in sorted(scores.items()):
        wrong = [f"{name} {error:+.1%}" for error, name in score.replayed if abs(error) > WHAT_IF_ERROR]
        wrong += [f"{name} {error:+.1%}" for error, name in score.bounds if error < -BOUND_ERROR]
        for what, names in (("missed", score.missed), ("false alarm", score.false_alarms), ("wrong saving", wrong)):
            if names:
                yield f"{rule}: {what} in {json.dumps(names)}"


if __name__ == "__main__":
    main()
