"""Inference: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Inference",
    question="What does each step of serving spend its time on?",
    section="Work",
    has_input="has_inference_steps",
    definitions=(
        ("step", "one pass of the engine: prefill reads prompts, decode adds a token to each request, mixed does both"),
        (
            "step time",
            "begins once its range has begun and all earlier work has ended; ends with the range or its last work",
        ),
        (
            "compute-bound, memory-bound",
            "time of kernels that are limited by arithmetic or by memory traffic, at the device's peak rates",
        ),
        ("bound unknown", "kernels run whose operations, bytes or device are unknown"),
        ("waits for launch", "nothing runs, but the host has begun to launch work"),
        ("waits for host", "nothing runs, and the host has not begun to launch anything"),
        ("exposed", "communication runs, and no computation or copy"),
        ("bound by", "the largest of these parts; unknown if time of unknown cause could make another one larger"),
        (
            "steady",
            "all steps except unusual ones at the beginning (warm-up, growing batch) and incomplete ones at the end (cut off)",
        ),
        (
            "time per output token",
            "time of the steps for each token that they return; between tokens: how long a request waits for the next",
        ),
    ),
    options=(
        Option(
            "patterns",
            "Regular expression for whole names of steps, such as `my_(?P<kind>prefill|decode)_(?P<requests>\\d+)`. May be repeated.",
            kind=list[str],
            flag="--pattern",
            metavar="REGEX",
        ),
        Option(
            "device",
            "Take the peaks of this device, by its full name such as `NVIDIA H100 PCIe`, if the file does not name a device.",
            metavar="NAME",
        ),
    ),
)
