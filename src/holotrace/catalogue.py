"""The questions that holotrace answers, in reading order.

The command line, the report and the pages loop over the lists in this module. Each question is a folder in
`holotrace/analyses`, and its name is used everywhere: `holotrace.idle_time` computes the answer,
`holotrace.figures.plot_idle_time` draws it, `holotrace idle-time` prints it, and `reference/analyses/idle_time.md`
explains it.
"""

from __future__ import annotations

from importlib import import_module

from holotrace.questions.question import Analysis


def _questions(*names: str) -> tuple[Analysis, ...]:
    return tuple(import_module(f"holotrace.analyses.{name}.question").QUESTION for name in names)


ANALYSES = _questions(
    "diagnosis",
    "temporal_breakdown",
    "kernel_breakdown",
    "communication_overlap",
    "idle_time",
    "critical_path",
    "step_time",
    "gpu_summary",
    "kernels",
    "roofline",
    "inference",
    "launch_statistics",
    "queue_length",
    "memory_bandwidth",
    "operators",
    "modules",
    "source_lines",
    "compiled_regions",
    "operator_kernels",
    "kernel_sequences",
    "user_annotations",
    "stragglers",
    "wait_causes",
    "distributed",
    "collectives",
    "parallelism",
    "straggler_cost",
    "cupti_counters",
    "memory_timeline",
    "operator_memory",
    "trust",
)
"""Questions about one trace, the most general first."""

COMPARISONS = _questions(
    "compare_traces",
    "compare_operators",
)
"""Questions about two traces."""


def analysis(name: str) -> Analysis:
    """Return the question with this name, whether it is about one trace or two; raise KeyError if it does not exist."""
    return {question.name: question for question in (*ANALYSES, *COMPARISONS)}[name]
