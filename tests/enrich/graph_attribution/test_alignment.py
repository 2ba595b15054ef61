"""Tests of pairing replayed kernels with captured launches."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holotrace.enrich.graph_attribution.alignment import UNNAMED, Work, aligned

KERNEL, COPY = 6, 4


def pairs(replayed: str, streams: str, captured: str) -> list[int]:
    """Align two texts, in which `c` is a copy, `?` a captured launch without a name, and any other letter a kernel."""
    return aligned(work(replayed), np.array([int(stream) for stream in streams]), work(captured)).tolist()


def work(letters: str) -> Work:
    """Return a kernel, copy or unnamed launch for each letter; see `pairs`."""
    numbers = [UNNAMED if letter == "?" else ord(letter) for letter in letters]
    kinds = [COPY if letter == "c" else KERNEL for letter in letters]
    return Work(np.array(numbers, np.int64), np.array(kinds, np.int64))


def test_launches_that_were_not_replayed_are_skipped():
    """Launches b and e were captured but not replayed."""
    assert pairs("acd", "777", "abcde") == [0, 2, 3]


def test_kernels_that_were_not_captured_stay_unknown():
    """Kernel x was replayed but not captured, so it has no launch."""
    assert pairs("axb", "777", "ab") == [0, -1, 1]


def test_streams_interleave_in_any_way():
    """Stream 7 runs a, then b, and stream 8 runs x, then y; the launches of both streams are interleaved: a x b y."""
    assert pairs("abxy", "7788", "axby") == [0, 2, 1, 3]
    assert pairs("xyab", "8877", "axby") == [1, 3, 0, 2]


def test_equal_kernels_on_two_streams_use_each_launch_once():
    """Two streams run the same kernel, and each kernel gets a different launch."""
    assert sorted(pairs("aa", "78", "aa")) == [0, 1]


def test_launches_without_names_pair_in_order_if_their_number_and_kinds_agree():
    """On NVIDIA GPUs, a capture does not name the kernels, but it does show which launch is a copy (here c)."""
    assert pairs("abcd", "7777", "??c?") == [0, 1, 2, 3]


def test_launches_without_names_stay_unpaired_if_their_number_differs():
    """The replay lacks a launch before the copy, so only the copy and the work after it are paired."""
    assert pairs("abcd", "7777", "???c?") == [-1, -1, 2 + 1, 4]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("78")), max_size=30), st.randoms())
def test_a_complete_capture_explains_all_work_of_one_stream(launched, random):
    """On one stream, every kernel is paired with a launch of the same name, even if the capture contains more launches."""
    letters = "".join(letter for letter, _ in launched)
    captured = "".join(letter + random.choice(["", "x"]) for letter in letters)
    partner = pairs(letters, "7" * len(letters), captured)

    assert [captured[row] for row in partner] == list(letters)
