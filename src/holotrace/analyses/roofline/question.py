"""Roofline: the question, the terms in its tables, and the options of its command."""

from __future__ import annotations

from holotrace.questions.options import Option
from holotrace.questions.question import Analysis

QUESTION = Analysis(
    __package__,
    title="Roofline",
    question="How far is each operator from what the device can do?",
    section="Work",
    definitions=(
        ("operations, bytes", "of one call, from the shapes of its inputs; every tensor is read or written once"),
        ("lower bound", "the longer of operations / peak and bytes / bandwidth, over all calls"),
        ("above the bound", "time of the operator's work minus its lower bound: what a perfect kernel would save"),
        ("bound by", "the longer part of the lower bound: compute, or memory"),
        ("known", "share of the time, not counting communication, in operators whose operations or bytes are known"),
        (
            "MFU, HFU",
            "share of a step that the products of the model, or all products, take at peak rate; HFU counts recomputation",
        ),
        ("matrix work", "tensor or matrix cores could do it; vector work and copies cannot use them"),
    ),
    options=(
        Option(
            "device",
            "Take the peaks of this device, by its full name such as `NVIDIA H100 PCIe`, if the file does not name a device.",
            metavar="NAME",
        ),
    ),
)
