"""Roofline: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Roofline",
    question="How far is each operator from the limits of the device?",
    section="Work",
    definitions=(
        (
            "operations, bytes",
            "of one call, computed from the shapes of its inputs as if the call accessed every tensor once",
        ),
        (
            "lower bound",
            "for each call, the longer of operations / peak rate and bytes / bandwidth; summed over all calls",
        ),
        (
            "above the bound",
            "time of the operator's work minus its lower bound: the time that a perfect kernel would save",
        ),
        ("bound by", "compute or memory, whichever of the two times in the lower bound is longer"),
        ("known", "share of the time, excluding communication, in operators whose operations or bytes are known"),
        (
            "MFU, HFU",
            "share of a step that its matrix products would take at peak rate; HFU includes recomputation, MFU does not",
        ),
        ("matrix work", "work that tensor or matrix cores could do; vector work and copies cannot use these cores"),
    ),
    options=(
        Option(
            "device",
            "Use the peak rates of this device, for example if the file does not name the device. Give its full name, such as `NVIDIA H100 PCIe`.",
            metavar="NAME",
        ),
    ),
)
