"""Names of host events must be the same in every process."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.enrich.host.host_names import without_addresses


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("<built-in method run_backward of torch._C._EngineBase object at 0x7f3A>", "<built-in method run_backward>"),
        ("<built-in method __new__ of type object at 0x92a400>", "<built-in method __new__>"),
        ("<function hook at 0x7f00>", "<function hook>"),
        ("<built-in function sleep>", "<built-in function sleep>"),
        ("train.py(3): size of batch", "train.py(3): size of batch"),
        ("jump at 0x10 and back", "jump at 0x10 and back"),
        (None, None),
    ],
)
def test_names_have_no_addresses_of_objects(name: str | None, known: str | None) -> None:
    """The text `of … object at 0x…`, or only `at 0x…`, is removed before the `>`; all other text is kept."""
    assert without_addresses(pl.Series([name], dtype=pl.String)).to_list() == [known]
