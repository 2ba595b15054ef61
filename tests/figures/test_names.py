"""Kernel names on axes and in hovers."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hta.figures.names import HOVER_LENGTH, LABEL_LENGTH, hover_text, label_text, printable, short_label, short_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("gemm", "gemm"),
        ("void at::native::relu<float>(int, float*)", "relu<float>"),
        ("void (anonymous namespace)::softmax_warp_forward<float, 10>(float*)", "softmax_warp_forward<float, 10>"),
        (
            "at::native::add<4, at::native::Add<float>, std::array<char*, 3ul> >(int)",
            "add<4, Add<float>, array<char*, 3ul> >",
        ),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("void convert<float, (Mode)0>(float const*)", "convert<float, (Mode)0>"),
        ("operator<", "operator<"),
        ("", ""),
        ("(", "("),
        ("a)", "a)"),
    ],
)
def test_a_signature_keeps_its_name_and_its_template_arguments(name: str, short: str) -> None:
    """Return type, namespaces and parameters go; what is no signature stays."""
    assert short_name(name) == short


def test_a_generated_name_is_cut_in_the_middle() -> None:
    """Names of generated kernels differ at their ends, so both ends stay."""
    assert short_name("triton_poi_fused_" + "add_mul_" * 30 + "35", 30) == "triton_poi_fused_ad…add_mul_35"


def test_a_template_is_cut_at_its_end() -> None:
    """The beginning of a template tells what it does."""
    assert short_name("kernel<" + "float, " * 30 + "int>", 20) == "kernel<float, float…"


@given(st.text(max_size=300))
def test_a_short_name_is_never_too_long(name: str) -> None:
    """Whatever the name, the label fits the axis."""
    assert len(short_name(name)) <= LABEL_LENGTH


@given(st.text())
def test_labels_hold_no_markup(text: str) -> None:
    """Plotly finds no tag, entity or TeX, and a reader sees each printable character."""
    label = label_text(text)
    assert not set("<>$") & set(label)
    assert html.unescape(label) == printable(text)


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\nb", "left\u202eright", "bell\x07"])
def test_control_characters_are_replaced(text: str) -> None:
    """A name printed on a terminal must not steer it, nor reverse the reading order."""
    assert printable(text).isprintable()
    assert len(printable(text)) == len(text)


def test_a_short_label_is_escaped_after_it_is_cut() -> None:
    """Cutting must not halve an entity."""
    assert short_label("<" * 100).replace("&lt;", "").strip("…") == ""


def test_a_hover_holds_the_whole_name_in_lines() -> None:
    """A long name is wrapped, not cut."""
    name = "<" + "x" * 500 + ">"
    assert hover_text(name).replace("<br>", "") == "&lt;" + "x" * 500 + "&gt;"


def test_a_hover_counts_what_is_beyond_its_limit() -> None:
    """A name of a megabyte must not end up in the page."""
    assert hover_text("x" * (HOVER_LENGTH + 1_234)).endswith("… and 1,234 more characters")
