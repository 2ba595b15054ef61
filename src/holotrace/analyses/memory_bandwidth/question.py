"""Memory bandwidth: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.question import Analysis
from holotrace.schema import EventKind

QUESTION = Analysis(
    __package__,
    title="Memory bandwidth",
    question="How fast does data move to, from and within the GPUs?",
    section="Devices",
    needs=(EventKind.GPU_MEMCPY, EventKind.GPU_MEMSET),
    definitions=(
        ("HtoD, DtoH, DtoD, PtoP", "from host to device, from device to host, within a device, and between devices"),
        ("copying for", "time in which at least one copy of this kind runs"),
        ("bandwidth", "sum over all copies that run at the same time; time without copies is left out"),
    ),
)
