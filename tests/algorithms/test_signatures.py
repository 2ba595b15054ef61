"""`signature` parses function names, both demangled and mangled."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holotrace.algorithms.signatures import Signature, demangled, function_name, signature
from work import count_calls

RMS_NORM = (
    "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::Half>::exists, void>::type "
    "vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*, long, float, int)"
)
RMS_NORM_LLVM = (
    "std::enable_if<(8 > 0) && vllm::_typeConvert<c10::Half>::exists, void>::type "
    "vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*, long)"
)
LAMBDA = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::neg_kernel_cuda(at::TensorIteratorBase&)::"
    "{lambda()#2}::operator()() const::{lambda(float)#1}, at::detail::Array<char*, 2> >(int, float)"
)
GEMM = (
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int>, "
    "(anonymous namespace)::Mainloop<(Mode)0>>>(cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int>>::Params)"
)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("relu", Signature((), "relu", None)),
        ("relu(float*)", Signature((), "relu", None)),
        (RMS_NORM, Signature(("vllm",), "fused_add_rms_norm_kernel", ("Half", "8"))),
        (RMS_NORM_LLVM, Signature(("vllm",), "fused_add_rms_norm_kernel", ("Half", "8"))),
        ("void (anonymous namespace)::f<g<int>>(h*)", Signature((), "f", ("g<int>",))),
        ("void <unnamed>::f<int>(int)", Signature((), "f", ("int",))),
        ("void a::f<true, (b::Mode)1>(float const*) [clone .kd]", Signature(("a",), "f", ("true", "(Mode)1"))),
        ("unsigned int const* a::f(int)", Signature(("a",), "f", None)),
        ("decltype (auto) a::f<int>(int)", None),
        ("decltype(g(h)) a::f<int>(int)", Signature(("a",), "f", ("int",))),
        ("float (*a::f<int>)(int)", None),
        ("void a::f<>()", Signature(("a",), "f", ("",))),
        ("void a::operator<< <int>(int)", Signature(("a",), "operator<<", ("int",))),
        ("a::Copy::operator()(int) const", Signature(("a",), "Copy", None)),
        ("a::f(int)::{lambda(float)#3}::operator()(float) const", Signature(("a", "f"), "f::lambda(float)#3", None)),
        ("a::f[abi:cxx11](int)", Signature(("a",), "f", None)),
        (
            LAMBDA,
            Signature(
                ("at", "native"),
                "vectorized_elementwise_kernel",
                ("4", "neg_kernel_cuda::lambda(float)#1", "Array<char*, 2>"),
            ),
        ),
        (GEMM, Signature(("cutlass",), "device_kernel", ("GemmUniversal<tuple<int, int>, Mainloop<(Mode)0>>",))),
        ("void f<void (*)(int), &a::b, 3ul>(int)", Signature((), "f", ("void (*)(int)", "&b", "3ul"))),
        ("_Z3addPfS_i", Signature((), "add", None)),
        ("_ZN2at6kernelIfLi4EEEvPT_", Signature(("at",), "kernel", ("float", "4"))),
        ("_ZN2at6kernelIfLi4EEEvPT_.kd", Signature(("at",), "kernel", ("float", "4"))),
        ("Memcpy HtoD (Pinned -> Device)", None),
        ("Memset (Device)", None),
        ("a::f<int>(int)::'lambda0'(float)::operator()(float) const", Signature(("a", "f"), "f<int>::lambda0", None)),
        ("typeinfo name for a::xpu::Kernel<4, a::Add<float>>", Signature(("a", "xpu"), "Kernel", ("4", "Add<float>"))),
        ("attn_fwd.kd", Signature((), "attn_fwd", None)),
        ("ProfilerStep#3", None),
        ("my two words", None),
        ("[bold]x[/bold]", None),
        ("x[1]", None),
        ("f<int>[2]", None),
        ("operator<", Signature((), "operator<", None)),
        ("", None),
        ("(", None),
        ("<<<", None),
        ("::", None),
    ],
)
def test_a_signature_is_read_by_its_grammar(name: str, read: Signature | None) -> None:
    """A signature may have return types, unnamed scopes, lambdas, operators and clones; other text returns None."""
    assert signature(name) == read


@pytest.mark.parametrize(
    ("name", "function"),
    [
        (RMS_NORM, "vllm::fused_add_rms_norm_kernel"),
        (LAMBDA, "at::native::vectorized_elementwise_kernel"),
        ("void (anonymous namespace)::f<g<int>>(h*)", "f"),
        ("a::f(int)::{lambda(float)#3}::operator()(float) const", "a::f"),
        ("float* a::f(int)", "a::f"),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"),
        ("_ZN7deep_ep9intranode8dispatchILi8ELi768EEEvP4int4Pf", "deep_ep::intranode::dispatch"),
        (
            "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i",
            "sgl_hip::activation::act_and_mul_kernel",
        ),
        ("_ZN12_GLOBAL__N_16kernelIDn", "kernel"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD "),
        ("_Z", "_Z"),
        ("_Z9999f", "_Z9999f"),
    ],
)
def test_the_function_name_alone(name: str, function: str) -> None:
    """`function_name` omits the return type and arguments; if demangling fails, it returns only the nested name."""
    assert function_name(name) == function


@pytest.mark.parametrize(
    "name",
    [
        "a" * 100_000_000,
        "a<" * 5_000_000,
        "(" * 1_000_000,
        "a::" * 1_000_000,
        "a<b<c>(" * 200_000,
        "a<" * 4_000 + ")" * 100_000,
        "(" + "a<" * 4_000 + "]" * 100_000,
        "f<" + "(a<" * 100_000 + ")" * 100_000,
        ">" * 1_000_000,
        "operator" * 100_000,
        "{lambda(" * 100_000,
        "f(int)::" * 100_000 + "g(int)",
        "f(" + "int, " * 1_000_000 + ")",
        "f(int)" + " const" * 100_000,
        "_Z" + "N" * 1_000_000,
        "_Z" + "1f" * 1_000_000,
        "_ZN1f" + "I" * 15_000,
        "_Z1f" + "P" * 15_000 + "i",
        "_Z1f1aIiiES_" + "".join(f"IS{number}_S{number}_ES_" for number in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    ],
)
def test_hostile_names_take_bounded_work(name: str) -> None:
    """Parsing deep nesting, missing brackets or 100 MB of text takes few calls and returns short texts."""
    assert count_calls(lambda: (signature(name), function_name(name))) < 500_000
    assert len(str(signature(name))) + len(function_name(name)) + len(demangled(name)) < 200_000


@given(st.text(alphabet="ab<>(){}[]:,*& #~operator1_Z", max_size=200))
@example("operator")
@example("a::operator() const")
def test_any_text_is_parsed_without_an_error(name: str) -> None:
    """For any text, `signature` returns a signature with a name, or None."""
    read = signature(name)
    assert read is None or read.name
    assert isinstance(function_name(name), str)
