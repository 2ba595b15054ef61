"""Compares kernel names across recordings: names may be mangled, and names of copies may differ."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

COPY, MEMSET = "\x1fcopy", "\x1fmemset"
"""`COPY` replaces the names of all copies, and `MEMSET` those of all memsets; no kernel has either name."""

_COPIES = re.compile(r"^(Memcpy|CopyDevice|CopyHost|__amd_rocclr_copy)", re.IGNORECASE)
_MEMSETS = re.compile(r"^(Memset|__amd_rocclr_fill)", re.IGNORECASE)
"""In graphs, ROCm runs copies and memsets as kernels."""

_ARGUMENTS = re.compile(r"[<(].*$", re.DOTALL)
_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|\(anonymous class\)::")


def plain_name(name: str) -> str:
    """Return `COPY` for a copy, `MEMSET` for a memset, and otherwise the name without the suffix `.kd`.

    >>> plain_name("Memcpy DtoD (Device -> Device)") == COPY
    True
    """
    if _COPIES.match(name):
        return COPY
    return MEMSET if _MEMSETS.match(name) else name.removesuffix(".kd")


def function_name(name: str) -> str:
    """Return the name of the function without namespaces, template arguments and parameters.

    >>> function_name("void at::native::(anonymous namespace)::copy_kernel<float, 4>(int)")
    'copy_kernel'
    >>> function_name("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bEEvPT0_")
    'add_rmsnorm_quant_kernel'
    """
    if name.startswith("_Z"):
        return _mangled_function(name)
    return _ARGUMENTS.sub("", _ANONYMOUS.sub("", name)).strip().split("::")[-1].split(" ")[-1]


def _mangled_function(name: str) -> str:
    """Return the function's name from a mangled name, in which each namespace and name is preceded by its length.

    https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling
    """
    at = re.compile(r"_Z(?:L|N[rVK]*(?:St)?)?").match(name)
    position, last = at.end() if at else len(name), name
    while length := re.compile(r"L?(\d{1,4})").match(name, position):
        position = length.end() + int(length[1])
        last = name[length.end() : position]
    return last


def numbered_names(first: list[str | None], second: list[str | None]) -> tuple[npt.NDArray[np.int64], ...]:
    """Number all names in both lists; names that may belong to the same kernel get equal numbers, and None gets -1.

    Names that occur in only one of the lists are compared by function name alone, because recordings may write
    namespaces, arguments and parameters differently.
    """
    plain = [[None if name is None else plain_name(name) for name in names] for names in (first, second)]
    shared = set(plain[0]) & set(plain[1])
    keys = [
        [name if name is None or name in shared else "\x1f" + function_name(name) for name in names] for names in plain
    ]
    number = {key: place for place, key in enumerate(dict.fromkeys(keys[0] + keys[1])) if key is not None}
    return tuple(np.array([-1 if key is None else number[key] for key in side], np.int64) for side in keys)
