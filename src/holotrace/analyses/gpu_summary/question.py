"""GPU summary: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import COMPAT, Option
from holotrace.questions.question import Analysis
from holotrace.schema import DEVICE_WORK_KINDS

QUESTION = Analysis(
    __package__,
    title="GPU summary",
    question="How well is each GPU used?",
    section="Devices",
    needs=DEVICE_WORK_KINDS,
    definitions=(
        ("utilization", "the share of the step time in which a kernel runs"),
        ("est. SM efficiency", "blocks per SM of the running kernels, capped at 1, averaged over the step time"),
        (
            "est. occupancy",
            "threads on an SM as a share of the SM's maximum, averaged over the kernels, weighted by duration",
        ),
        (
            "known for",
            "share of the kernel time in kernels with known launch shapes; their mean is assumed for all others",
        ),
        ("on tensor cores", "share of the kernel time in kernels that, by their names, use tensor or matrix cores"),
    ),
    options=(
        Option("parts", "Divide the time series into this many intervals.", kind=int, default=100, minimum=1),
        COMPAT,
    ),
)
