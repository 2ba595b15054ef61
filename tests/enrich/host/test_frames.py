"""User frames are distinguished by name from frames of libraries, generated files and Python."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.enrich.host.frames import frame_parts, is_user_frame

OF_USER = (
    "training.py(51): step",
    "/home/me/project/train.py(3): <module>",
    "C:\\me\\train.py(3): main",
    "<ipython-input-3-abc>(2): train",
    "ipykernel_12/33.py(3): train",
    "profile.py(1): <module>",
    "code/train.py(9): loop",
    "torch_models/net.py(9): forward",
    "model(v2).py(3): forward",
    "datasets/mine.py(3): __getitem__",
)
NOT_OF_USER = (
    "torch/_ops.py(12): __call__",
    "transformers/generation/utils.py(99): generate",
    "/opt/conda/lib/python3.10/site-packages/mylib/x.py(3): f",
    "/usr/lib/python3/dist-packages/mylib/x.py(3): f",
    "C:\\env\\Lib\\site-packages\\mylib\\x.py(3): f",
    "/usr/lib/python3.11/threading.py(3): run",
    "threading.py(3): run",
    "multiprocessing/spawn.py(122): spawn_main",
    "<frozen importlib._bootstrap>(3): f",
    "<string>(1): <module>",
    "<eval_with_key>.1(3): forward",
    "/var/torchinductor_root/ab/x.py(1): call",
    "/cache/ab/cabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz.py(3): call",
    "<built-in function sleep>",
    "<built-in method to of Tensor object at 0x7f1>",
    "nn.Module: Block_3",
    "aten::mm",
    "",
)


@pytest.mark.parametrize("name", OF_USER)
def test_frames_of_the_user(name: str) -> None:
    """Files of the user are user frames, even in notebooks or in folders named like a Python module."""
    assert is_user_frame(pl.Series([name])).to_list() == [True]


@pytest.mark.parametrize("name", NOT_OF_USER)
def test_other_frames(name: str) -> None:
    """PyTorch, installed libraries, generated files, Python, built-in functions and modules are not user code."""
    assert is_user_frame(pl.Series([name])).to_list() == [False]


def test_a_frame_has_a_file_a_line_and_a_function() -> None:
    """File names may contain parentheses, and frames may lack a line number.

    A line number too large for int64 becomes null.
    """
    names = pl.Series(["model(v2).py(3): Net.forward", "aten::mm", f"a.py({'9' * 30}): f"])
    assert frame_parts(names).rows() == [
        ("model(v2).py", 3, "Net.forward"),
        (None, None, None),
        ("a.py", None, "f"),
    ]
