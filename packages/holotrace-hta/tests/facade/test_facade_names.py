"""Short names, as in HTA."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

from hta.facade.trace.names import shared_texts, shorten_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("aten::mm", "aten::mm"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("void at::native::elementwise_kernel<int, f<4> >(int, g(4))", "at::native::elementwise_kernel"),
        ("void at::(anonymous namespace)::relu<float>(int)", "at::relu"),
        ("<built-in method run>", "<built-in method run>"),
        ("f(unclosed", "f"),
    ],
)
def test_a_name_loses_its_brackets(name, short) -> None:
    """Short names have no brackets, except the names of copies and names that would otherwise become empty."""
    assert shorten_name(name) == short


def test_short_names_equal_htas(goldens) -> None:
    """Short names equal HTA's.

    The test skips names that HTA shortens to nothing, and names with anonymous namespaces, which HTA cuts wrongly.
    """
    names = pd.read_csv(goldens / "hta" / "_misc" / "names.csv.gz", keep_default_na=False)
    is_compared = (names["shorten_name"] != "") & ~names["name"].str.contains("(anonymous namespace)", regex=False)
    compared = names[is_compared]
    ours = compared["name"].map(shorten_name)
    assert len(compared) > 1_000
    assert (ours == compared["shorten_name"]).all()


@pytest.mark.parametrize("ids", [[1, 0, None, 1], [], [None], [2]])
def test_texts_are_shared_objects(ids) -> None:
    """`shared_texts` returns the text of each id, or None for a null id; equal texts are the same Python object."""
    texts = [None if text_id is None else "abc"[text_id] for text_id in ids]
    shared = shared_texts(pl.Series(["a", "b", "c"]), pl.Series(ids, dtype=pl.UInt32))
    assert shared.tolist() == texts
    assert len({id(text) for text in shared}) == len(set(texts))
