"""`PlantedJob.delay_costs` assigns all waiting to its causes."""

from __future__ import annotations

import pytest

from holotrace.testing.planted.job import PlantedJob
from holotrace.testing.planted.options import FIRST_STEP, Cause, PlantedOptions
from holotrace.testing.planted.programs import SLOW_KERNEL, SLOW_OPERATOR

MS = 1_000_000


@pytest.mark.parametrize("seed", range(8))
def test_the_costs_add_up_to_all_waiting(seed):
    """The costs of all causes add up to the total waiting time."""
    job = PlantedJob(PlantedOptions.drawn(seed, most_ranks=32))
    assert sum(job.delay_costs.values()) == pytest.approx(job.waited_ns.sum(), rel=1e-9)


def test_a_slow_kernel_costs_what_the_others_wait_less_without_it():
    """The cost of a single cause is the waiting that would not exist without it: 5 ms on each of seven ranks."""
    cause = Cause("slow_kernel", 2, 5 * MS, step=FIRST_STEP)
    job = PlantedJob(PlantedOptions(layers=1, jitter=0, causes=(cause,)))
    ((rank, (kind, name, module)), cost) = job.delay_costs.most_common(1)[0]
    assert (rank, kind, name, module) == (2, "kernel", SLOW_KERNEL, "nn.Module: Block_0")
    assert cost == pytest.approx(job.causes[0].others_ns, rel=5e-3)


def test_the_first_stage_is_charged_for_what_the_last_one_passes_on():
    """Stages 1 to 3 arrive late only because they have waited, so most of the cost is assigned to stage 0."""
    cause = Cause("slow_kernel", 0, 20 * MS, step=FIRST_STEP)
    job = PlantedJob(PlantedOptions("gloo", data=1, pipeline=4, microbatches=4, layers=1, causes=(cause,)))
    ((rank, (_, name, _)), cost) = job.delay_costs.most_common(1)[0]
    assert (rank, name) == (0, SLOW_OPERATOR)
    assert cost == pytest.approx(job.causes[0].others_ns, rel=0.1)
