"""What scripts written for HTA import is here under the same name, or the reason why not stands here and in the docs.

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
    r"hta\.analyzers\.critical_path_analysis\.CPGraph\.(__init__|bound_by|BLOCKING_SYNC_CALLS)": "an analysis makes the graph",
    r"hta\.analyzers\.critical_path_analysis\.CPGraph\.((in_|out_)?degree|(in|out)_edges|adj|name|pred|succ)": "networkx's: "
    "`to_networkx()` has them",
    r"hta\.analyzers\.critical_path_analysis\.(CUDA_RUNTIME_EVENTS|KERNEL_KERNEL_DELAY_THRESHOLD_US)": "no list of calls "
    "and no threshold decides here",
    r"hta\.analyzers\.critical_path_analysis\.(DEFAULT_EDGE_TYPES_IN_VIZ|PROFILE_TIMES|timeit)": "inner parts of HTA's method",
    r"hta\.configs\.env_options\..*": "environment variables are read where they count, at each call",
    r"hta\.analyzers\.(breakdown|communication|cuda_kernel|straggler)_analysis\..*": "the methods of TraceAnalysis",
    r"hta\.analyzers\.trace_counters\.TraceCounters": "the methods of TraceAnalysis",
    r"hta\.analyzers\.cupti_counter_analysis\.CuptiCounterAnalysis": "the methods of TraceAnalysis",
    r"hta\.analyzers\.straggler\.extract_iteration_info": "a step of the method, which is whole here",
    r"hta\.common\.call_stack\..*": "HTA has two call stacks; the other one is here",
    r"hta\.common\.trace_call_stack\..*": "the stacks are columns of frames, without objects for each thread",
    r"hta\.common\.trace_call_graph\.CallGraph\.(from_dataframe|get_call_stacks|get_csg_of_node)": "likewise",
    r"hta\.common\.constants\..*": "numbers that nothing here needs",
    r"hta\.common\.execution_trace\.(EXECUTION_TRACE_SUPPORTED_EVENTS|IMPORT_EXECUTION_TRACE_SUCCESSFULLY)": "internal",
    r"hta\.common\.timeline\.DefaultTTL": "internal",
    r"hta\.common\.trace\.(add_fwd_bwd_links|add_iteration|transform_correlation_to_index)": "frames come complete",
    r"hta\.common\.trace_parser\..*": "there is one parser; parse_trace_file and open_trace read files",
    r"hta\.common\.trace_symbol_table\.(MAX_NUM_PROCESSES_SMALL|TraceSymbolTable\.NULL)": "internal",
    r"hta\.common\.types\.(Communicate|Compute)KernelGroupingPattern": "rules decide, not one pattern",
    r"hta\.common\.types\.(MEMCPY_TYPE_TO_STR|MemcpyType|common_grouping_patterns)": "internal",
    r"hta\.configs\.config\..*": "there is no configuration file, and logging is left to the program",
    r"hta\.configs\.default_event_args\..*": "the list of args is Python, not YAML",
    r"hta\.configs\.default_values\.(DEFAULT_CONFIG_FILENAME|DF_SYMBOL_COLUMNS|IS_DEBUG_ENABLED|MAX_.*)": "internal",
    r"hta\.configs\.event_args_yaml_parser\..*": "the list of args is Python, not YAML",
    r"hta\.configs\.parser_config\.(MAX_EVENT_DURATION_US|parse_event_args_yaml)": "nothing reads them in HTA either",
    r"hta\.memory_analysis\.(Category|colorscheme)": "internal; `CATEGORIES` lists the categories",
    r"hta\.trace_analysis\.(CUDA_MAX_LAUNCH_QUEUE_PER_STREAM|DEFAULT_TRACE_DIR)": "defaults of arguments",
    r"hta\.utils\.test_utils\..*": "for HTA's own tests; hta.testing builds traces",
    r"hta\.utils\.utils\.(Communicate|Compute|Memory)KernelGroupingPattern": "as in hta.common.types",
    r"hta\.utils\.utils\.(get_mp_pool_size|is_computer_kernel|normalize_gpu_stream_numbers)": "internal",
    r"hta\.utils\.validate_trace\.get_expected_arguments": "internal",
}
"""Names that are not here, and what there is instead."""


def expected() -> list[tuple[str, str, dict[str, Any]]]:
    """List (module, name within it, what is known of it), methods and attributes of classes apart."""
    found = []
    for module, names in NAMES.items():
        for name, about in names.items():
            found.append((module, name, about))
            found += [
                (module, f"{name}.{method}", {"parameters": parameters})
                for method, parameters in about.get("methods", {}).items()
            ]
            found += [(module, f"{name}.{each}", {}) for each in about.get("attributes", ())]
    return found


def reason(full_name: str) -> str | None:
    """Return why a name is not here; None where it has to be."""
    reasons = [why for pattern, why in ABSENT.items() if re.match(rf"{pattern}(\.|$)", full_name)]
    return reasons[0] if reasons else None


PRESENT = [entry for entry in expected() if reason(f"{entry[0]}.{entry[1]}") is None]


def found(module: str, name: str) -> Any:
    """Return what a name stands for here."""
    value: Any = import_module(module)
    for part in name.split("."):
        is_field = part in getattr(value, "__annotations__", {}) or part in getattr(value, "__dataclass_fields__", {})
        value = getattr(value, part, None) if is_field else getattr(value, part)
    return value


def is_here(module: str, name: str) -> bool:
    """Say whether a name can be imported here."""
    try:
        found(module, name)
    except (ImportError, AttributeError):
        return False
    return True


def test_every_name_is_here() -> None:
    """Each module can be imported, and has the names that are not listed as absent."""
    assert [f"{module}.{name}" for module, name, _ in PRESENT if not is_here(module, name)] == []


@pytest.mark.parametrize(
    ("module", "name", "parameters"),
    [(module, name, about["parameters"]) for module, name, about in PRESENT if "parameters" in about],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_call_of_an_old_script_means_the_same(module, name, parameters) -> None:
    """The first parameters are HTA's, in HTA's order, and what was optional is optional with the same default."""
    ours = list(inspect.signature(found(module, name)).parameters.values())
    theirs = [(each, None) if isinstance(each, str) else tuple(each) for each in parameters]
    assert [each.name for each in ours[: len(theirs)]] == [each[0] for each in theirs]
    for here, (_, default) in zip(ours, theirs, strict=False):
        if default is not None:
            assert repr(here.default) == default or (default == "..." and here.default is not inspect.Parameter.empty)
    assert all(each.default is not inspect.Parameter.empty or each.kind in VARIADIC for each in ours[len(theirs) :])


VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@pytest.mark.parametrize(
    ("module", "name", "members"),
    [(module, name, about["members"]) for module, name, about in PRESENT if "members" in about],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_enumeration_has_htas_members(module, name, members) -> None:
    """By name and value; there may be more."""
    enumeration = found(module, name)
    assert issubclass(enumeration, Enum)
    assert {each.name: each.value for each in enumeration if each.name in members} == members


def test_what_is_absent_is_absent() -> None:
    """A name that came to be here leaves the lists; a pattern that matches nothing is gone."""
    full_names = [f"{module}.{name}" for module, name, _ in expected()]
    unused = [pattern for pattern in ABSENT if not any(re.match(rf"{pattern}(\.|$)", name) for name in full_names)]
    assert unused == []
    whole = [(module, name) for module, name, _ in expected() if "." not in name and reason(f"{module}.{name}")]
    assert [f"{module}.{name}" for module, name in whole if is_here(module, name)] == []


def test_the_docs_name_the_modules_that_are_absent() -> None:
    """docs/reference/from_hta.md says what to use instead."""
    page = (ROOT / "docs" / "reference" / "from_hta.md").read_text(encoding="utf-8")
    modules = {module for module, names in NAMES.items() if all(reason(f"{module}.{name}") for name in names)}
    assert [module for module in sorted(modules) if f"`{module}`" not in page] == []
