"""Tests of the lower bounds of operators recorded on an H100.

The bounds assume that data comes from memory, so only operators whose data is in the cache run faster
than their bound.
"""

from __future__ import annotations

import polars as pl
import pytest

from device_jobs import recorded
from holotrace.analyses.roofline.compute import Roofline, roofline

CACHE_BYTES, BYTES_PER_S = 52.4e6, 3_352e9
"""The size of the last-level cache and the memory bandwidth of this GPU, from the table of devices."""

FASTER_THAN_MEMORY = {
    "copies": set(),
    "elementwise-unfused": {"aten::add", "aten::mul"},
    "experts": {"aten::add_", "aten::copy_", "aten::mul", "aten::pow"},
    "generation-llama": {"aten::mul"},
    "images": {"aten::clamp_min", "aten::threshold_backward"},
    "operators": {"aten::add", "aten::copy_"},
    "prefetching": set(),
    "training": {"aten::copy_"},
    "training-checkpointed": {"aten::copy_"},
    "training-full_precision": {"aten::add"},
    "training-tf32": {"aten::add"},
    "two_ranks-pipeline": set(),
    "two_ranks-sharded": {"aten::copy_", "aten::split_with_sizes_copy"},
    "two_ranks-tensor_parallel": {"aten::add_", "aten::gelu", "aten::mul"},
}
"""For each recording, the operators that move data faster than the memory can, because the data is in the cache."""


@pytest.fixture(params=sorted(FASTER_THAN_MEMORY))
def recording(request) -> tuple[str, Roofline]:
    """Return the name of a recording and its roofline."""
    return request.param, roofline(recorded(request.param))


def test_only_the_cache_is_faster_than_a_lower_bound(recording) -> None:
    """If an operator takes less time than its lower bound, it is memory-bound, and cached data can explain this."""
    name, result = recording
    above = result.per_operator.filter(pl.col("floor_ns") > pl.col("busy_ns"))
    beyond_cache = pl.col("call_count") * (pl.col("bytes_moved") - 2 * CACHE_BYTES) / BYTES_PER_S * 1e9
    assert above.filter(beyond_cache > pl.col("busy_ns")).is_empty()
    assert set(above["bound"]) <= {"memory"}
    assert set(above["operator"]) == FASTER_THAN_MEMORY[name]


def test_no_share_above_one_is_silent(recording) -> None:
    """A row whose lower bound exceeds its time has a `contradiction`; one finding per rank counts these rows."""
    _, result = recording
    is_above = result.per_operator["floor_ns"] > result.per_operator["busy_ns"]
    assert is_above.fill_null(value=False).equals(result.per_operator["contradiction"].is_not_null())
    of_rank = result.per_operator.filter(pl.col("contradiction").is_not_null()).group_by("rank").len()
    for rank, count in of_rank.iter_rows():
        assert any(text.startswith(f"rank {rank}: {count} operator") for text in result.findings)


def test_a_tensor_parallel_rank_computes_its_part_of_a_product() -> None:
    """Two ranks divide 4,096 columns, so each matrix product has 2,048 columns, not the 4,096 of the whole DTensor."""
    products = roofline(recorded("two_ranks-tensor_parallel")).per_operator.filter(operator="aten::mm")
    assert not products["input_shape"].str.contains("4096").any()
    assert products["input_shape"].str.contains("2048").all()
