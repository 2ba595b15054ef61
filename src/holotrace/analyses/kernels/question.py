"""Kernels: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import COMPAT
from holotrace.questions.question import Analysis
from holotrace.schema import EventKind

QUESTION = Analysis(
    __package__,
    title="Kernels",
    question="Which kernels take the time, and do they use tensor cores?",
    section="Work",
    needs=(EventKind.KERNEL,),
    definitions=(
        ("tensor cores", "whether the kernel's name shows that it uses tensor or matrix cores"),
        ("eligible", "whether tensor cores could do the work of the operator"),
        (
            "blocks per SM",
            "blocks of a launch divided by the number of the device's SMs; mean over the calls, weighted by duration",
        ),
        (
            "est. occupancy",
            "threads on an SM as a share of the SM's maximum; mean over the calls, weighted by duration",
        ),
        (
            "known for",
            "share of the kernel's time in calls with a known launch shape; the means include only these calls",
        ),
    ),
    options=(COMPAT,),
)
