"""Kernel names are shortened for axes and wrapped in hovers."""

from __future__ import annotations

import gzip
import html
import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holotrace.drawing.names import (
    HOVER_LENGTH,
    LABEL_LENGTH,
    MOST_COMPARED,
    hover_text,
    label_text,
    printable,
    short_labels,
    short_name,
    short_names,
)
from work import count_calls

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("gemm", "gemm"),
        ("void at::native::relu<float>(int, float*)", "relu<float>"),
        ("void (anonymous namespace)::softmax_warp_forward<float, 10>(float*)", "softmax_warp_forward<float, 10>"),
        (
            "at::native::add<4, at::native::Add<float>, std::array<char*, 3ul> >(int)",
            "add<4, Add<float>, array<char*, 3ul>>",
        ),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("void convert<float, (Mode)0>(float const*)", "convert<float, (Mode)0>"),
        (
            (
                "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::Half>::exists, void>::type "
                "vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*, long)"
            ),
            "fused_add_rms_norm_kernel<Half, 8>",
        ),
        ("_ZN2at6kernelIfLi4EEEvPT_", "kernel<float, 4>"),
        ("a::f(int)::{lambda(float)#3}::operator()(float) const", "f::lambda(float)#3"),
        ("operator<", "operator<"),
        ("", ""),
        ("(", "("),
        ("a)", "a)"),
    ],
)
def test_a_signature_keeps_its_name_and_its_template_arguments(name: str, short: str) -> None:
    """The short name drops return type, namespaces and parameters; names that are not signatures stay unchanged."""
    assert short_name(name) == short


def test_a_generated_name_is_cut_in_the_middle() -> None:
    """The short name keeps both ends, because generated kernels differ at the end of their names."""
    assert short_name("triton_poi_fused_" + "add_mul_" * 30 + "35", 30) == "triton_poi_fused_ad…add_mul_35"


def test_a_template_is_cut_at_its_end() -> None:
    """A long template keeps its beginning, which describes the computation."""
    assert short_name("kernel<" + "float, " * 30 + "int>", 20) == "kernel<float, float…"


@given(st.text(max_size=300))
def test_a_short_name_is_never_too_long(name: str) -> None:
    """A short name has at most LABEL_LENGTH characters, whatever the text."""
    assert len(short_name(name)) <= LABEL_LENGTH


_DEVICE_KERNEL = (
    "void ck_tile::device_kernel<ck_tile::GemmKernel<ck_tile::Problem<ck_tile::bfloat16_t, ck_tile::bfloat16_t, float, "
    "ck_tile::tensor_layout::gemm::RowMajor, ck_tile::tensor_layout::gemm::ColumnMajor, {}>, ck_tile::Pipeline<{}>>>(ck_tile::GemmKernelArgs)"
)


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["relu<int>()", "relu<int>()"], ["relu<int>", "relu<int>"]),
        (["a::relu<int>()", "b::relu<int>()"], ["a::relu<int>", "b::relu<int>"]),
        (["relu(int)", "relu(float)"], ["relu<…int…>", "relu<…float…>"]),
        (
            [
                _DEVICE_KERNEL.format("128", "V1"),
                _DEVICE_KERNEL.format("256", "V1"),
                _DEVICE_KERNEL.format("256", "V2"),
            ],
            ["device_kernel<…128…V1…>", "device_kernel<…256…V1…>", "device_kernel<…256…V2…>"],
        ),
        (
            [f"Cijk_{'x_' * 40}MT{size}_{'y_' * 40}" for size in ("16x16", "16x32")],
            [
                "Cijk_x_x_x_x_x_x_x_x_x_x_x…_y_y_y_y_y_y_<…MT16x16…>",
                "Cijk_x_x_x_x_x_x_x_x_x_x_x…_y_y_y_y_y_y_<…MT16x32…>",
            ],
        ),
        (["x" * 200, "x" * 201], [f"{'x' * 53}…{'x' * 26}", f"{'x' * 53}…{'x' * 23} #2"]),
        (["a\x00", "a\\x00"], [r"a\x00", r"a\x00 #2"]),
    ],
)
def test_short_names_of_one_table_differ(names: list[str], short: list[str]) -> None:
    """Short forms of similar names show the parts that differ, or a number if those parts are too long."""
    assert [short_names(names)[name] for name in names] == short


def test_the_same_kernels_have_the_same_short_names_in_any_order() -> None:
    """The short names do not depend on the order of the kernels, so a figure and its table show the same names."""
    names = [f"{'x' * 100}{number}{'y' * 100}" for number in range(9)]
    assert short_names(names) == short_names(names[::-1])


@given(st.lists(st.text(alphabet="ab<>(), :_\x00é", max_size=120), max_size=12))
def test_short_names_are_unique(names: list[str]) -> None:
    """Any set of names gets different short names of at most 20 characters."""
    short = short_names(names, 20)
    assert short.keys() == set(names)
    assert len(set(short.values())) == len(short)
    assert all(len(text) <= 20 for text in short.values())


def test_many_names_that_look_alike_are_numbered() -> None:
    """More than MOST_COMPARED similar names are numbered, because comparing their words would take too long."""
    names = [f"kernel<{'int, ' * 50}{number:04}>(int)" for number in range(MOST_COMPARED + 1)]
    first = f"kernel<{'int, ' * 14}in…"
    assert list(short_names(names).values())[:3] == [first, f"{first[:77]} #2", f"{first[:77]} #3"]


def test_a_name_of_100_megabytes_is_shortened_at_once() -> None:
    """A name of 100 MB is shortened with fewer than 500,000 function calls, because only its beginning is read."""
    name = "f<" + "int, " * 20_000_000
    assert count_calls(lambda: short_name(name)) < 500_000
    assert len(short_name(name)) <= LABEL_LENGTH


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["inference", "models", "ns_resolution", "amd_mi250"])
def test_names_of_real_kernels_become_short_ones(real_traces: Path, folder: str) -> None:
    """Kernels of real traces get unique labels, and unique short names that start with a letter or underscore."""
    names = set[str]().union(*map(_kernel_names, (real_traces / folder).rglob("*.json.gz")))
    assert names
    short = short_names(names)
    assert [text for text in short.values() if not re.match(r"[A-Za-z_]", text)] == []
    assert len(set(short.values())) == len(set(short_labels(names).values())) == len(names)


def _kernel_names(path: Path) -> set[str]:
    content = json.loads(gzip.decompress(path.read_bytes()))
    return {event["name"] for event in content.get("traceEvents", []) if event.get("cat") == "kernel"}


@given(st.text())
def test_labels_hold_no_markup(text: str) -> None:
    """A label contains no tag, entity or TeX that Plotly would interpret, and shows every printable character."""
    label = label_text(text)
    assert not set("<>$") & set(label)
    assert html.unescape(label) == printable(text)


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\nb", "left\u202eright", "bell\x07"])
def test_control_characters_are_replaced(text: str) -> None:
    """Control characters become escapes, so a name can neither control a terminal nor reverse the text direction."""
    assert printable(text).isprintable()
    assert printable(text).encode().decode("unicode_escape") == text


@pytest.mark.parametrize("length", range(4, 24))
def test_an_escape_is_never_cut(length: int) -> None:
    """A name is cut between characters, never within an escape."""
    cut = short_name("a\x1b\u202e" * 9, length)
    assert len(cut) <= length
    assert re.fullmatch(r"(a|\\x1b|\\u202e)*…(a|\\x1b|\\u202e)*", cut)


def test_a_short_label_is_escaped_after_it_is_cut() -> None:
    """Labels are cut before they are escaped, so the cut never splits an entity."""
    (label,) = short_labels(["<" * 100]).values()
    assert label.replace("&lt;", "").strip("…") == ""


def test_a_hover_holds_the_whole_name_in_lines() -> None:
    """A hover text wraps a name of 500 characters without cutting it."""
    name = "<" + "x" * 500 + ">"
    assert hover_text(name).replace("<br>", "") == "&lt;" + "x" * 500 + "&gt;"


def test_a_hover_counts_the_characters_beyond_its_limit() -> None:
    """A hover text cuts a name after HOVER_LENGTH characters and gives the number of missing ones."""
    assert hover_text("x" * (HOVER_LENGTH + 1_234)).endswith("… and 1,234 more characters")
