"""Simulated training jobs look like recordings, and a planted mistake slows a job down by the expected time."""

from __future__ import annotations

from dataclasses import replace

import pytest

import holotrace
from holotrace.testing.mistakes.jobs import TrainingJob, step_ns_of
from holotrace.testing.mistakes.options import JobOptions
from holotrace.testing.mistakes.plans import drawn_healthy, drawn_pair

SMALL = JobOptions(layers=2, hidden=1024, heads=8, tokens=4096, sequence=512, vocabulary=8_000, steps=4, autocast=False)


def test_equal_options_give_equal_files(tmp_path):
    """The content of a file depends only on the options."""
    first, second = (TrainingJob(SMALL).write(tmp_path / name) for name in ("first", "second"))
    names = [path.name for path in first.iterdir()]
    assert names == ["rank0.pt.trace.json.gz"]
    assert [(first / name).read_bytes() for name in names] == [(second / name).read_bytes() for name in names]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [SMALL, replace(SMALL, ranks=2, steps=3), replace(SMALL, model="images", hidden=128, tokens=64)]
)
def test_a_recording_raises_no_doubts_and_has_the_true_step(options, tmp_path):
    """`trust` has no doubts about a simulated recording, and `diagnosis` finds its step time to within 5 %."""
    job = TrainingJob(options)
    trace = holotrace.open_trace(job.write(tmp_path))
    assert holotrace.trust(trace).doubts.is_empty()
    assert holotrace.diagnosis(trace).headline["step_ns"][0] == pytest.approx(job.step_ns, rel=0.05)


def test_a_pause_of_the_host_costs_its_length_where_the_device_waits_for_each_step():
    """If each step reads the loss, the device waits for the host, so a pause of 5 ms on the host costs 5 ms."""
    job = replace(SMALL, reads_loss=True)
    paused = job.with_mistake("slow_function", 5_000_000)
    assert step_ns_of(paused) - step_ns_of(job) == pytest.approx(5_000_000, rel=0.02)


def test_a_pause_of_the_host_costs_nothing_if_the_device_has_enough_to_do():
    """If the host is many kernels ahead of the device, a pause of 1 ms on the host costs nothing."""
    assert step_ns_of(SMALL.with_mistake("slow_function", 1_000_000)) == pytest.approx(step_ns_of(SMALL), rel=0.01)


def test_a_slow_rank_delays_all_ranks():
    """Gradients are reduced at the end of each step, so all ranks take as long as the slowest."""
    job = replace(SMALL, ranks=2, steps=3, reads_loss=True)
    slow = job.with_mistake("slow_device", 0.5, rank=1)
    assert step_ns_of(slow) > 1.3 * step_ns_of(job)


@pytest.mark.slow
def test_every_drawn_job_is_another():
    """Different seeds give different jobs; equal seeds give the same pair of jobs, with and without the mistake."""
    assert len({repr(drawn_healthy(seed)) for seed in range(10)}) == 10
    assert drawn_pair("casts", 1) == drawn_pair("casts", 1)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["anomaly_detection", "evaluation_in_steps", "dense_embedding_gradients"])
def test_only_the_job_with_the_mistake_has_its_finding(rule, tmp_path):
    """The diagnosis finds the planted mistake, and does not report it for the same job without the mistake."""
    pair = drawn_pair(rule, 3)
    found = {}
    for name, job in (("planted", pair.planted), ("healthy", pair.healthy)):
        trace = holotrace.open_trace(TrainingJob(job).write(tmp_path / name))
        found[name] = rule in holotrace.diagnosis(trace).per_finding["rule"].to_list()
    assert found == {"planted": True, "healthy": False}
