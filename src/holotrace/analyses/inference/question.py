"""Inference: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Inference",
    question="What do the steps of an inference server spend their time on?",
    section="Work",
    has_input="has_inference_steps",
    definitions=(
        ("step", "one pass of the engine: prefill reads prompts, decode adds a token to each request, mixed does both"),
        (
            "step time",
            "from start to end of the step: the step starts when its range has begun and all earlier work has ended, and it ends when its range and its last work have ended",
        ),
        (
            "compute-bound, memory-bound",
            "time of kernels that would be limited by arithmetic or by memory traffic if the device worked at its peak rates",
        ),
        ("bound unknown", "time of kernels whose FLOPs, bytes or device are unknown"),
        ("waits for launch", "nothing runs, but the host has begun to launch work"),
        ("waits for host", "nothing runs, and the host has not begun to launch work"),
        ("exposed", "communication runs, but no computation or copy"),
        (
            "bound by",
            "the largest of the parts above; unknown if time with an unknown cause could make a different part the largest",
        ),
        (
            "steady",
            "all steps except unusual steps at the beginning (warm-up, growing batch) and incomplete steps at the end (cut off)",
        ),
        (
            "time per output token",
            "time of the steps and of the gaps before them, divided by the number of returned tokens; in contrast, the time between tokens is how long one request waits for its next token",
        ),
    ),
    options=(
        Option(
            "patterns",
            "Regular expression that matches whole step names, such as `my_(?P<kind>prefill|decode)_(?P<requests>\\d+)`. May be repeated.",
            kind=list[str],
            flag="--pattern",
            metavar="REGEX",
        ),
        Option(
            "device",
            "Use the peak rates of this device, for example if the file does not name the device. Give its full name, such as `NVIDIA H100 PCIe`.",
            metavar="NAME",
        ),
    ),
)
