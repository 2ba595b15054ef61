"""`holotrace straggler-cost`: the cost of stragglers, from traces or from a single table of operations."""

from __future__ import annotations

from holotrace.catalogue import analysis
from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.questions import ResultOptions, show
from holotrace.enrich.job_operations.reading import is_operations_file, read_operations

_QUESTION = analysis("straggler_cost")


def _command(job: JobOptions, shown: ResultOptions) -> None:
    shown.check()
    if len(job.reading.sources) == 1 and is_operations_file(job.reading.sources[0]):
        result = _QUESTION.compute(read_operations(job.reading.sources[0]))
        ranks = sorted(result.per_worker["rank"])  # type: ignore[attr-defined]
    else:
        with opened_job(job) as (trace, executor):
            answer = _QUESTION.plan().answer(trace, executor)
        result, ranks = answer.result, list(answer.trace.ranks)
    ratios = {name: getattr(result, name) for name in ("slowdown", "worker_share", "stage_share")}
    show(_QUESTION, result, shown, {"analysis": _QUESTION.name, "ranks": ranks, **ratios})


straggler_cost = with_option_groups(_command)
