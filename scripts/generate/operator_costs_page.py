"""Generates `docs/reference/operator_costs.md`, which lists the cost rules of operators and the known devices."""

from __future__ import annotations

import inspect
from functools import partial

from markdown_table import table

from holotrace.enrich.device.peaks import DEVICES, PRECISIONS, Device
from holotrace.enrich.operator_costs.rules import RULES, Rule

_BEGINNING = """\
# Costs of operators and peaks of devices

[Roofline](analyses/roofline.md) takes the operations and bytes of each operator from these rules, and peak rates from the table of devices.
You can add [your own rules and devices](analyses/roofline.md#your-own-rules-and-devices).

## Rules

An operator's costs come from the first rule whose pattern matches the operator's whole name. E is the number of elements of the result or,
in reductions, of the input. Names such as `product` and `flash` are functions in `holotrace.enrich.operator_costs.formulas`. The options of a rule's
function are in parentheses; most of them give the position of an input among the operator's arguments, counted from 0.

"""

_DEVICES = """
## Devices

The table gives the dense peaks of one device in TFLOP/s (int8: TOP/s), without sparsity; a dash means unknown or not supported. MI250 and MI250X have two
dies that the profiler shows as two devices; the figures are those of one die. Sizes of caches are in 10^6 bytes: 50 MiB are 52.4 MB. Figures
listed under "not confirmed" have no public source; all others agree with a public source. Check the figures that matter to you against the data sheet. The float16 and float8 rates of GeForce cards are those with float16 accumulation.

"""


def operator_costs_page() -> str:
    """Return the text of the page."""
    rules = table(("operators", "formula", "source"), map(_rule, RULES))
    headings = (
        "device",
        "memory (GB/s)",
        "cache (MB)",
        "float32, ordinary cores",
        *PRECISIONS,
        "not confirmed",
        "source",
    )
    return _BEGINNING + rules + _DEVICES + table(headings, map(_device, DEVICES))


def _rule(rule: Rule) -> tuple[str, str, str]:
    return (
        f"`{rule.pattern}`",
        _formula(rule),
        f"[link]({rule.source})" if rule.source.startswith("http") else rule.source,
    )


def _formula(rule: Rule) -> str:
    formula = rule.formula
    function = formula.func if isinstance(formula, partial) else formula
    first = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
    options = (
        ", ".join(f"{name}={value}" for name, value in formula.keywords.items()) if isinstance(formula, partial) else ""
    )
    return f"{first} ({options})" if options else first


def _device(device: Device) -> tuple[str, ...]:
    rates = dict(device.matrix_tflops)
    figures = (device.bandwidth_gb_per_s, device.cache_megabytes, device.vector_tflops[0])
    matrix = (f"{rates[precision]:,g}" if precision in rates else "-" for precision in PRECISIONS)
    unconfirmed = ", ".join(device.unconfirmed) or "-"
    source = f"[{device.date}]({device.url})"
    return f"`{device.pattern}`", *(f"{figure:,g}" for figure in figures), *matrix, unconfirmed, source
