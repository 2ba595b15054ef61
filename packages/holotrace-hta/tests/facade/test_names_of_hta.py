"""Every public name of HTA exists in holotrace-hta, or `ABSENT` and the docs say why it does not.

`hta_names.json` lists the public names of HTA 0.6.1 by module, with the parameters of functions and methods and the
members of enumerations, as Python's `inspect` shows them.
"""

from __future__ import annotations

import inspect
import json
import re
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pages import ROOT

NAMES: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "hta_names.json").read_text(encoding="utf-8")
)

ABSENT = {
    r"hta\.analyzers\.critical_path_analysis\.CPGraph\.(__init__|bound_by|BLOCKING_SYNC_CALLS)": "an analysis creates the graph",
    r"hta\.analyzers\.critical_path_analysis\.(CUDA_RUNTIME_EVENTS|KERNEL_KERNEL_DELAY_THRESHOLD_US)": "the edges "
    "depend neither on a list of calls nor on a threshold",
    r"hta\.analyzers\.critical_path_analysis\.(DEFAULT_EDGE_TYPES_IN_VIZ|PROFILE_TIMES|timeit)": "internal",
    r"hta\.common\.execution_trace\.(EXECUTION_TRACE_SUPPORTED_EVENTS|IMPORT_EXECUTION_TRACE_SUCCESSFULLY)": "internal",
    r"hta\.common\.timeline\.DefaultTTL": "internal",
    r"hta\.common\.trace_symbol_table\.(MAX_NUM_PROCESSES_SMALL|TraceSymbolTable\.NULL)": "internal",
    r"hta\.configs\.default_event_args\..*": "the list of args is Python, not YAML",
    r"hta\.configs\.default_values\.(DF_SYMBOL_COLUMNS|IS_DEBUG_ENABLED|MAX_.*)": "internal",
    r"hta\.configs\.parser_config\.parse_event_args_yaml": "HTA itself never calls it",
    r"hta\.utils\.test_utils\..*": "only HTA's own tests use it; to build traces, use holotrace.testing",
    r"hta\.utils\.validate_trace\.get_expected_arguments": "internal",
    r"hta\.analyzers\.critical_path_analysis\.CPGraph\.(adj|degree|(in|out)_degree|(in|out)_edges|name|pred|succ)": "attributes "
    "of the networkx graph, which is created on first use",
    r"hta\.analyzers\.cuda_kernel_analysis\.CudaKernelAnalysis\.visualize_.*": "visualize=True shows the figures",
    r"hta\.common\.call_stack\.(Event|compare_events)": "all events are sorted at once",
    r"hta\.common\.trace_call_stack\.(OPEN_END|CLOSE_END|is_events_sorted|sort_events)": "all events are sorted at once",
    r"hta\.common\.trace_call_stack\.CallStackGraph\.update_parent_of_first_layer_nodes": "threads stay separate",
    r"hta\.common\.trace\.add_fwd_bwd_links": "the function works on HTA's unparsed events; "
    "holotrace.operator_kernels links forward and backward passes",
    r"hta\.common\.trace_parser\.(IJSON_INSTRS|round_down_time_stamps)": "times are never rounded",
    r"hta\.configs\.event_args_yaml_parser\.(ARGS_.*|DEFAULT_EVENT_ARGS_YAML|main)": "the list of args is Python, not YAML",
    r"hta\.memory_analysis\.colorscheme": "internal",
    r"hta\.utils\.utils\.get_mp_pool_size": "internal",
}
"""Patterns of names that this package lacks, and the reason for each."""


def expected() -> list[tuple[str, str, dict[str, Any]]]:
    """Return (module, name, signature or members) of HTA's names, with entries for methods and attributes."""
    expected_names = []
    for module, names in NAMES.items():
        for name, about in names.items():
            expected_names.append((module, name, about))
            expected_names += [
                (module, f"{name}.{method}", {"parameters": parameters})
                for method, parameters in about.get("methods", {}).items()
            ]
            expected_names += [(module, f"{name}.{attribute}", {}) for attribute in about.get("attributes", ())]
    return expected_names


def reason(full_name: str) -> str | None:
    """Return why a name is absent; None if it must exist."""
    reasons = [why for pattern, why in ABSENT.items() if re.match(rf"{pattern}(\.|$)", full_name)]
    return reasons[0] if reasons else None


PRESENT = [entry for entry in expected() if reason(f"{entry[0]}.{entry[1]}") is None]


def object_at(module: str, name: str) -> Any:
    """Return the object behind a name."""
    value: Any = import_module(module)
    for part in name.split("."):
        is_field = part in getattr(value, "__annotations__", {}) or part in getattr(value, "__dataclass_fields__", {})
        value = getattr(value, part, None) if is_field else getattr(value, part)
    return value


def is_here(module: str, name: str) -> bool:
    """Return whether a name can be imported."""
    try:
        object_at(module, name)
    except (ImportError, AttributeError):
        return False
    return True


def test_every_name_is_here() -> None:
    """Every HTA name that is not listed as absent can be imported."""
    assert [f"{module}.{name}" for module, name, _ in PRESENT if not is_here(module, name)] == []


@pytest.mark.parametrize(
    ("module", "name", "parameters"),
    [(module, name, about["parameters"]) for module, name, about in PRESENT if "parameters" in about],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_call_of_an_old_script_means_the_same(module, name, parameters) -> None:
    """Parameters start with HTA's, in HTA's order and with HTA's defaults; additional parameters are optional."""
    ours = list(inspect.signature(object_at(module, name)).parameters.values())
    theirs = [(parameter, None) if isinstance(parameter, str) else tuple(parameter) for parameter in parameters]
    assert [parameter.name for parameter in ours[: len(theirs)]] == [name for name, _ in theirs]
    for here, (_, default) in zip(ours, theirs, strict=False):
        if default is not None:
            assert repr(here.default) == default or (default == "..." and here.default is not inspect.Parameter.empty)
    further = ours[len(theirs) :]
    assert all(one.default is not inspect.Parameter.empty or one.kind in VARIADIC for one in further)


VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@pytest.mark.parametrize(
    ("module", "name", "members"),
    [(module, name, about["members"]) for module, name, about in PRESENT if "members" in about],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_enumeration_has_htas_members(module, name, members) -> None:
    """An enumeration has HTA's members with HTA's values, and may have more."""
    enumeration = object_at(module, name)
    assert issubclass(enumeration, Enum)
    assert {member.name: member.value for member in enumeration if member.name in members} == members


def test_absent_names_are_absent() -> None:
    """Names that match a pattern in `ABSENT` do not exist here, and every pattern matches a name of HTA."""
    full_names = [f"{module}.{name}" for module, name, _ in expected()]
    unused = [pattern for pattern in ABSENT if not any(re.match(rf"{pattern}(\.|$)", name) for name in full_names)]
    assert unused == []
    whole = [(module, name) for module, name, _ in expected() if "." not in name and reason(f"{module}.{name}")]
    assert [f"{module}.{name}" for module, name in whole if is_here(module, name)] == []


def test_the_docs_name_the_modules_that_are_absent() -> None:
    """docs/reference/from_hta.md mentions every HTA module that has no counterpart."""
    page = (ROOT / "docs" / "reference" / "from_hta.md").read_text(encoding="utf-8")
    modules = {module for module, names in NAMES.items() if all(reason(f"{module}.{name}") for name in names)}
    assert [module for module in sorted(modules) if f"`{module}`" not in page] == []
