"""A line fitted to the durations of messages of several sizes yields latency and bandwidth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.algorithms.latency_fit import fit_latency


def _messages(
    sizes: list[int], latency_ns: float, ns_per_byte: float, noise: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return 20 messages of each size, with durations that vary by `noise`."""
    bytes_sent = np.repeat(np.array(sizes), 20)
    jitter = 1 + noise * np.random.default_rng(7).standard_normal(len(bytes_sent))
    return bytes_sent, np.round((latency_ns + bytes_sent * ns_per_byte) * jitter).astype(np.int64)


@given(latency_ns=st.integers(0, 1_000_000), gb_per_s=st.integers(1, 900))
def test_exact_times_give_the_latency_and_bandwidth_they_were_made_of(latency_ns, gb_per_s):
    """Without noise, the fit returns the true latency and bandwidth, up to rounding to nanoseconds."""
    fit = fit_latency(*_messages([1_000_000, 10_000_000, 100_000_000], latency_ns, 1 / gb_per_s))

    assert fit is not None
    assert fit.latency_ns == pytest.approx(latency_ns, abs=2)
    assert fit.bytes_per_s == pytest.approx(gb_per_s * 1e9, rel=1e-3)


def test_the_interval_contains_the_truth_despite_noise():
    """With 5 % noise, the 95 % intervals contain the true 20 µs and 50 GB/s."""
    fit = fit_latency(*_messages([10_000, 100_000, 1_000_000, 10_000_000], 20_000, 1 / 50, noise=0.05))

    assert fit is not None
    assert fit.latency_low_ns <= 20_000 <= fit.latency_high_ns
    assert fit.low_bytes_per_s <= 50e9 <= fit.high_bytes_per_s


def test_one_slow_message_of_each_size_does_not_move_the_line():
    """If one message in 20 takes a second, neither the medians nor the fitted line change."""
    sizes, times = _messages([1_000, 100_000, 10_000_000], 5_000, 0.1)
    times[::20] = 1_000_000_000

    fit = fit_latency(sizes, times)

    assert fit is not None
    assert (round(fit.latency_ns), round(fit.bytes_per_s)) == (5_000, 10_000_000_000)


@pytest.mark.parametrize("sizes", [[], [1_000], [1_000, 1_000_000], [1_000, 1_500, 2_000]])
def test_too_few_or_too_similar_sizes_give_no_fit(sizes):
    """There is no fit with fewer than three sizes, or if the largest size is less than four times the smallest."""
    assert fit_latency(*_messages(sizes, 5_000, 0.1)) is None


def test_times_that_do_not_grow_with_the_size_have_infinite_bandwidth():
    """If messages of all sizes take 5 µs, the latency is 5 µs and the bandwidth infinite."""
    fit = fit_latency(*_messages([1_000, 10_000, 100_000], 5_000, 0.0))

    assert fit is not None
    assert (fit.latency_ns, fit.bytes_per_s) == (5_000, float("inf"))


def test_hundreds_of_sizes_are_grouped():
    """From messages of 500 sizes, the fit returns the true latency and bandwidth."""
    fit = fit_latency(*_messages(list(range(10_000, 5_010_000, 10_000)), 30_000, 0.02))

    assert fit is not None
    assert fit.latency_ns == pytest.approx(30_000, rel=0.02)
    assert fit.bytes_per_s == pytest.approx(50e9, rel=0.01)
