"""Tests of straggler_cost on the traces published with the OSDI'25 paper, against the results of its authors.

Source: https://github.com/ByteDance-Seed/StragglerAnalysis
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holotrace.analyses.straggler_cost.compute import StragglerCost, straggler_cost
from holotrace.enrich.job_operations.reading import read_operations
from reference_data import BESIDE_THE_REPOSITORY, IN_THE_REPOSITORY

NAME = "straggler_what_if"


class Published(NamedTuple):
    """Our result for a trace, and the numbers that the trace's authors published for it."""

    result: StragglerCost
    figures: dict[str, Any]
    workers: dict[str, float]
    stages: dict[str, float]


@pytest.fixture(scope="module", params=["ST", "AR"])
def published(request: pytest.FixtureRequest) -> Published:
    """Return our result for a published trace; the larger trace is not in the repository."""
    folder = _folder_of(request.param)
    figures = [json.loads((folder / f"{kind}-{request.param}.json").read_text()) for kind in ("result", "mw", "ms")]
    return Published(straggler_cost(read_operations(folder / f"trace-{request.param}.parquet")), *figures)


def _folder_of(name: str) -> Path:
    folders = [BESIDE_THE_REPOSITORY / NAME, IN_THE_REPOSITORY / NAME]
    for folder in folders:
        if (folder / f"trace-{name}.parquet").is_file():
            return folder
    pytest.skip(f"no trace-{name}.parquet in these folders: {', '.join(map(str, folders))}")


def _by_name(table: Any, key: str) -> dict[str, float]:
    return {str(name): value for name, value in table.select(key, "slowdown").iter_rows()}


def test_the_steps(published: Published) -> None:
    """For every step, T (recorded and replayed), T_ideal and S equal the authors' numbers."""
    steps = published.result.per_step
    for column, figure, unit in (
        ("step_ns", "step_t_base", 1e9),
        ("replayed_ns", "step_t_nodelay", 1e9),
        ("ideal_ns", "step_t_noblk", 1e9),
        ("slowdown", "blocking_step_slowdown", 1),
    ):
        ours = {str(step): value / unit for step, value in steps.select("step", column).iter_rows()}
        assert ours == pytest.approx(published.figures[figure], rel=1e-6)


def test_the_slowdowns(published: Published) -> None:
    """The slowdowns S of the job and of each operation kind, stage and replica equal the authors' numbers."""
    result, figures = published.result, published.figures

    assert result.slowdown == pytest.approx(figures["blocking_slowdown"], rel=1e-6)
    for table, key, figure in (
        (result.per_kind, "operation_kind", "optype"),
        (result.per_stage, "stage", "stage"),
        (result.per_replica, "dp_rank", "dp_rank"),
    ):
        assert _by_name(table, key) == pytest.approx(figures[f"blocking_decompose_by_{figure}"], rel=1e-6)


def test_the_workers(published: Published) -> None:
    """The slowdown S_w of a worker is the lesser of the slowdowns of its replica and stage, in total and per step."""
    result, figures = published.result, published.figures
    by_replica, by_stage = (figures[f"blocking_decompose_by_{part}"] for part in ("dp_rank", "stage"))
    for _, replica, stage, slowdown in result.per_worker.iter_rows():
        assert slowdown == pytest.approx(min(by_replica[str(replica)], by_stage[str(stage)]), rel=1e-6)

    places = {rank: (str(replica), str(stage)) for rank, replica, stage, _ in result.per_worker.iter_rows()}
    for rank, step, slowdown in result.per_worker_step.iter_rows():
        replica, stage = places[rank]
        of_step = (figures[f"blocking_decompose_by_{part}_per_step"][str(step)] for part in ("dp_rank", "stage"))
        assert slowdown == pytest.approx(min(next(of_step)[replica], next(of_step)[stage]), rel=1e-6)


def test_the_shares(published: Published) -> None:
    """M_W (the worst 3 % of the workers) and M_S (the last stage) equal the authors' numbers."""
    assert published.result.worker_share == pytest.approx(published.workers["Mw"], rel=2e-6)
    assert published.result.stage_share == pytest.approx(published.stages["Ms"], rel=2e-6)


def test_the_answer(published: Published) -> None:
    """For trace AR, in which the authors slowed down a worker, the answer blames workers; for ST, the last stage."""
    worst, answers = (
        published.result.per_worker.row(0),
        {
            0: "49.3 % of the job's time is lost to stragglers; the slowest workers cause most of this loss, especially rank 0.",
            7: "15.2 % of the job's time is lost to stragglers; the last pipeline stage (stage 3) causes most of this loss.",
        },
    )
    assert published.result.answer == answers[worst[0]]
