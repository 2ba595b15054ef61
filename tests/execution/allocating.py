"""A function that allocates memory in a worker process."""

from __future__ import annotations

import resource

import numpy as np


def faults_of_an_array(byte_count: int) -> int:
    """Return how many page faults an array of ones causes; the array is freed afterwards."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(byte_count, np.int8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
