"""Clocks are estimated from the ends of operations."""

from __future__ import annotations

import numpy as np
import pytest

from holotrace.algorithms.clocks.lines import Readings, adjusted, clock_graph, rough_lines


def readings_of(*operations, is_together=True):
    """Return the readings of all clocks; each operation maps the number of a clock to the time that it showed."""
    rows = [(number, clock, time) for number, times in enumerate(operations) for clock, time in sorted(times.items())]
    operation, clock, time = (np.array(column) for column in zip(*rows, strict=True))
    return Readings(operation, clock, time.astype(float), np.full(len(rows), is_together))


def test_a_chain_of_clocks_is_followed_to_the_reference() -> None:
    """Clock 1 is 100 ahead of clock 0, clock 2 is 30 behind clock 1; clocks 0 and 2 have no common operation."""
    chain = [{0: t, 1: t + 100} for t in range(0, 900, 30)] + [{1: t + 100, 2: t + 70} for t in range(10, 900, 30)]
    readings = readings_of(*chain)
    graph = clock_graph(readings, 4, 0)
    lines = rough_lines(readings, graph, 0, 1e-3)

    assert graph.distance[:3].tolist() == [0, 1, 2]
    assert lines.rate[:3] == pytest.approx([1, 1, 1])
    assert lines.offset[:3] == pytest.approx([0, -100, -70])
    assert np.isnan(lines.rate[3])


def test_one_late_end_does_not_move_the_line() -> None:
    """If one of 40 readings is wrong by a second, the estimated drift is still 200 ppm."""
    times = [{0: t * 1.0002 + 50, 1: t} for t in range(0, 40_000_000, 1_000_000)]
    times[7][1] += 1e9
    readings = readings_of(*times)
    lines = rough_lines(readings, clock_graph(readings, 2, 0), 0, 1e-3)

    assert lines.rate[1] == pytest.approx(1.0002, abs=2e-5)
    assert lines.at(np.array([1]), np.array([2e7]))[0] == pytest.approx(2e7 * 1.0002 + 50, abs=500)


def test_operations_that_end_together_lead_before_others() -> None:
    """Clocks 1 and 2 are compared by an operation that ends on both at once; the message from clock 0 is not used."""
    together = readings_of({0: 5, 1: 5}, {1: 10, 2: 10})
    message = readings_of({0: 20, 2: 90}, is_together=False)
    operation = np.concatenate([together.operation, message.operation + 2])
    both = Readings(operation, *(np.concatenate(pair) for pair in zip(together[1:], message[1:], strict=True)))

    assert clock_graph(both, 3, 0).distance.tolist() == [0, 1, 2]


def test_least_squares_divide_the_error_of_a_cycle() -> None:
    """Around the cycle 0, 1, 2, the differences add up to 30; the fit corrects each of the three edges by 10."""
    rounds = [
        operation for t in range(0, 10**10, 10**9) for operation in ({0: t, 1: t}, {0: t, 2: t}, {1: t, 2: t + 30})
    ]
    readings = readings_of(*rounds)
    graph = clock_graph(readings, 3, 0)
    adjustment = adjusted(readings, graph, 0, np.ones(3))

    assert adjustment.closure_error == 30
    assert adjustment.value == pytest.approx([0, 10, -10], abs=0.01)


def test_a_graph_without_cycles_has_no_closure_error() -> None:
    """Without a cycle, comparisons cannot contradict each other, so the closure error is None."""
    readings = readings_of({0: 1, 1: 2}, {1: 3, 2: 4})

    assert adjusted(readings, clock_graph(readings, 3, 0), 0, np.ones(3)).closure_error is None
