"""Constants, at HTA's import path."""

from __future__ import annotations

from hta.configs.parser_config import MAX_EVENT_DURATION_US

__all__ = ["CUDA_MAX_LAUNCH_QUEUE_PER_STREAM", "MAX_EVENT_DURATION_US"]

CUDA_MAX_LAUNCH_QUEUE_PER_STREAM = 1024
"""The number of launches that a stream queues before the next call blocks; 1,022 to 1,024 were observed.

https://forums.developer.nvidia.com/t/maximum-number-of-operations-in-a-stream/255260
"""
