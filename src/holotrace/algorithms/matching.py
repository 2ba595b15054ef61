"""Which row has the same key; native code, as a large trace has millions."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from holotrace import _native

NO_MATCH, SEVERAL = -1, -2
"""Stand for "no row" and "several rows" where a row is expected."""

_Int64: TypeAlias = npt.NDArray[np.int64]


def only_matches(offered: _Int64, wanted: _Int64) -> _Int64:
    """Return the only row of `offered` that has each wanted key, or `NO_MATCH`, or `SEVERAL`."""
    return _native.only_matches(np.ascontiguousarray(offered), np.ascontiguousarray(wanted))


def rows_of(numbers: npt.NDArray[np.uint32], wanted: npt.NDArray[np.uint32]) -> _Int64:
    """Return the row of each wanted number, or `NO_MATCH`; no two rows have the same. It is fast where both rise."""
    return _native.rows_of(np.ascontiguousarray(numbers), np.ascontiguousarray(wanted))
