"""The weights by which hardware counters add up to floating-point operations."""

from __future__ import annotations

from hta.analyses.cupti_counters import FLOP_OF_COUNTER

CUDA_SASS_INSTRUCTION_COUNTER_FLOPS: dict[str, float] = dict(FLOP_OF_COUNTER)
"""Floating-point operations of one count of each counter."""
