"""Tests of recognising one kernel under different names."""

from __future__ import annotations

import pytest

from holotrace.enrich.graph_attribution.kernel_names import function_name, numbered_names


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("void at::native::(anonymous namespace)::copy_kernel<float, 4>(int)", "copy_kernel"),
        ("_ZN2at6native12_GLOBAL__N_111copy_kernelIfLi4EEEvi", "copy_kernel"),
        ("_Z4gemmPfS_", "gemm"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("Cijk_Alik_Bljk_BBS_BH", "Cijk_Alik_Bljk_BBS_BH"),
        ("_Z", "_Z"),
        ("_ZN99999x", "9x"),
        ("", ""),
    ],
)
def test_mangled_and_demangled_names_have_one_function(name, function):
    """Mangled and demangled names map to the same function; a damaged name raises no error."""
    assert function_name(name) == function


def test_equal_names_have_equal_numbers():
    """All copies match each other; f<1> does not match f<2>, although both are the function f.

    f<1> would match the captured f<2> only if the replay did not contain f<2>.
    """
    replayed, captured = numbered_names(
        ["void a::f<1>()", "void a::f<2>()", "Memcpy DtoD (Device -> Device)", "_ZN1b1gEv", "__amd_rocclr_fillBuffer"],
        ["void a::f<2>()", None, "Memcpy", "void b::g()", "Memset"],
    )

    assert replayed[1:].tolist() == [captured[0], captured[2], captured[3], captured[4]]
    assert replayed[0] not in captured
    assert captured[1] == -1
