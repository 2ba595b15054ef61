"""Generates `docs/reference/operator_costs.md`, which lists the cost rules of operators and the known devices."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial

from markdown_table import table

from holotrace.enrich.device.peaks import DEVICES, PRECISIONS, Device
from holotrace.enrich.operator_costs.rules import RULES, Rule

_BEGINNING = """\
# Costs of operators and peaks of devices

[Roofline](analyses/roofline.md) computes the operations and bytes of each operator with these rules, and takes peak rates from the table of devices.
You can add [your own rules and devices](analyses/roofline.md#your-own-rules-and-devices).

## Rules

An operator's costs come from the first rule whose pattern matches the operator's whole name. E is the number of elements of the result or,
in reductions, of the input. A matrix product multiplies `[M, K] x [K, N]`, B times if it is batched. In attention, B is the batch size, H the number of
heads, Nq and Nk the numbers of queries and keys, d the width of a head in queries and keys, and dv its width in values. Names such as `product` and
`flash` are [formulas that several rules use](#shared-formulas). The options of a rule's formula are in parentheses; most of them give the position of an
input among the operator's arguments, counted from 0.

"""

_SHARED = """
## Shared formulas

Other formulas refer to the following formulas by name. The names are functions in `holotrace.enrich.operator_costs.formulas`.

"""

_DEVICES = """
## Devices

The table gives the dense peaks of one device in TFLOP/s (int8: TOP/s), without sparsity; a dash means unknown or not supported. MI250 and MI250X have two
dies, which the profiler shows as two devices; their values are for one die. Cache sizes are in MB (10^6 bytes): a cache of 50 MiB is listed as 52.4. Values
listed under "not confirmed" have no public source; all others agree with a public source. Check the values that you rely on against the data sheet. The float16 and float8 rates of GeForce cards assume float16 accumulation.

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
    shared = table(("name", "formula"), _shared_formulas())
    return _BEGINNING + rules + _SHARED + shared + _DEVICES + table(headings, map(_device, DEVICES))


def _shared_formulas() -> list[tuple[str, str]]:
    """Return the name and the formula of each function that other formulas use, sorted by name."""
    shared: dict[str, str] = {}
    functions = [_function(rule) for rule in RULES]
    while functions:
        function = functions.pop()
        for name in re.findall(r"`(\w+)`", _description(function)):
            named = vars(inspect.getmodule(function)).get(name)
            if inspect.isfunction(named) and name not in shared:
                shared[name] = _description(named)
                functions.append(named)
    return [(f"`{name}`", text) for name, text in sorted(shared.items())]


def _rule(rule: Rule) -> tuple[str, str, str]:
    return (
        f"`{rule.pattern}`",
        _formula(rule),
        f"[link]({rule.source})" if rule.source.startswith("http") else rule.source,
    )


def _formula(rule: Rule) -> str:
    formula = rule.formula
    first = _description(_function(rule), paragraphs=1)
    options = (
        ", ".join(f"{name}={value}" for name, value in formula.keywords.items()) if isinstance(formula, partial) else ""
    )
    return f"{first} ({options})" if options else first


def _function(rule: Rule) -> Callable[..., object]:
    return rule.formula.func if isinstance(rule.formula, partial) else rule.formula


def _description(function: Callable[..., object], paragraphs: int | None = None) -> str:
    """Return a function's docstring, or only its first `paragraphs` paragraphs, in one line."""
    return " ".join(" ".join((inspect.getdoc(function) or "").split("\n\n")[:paragraphs]).split())


def _device(device: Device) -> tuple[str, ...]:
    rates = dict(device.matrix_tflops)
    figures = (device.bandwidth_gb_per_s, device.cache_megabytes, device.vector_tflops[0])
    matrix = (f"{rates[precision]:,g}" if precision in rates else "-" for precision in PRECISIONS)
    unconfirmed = ", ".join(device.unconfirmed) or "-"
    source = f"[{device.date}]({device.url})"
    return f"`{device.pattern}`", *(f"{figure:,g}" for figure in figures), *matrix, unconfirmed, source
