"""Small functions of `hta.utils.utils`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from hta.utils import utils
from hta.utils.checker import is_valid_directory


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "COMMUNICATION"),
        ("void deep_ep::intranode::dispatch<8>()", "COMMUNICATION"),
        ("Memcpy HtoD (Pinned -> Device)", "MEMORY"),
        ("dma_x", "MEMORY"),
        ("Stream Wait Event", "OTHER"),
        ("event_wait", "OTHER"),
        ("gemm", "COMPUTATION"),
    ],
)
def test_the_kind_of_work_by_its_name(name, kind) -> None:
    """The name of a kernel or copy determines its kind: communication, memory, computation or other."""
    assert utils.get_kernel_type(name) == kind
    questions = {
        "COMMUNICATION": utils.is_comm_kernel(name),
        "MEMORY": utils.is_memory_kernel(name),
        "COMPUTATION": utils.is_compute_kernel(name),
    }
    assert [question for question, answer in questions.items() if answer] == ([] if kind == "OTHER" else [kind])


@pytest.mark.parametrize(
    ("name", "copy"),
    [("Memcpy DtoH (Device -> Pinned)", "Memcpy DtoH"), ("Memset (Device)", "Memset"), ("gemm", "Memcpy Unknown")],
)
def test_the_kind_of_a_copy(name, copy) -> None:
    """The kind of a copy is its name without source and destination."""
    assert utils.get_memory_kernel_type(name) == copy


def test_touching_intervals_are_joined() -> None:
    """Touching intervals are merged, even if they are not sorted."""
    frame = pd.DataFrame({"ts": [30, 0, 10, 5], "dur": [1, 5, 2, 5]})
    assert utils.merge_kernel_intervals(frame).to_numpy().tolist() == [[0, 12], [30, 31]]
    assert utils.merge_kernel_intervals(frame.iloc[:0]).empty


def test_paths_are_expanded() -> None:
    """Paths that begin with ~ or a dot become absolute."""
    assert utils.normalize_path("~/x") == str(Path.home() / "x")
    assert utils.normalize_path("./x") == str(Path.cwd() / "x")
    assert [utils.normalize_path(path) for path in ("/a/b", "a")] == ["/a/b", "a"]


def test_columns_and_values_are_found() -> None:
    """`utils` finds text columns of a frame and values in nested dicts, and flattens column names."""
    frame = pd.DataFrame({"name": [1], "s_name": ["a"], "cat": ["kernel"]})
    assert utils.get_symbol_column_names(frame) == ("s_name", "cat")
    assert utils.get_symbol_column_names(frame[["name"]]) == ("", "")
    assert utils.get_value_from_dict({"a": {"b": 1}}, "a.b") == 1
    assert utils.get_value_from_dict({"a": {"b": 1}}, "a.c", 5) == 5
    levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("dur", "sum"), ("name", "")]))
    utils.flatten_column_names(levels)
    assert levels.columns.tolist() == ["dur_sum", "name"]


def test_a_folder_is_checked(tmp_path) -> None:
    """`is_valid_directory` accepts a writable folder and reports a missing folder."""
    assert is_valid_directory(str(tmp_path), must_be_writable=True).success
    assert is_valid_directory(str(tmp_path)).reason == ""
    outcome = is_valid_directory(str(tmp_path / "nothing"), must_be_writable=True)
    assert (outcome.success, "does not exist" in outcome.reason) == (False, True)
