"""The symbol table, at HTA's import path."""

from __future__ import annotations

from hta.facade.trace.names import shorten_name
from hta.facade.trace.patterns import (
    CPU_EVENTS_CATEGORY_PATTERN,
    KERNEL_CATEGORY_PATTERN,
    KERNEL_LAUNCH_CATEGORY_PATTERN,
    GroupingPattern,
    MemoryKernelGroupingPattern,
    ProfilerStepGroupingPattern,
)
from hta.facade.trace.symbols import TraceSymbolTable, decode_symbol_id_to_symbol_name

__all__ = [
    "CPU_EVENTS_CATEGORY_PATTERN",
    "KERNEL_CATEGORY_PATTERN",
    "KERNEL_LAUNCH_CATEGORY_PATTERN",
    "GroupingPattern",
    "MemoryKernelGroupingPattern",
    "ProfilerStepGroupingPattern",
    "TraceSymbolTable",
    "decode_symbol_id_to_symbol_name",
    "shorten_name",
]
