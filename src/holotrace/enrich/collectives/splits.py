"""Derives from the recorded split sizes how an all-to-all divides its rows among the ranks of its group.

PyTorch records an empty list of split sizes if every rank gets the same number of rows:
https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (alltoall_base)
"""

from __future__ import annotations

import polars as pl

_CUT = "..."
_MOST_DIGITS = 9
_TEXT = pl.col("in_split_sizes")
_SIZES = _TEXT.str.extract_all(r"\d+")
_IS_ALL_TO_ALL = pl.col("family") == "all_to_all"
_IS_WHOLE = ~_TEXT.str.contains(_CUT, literal=True) & ~_TEXT.str.contains(rf"\d{{{_MOST_DIGITS + 1}}}")


def splits() -> list[pl.Expr]:
    """Return the columns derived from the split sizes of an all-to-all; they are null for other calls.

        is_even     bool         whether every rank gets the same amount; null if unknown
        in_splits   list[int64]  rows sent to each rank, in the order of the group; null if the list is empty, truncated
                                 or not recorded
        sent_bytes  int64        bytes sent to other ranks; null if in_splits is null

    Reads family, in_split_sizes (text), in_elements, out_elements, byte_count and position (of the rank in its group).
    """
    # Set unusable text to null before parsing it, because polars keeps the numbers of a list that is set to null later.
    whole = pl.when(_IS_ALL_TO_ALL & _IS_WHOLE).then(_TEXT)
    sizes = whole.str.extract_all(r"\d+").cast(pl.List(pl.Int64))
    total = sizes.list.sum()
    listed = pl.when(total > 0).then(sizes)
    own = listed.list.get(pl.col("position"), null_on_oob=True)
    sent = (pl.col("byte_count") * ((total - own) / total)).round().cast(pl.Int64)
    return [_is_even().alias("is_even"), listed.alias("in_splits"), sent.alias("sent_bytes")]


def _is_even() -> pl.Expr:
    """Return whether every rank gets the same amount.

    Some versions also record an empty list if the parts are given as a list of tensors, although the tensors may differ
    in size. So an empty list is taken to mean equal parts only if input and output have the same size.
    """
    count = _SIZES.list.n_unique()
    is_empty = _TEXT.str.contains(r"^\s*\[?\s*\]?\s*$")
    return (
        pl.when(_IS_ALL_TO_ALL & is_empty & (pl.col("in_elements") == pl.col("out_elements")))
        .then(True)  # noqa: FBT003 -- a value
        .when(_IS_ALL_TO_ALL & (count > 1))
        .then(False)  # noqa: FBT003 -- a value
        .when(_IS_ALL_TO_ALL & _IS_WHOLE & (count == 1))
        .then(True)  # noqa: FBT003 -- a value
    )
