"""Fits the time of a message as latency + size / bandwidth (Hockney's model).

Source: R. W. Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20 (1994),
https://doi.org/10.1016/S0167-8191(06)80021-9
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FEWEST_SIZES = 3
LEAST_SPREAD = 4.0
"""A fit needs at least `FEWEST_SIZES` sizes, and the largest must be at least `LEAST_SPREAD` times the smallest."""

_MOST_SIZES = 24
_MOST_SAMPLES = 200
_RESAMPLES = 200
_CONFIDENCE = (2.5, 97.5)

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LatencyFit:
    """Estimates with 95 % confidence intervals: times in ns, bandwidths in bytes/s.

    A bandwidth is infinite if the time does not grow with the size.
    """

    latency_ns: float
    latency_low_ns: float
    latency_high_ns: float
    bytes_per_s: float
    low_bytes_per_s: float
    high_bytes_per_s: float


def fit_latency(byte_counts: npt.NDArray[np.int64], times_ns: npt.NDArray[np.int64]) -> LatencyFit | None:
    """Fit `time = latency + bytes / bandwidth` to messages; None if there are too few sizes, or they are too similar.

    The line is fitted to the median time of each size, so single slow messages do not move it (Theil-Sen: its slope is
    the median of the slopes between all pairs of sizes). The confidence intervals come from 200 bootstrap samples per
    size; the seed is fixed, so equal input gives equal results.

    >>> sizes = np.array([1_000, 10_000, 100_000])
    >>> fit = fit_latency(sizes, 5_000 + sizes // 10)
    >>> round(fit.latency_ns), round(fit.bytes_per_s)
    (5000, 10000000000)
    """
    distinct = np.unique(byte_counts)
    if len(distinct) < FEWEST_SIZES or distinct[-1] < LEAST_SPREAD * distinct[0]:
        return None
    sizes, samples = _by_size(byte_counts, times_ns)
    latency, ns_per_byte = _line(sizes, np.array([[np.median(times)] for times in samples]))
    generator = np.random.default_rng(0)
    latencies, slopes = _line(sizes, np.stack([_resampled_medians(times, generator) for times in samples]))
    low, high = np.percentile(latencies, _CONFIDENCE)
    slow, fast = _bytes_per_s(np.percentile(slopes, _CONFIDENCE[::-1]))
    return LatencyFit(
        latency_ns=float(latency[0]),
        latency_low_ns=float(low),
        latency_high_ns=float(high),
        bytes_per_s=float(_bytes_per_s(ns_per_byte)[0]),
        low_bytes_per_s=float(slow),
        high_bytes_per_s=float(fast),
    )


def _by_size(
    byte_counts: npt.NDArray[np.int64], times_ns: npt.NDArray[np.int64]
) -> tuple[_Floats, list[npt.NDArray[np.int64]]]:
    """Return the distinct sizes and the times of each size; if there are many sizes, group neighbouring ones."""
    order = np.argsort(byte_counts, kind="stable")
    ordered, times = byte_counts[order], times_ns[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    if len(starts) > _MOST_SIZES:
        starts = starts[np.linspace(0, len(starts), _MOST_SIZES, endpoint=False).astype(np.int64)]
    sizes = [float(np.mean(part)) for part in np.split(ordered, starts[1:])]
    return np.array(sizes), [_thinned(part) for part in np.split(times, starts[1:])]


def _thinned(times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return every n-th of the times, with n just large enough that at most `_MOST_SAMPLES` remain."""
    return times[:: -(-len(times) // _MOST_SAMPLES)]


def _resampled_medians(times: npt.NDArray[np.int64], generator: np.random.Generator) -> _Floats:
    medians: _Floats = np.median(generator.choice(times, (_RESAMPLES, len(times))), axis=1)
    return medians


def _line(sizes: _Floats, times: _Floats) -> tuple[_Floats, _Floats]:
    """Fit a line to each column of `times` [size, sample]; return the latency and the ns per byte of each line."""
    one, other = np.triu_indices(len(sizes), k=1)
    slopes = np.median((times[other] - times[one]) / (sizes[other] - sizes[one])[:, None], axis=0)
    return np.median(times - slopes * sizes[:, None], axis=0), slopes


def _bytes_per_s(ns_per_byte: _Floats) -> _Floats:
    return np.where(ns_per_byte > 0, 1e9 / np.where(ns_per_byte > 0, ns_per_byte, 1), np.inf)
