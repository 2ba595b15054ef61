"""The cost of one call of an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from holotrace.errors import HolotraceError

Work = Literal["matrix", "vector", "copy"]
""""matrix": arithmetic that tensor cores could do; "vector": arithmetic for ordinary cores; "copy": no arithmetic."""


@dataclass(frozen=True)
class Cost:
    """The smallest numbers of operations and bytes that one call needs.

    flops         operations on elements, including additions of a bias; pairs of query and key that a causal mask hides
                  do not count; None if unknown
    bytes         bytes that any implementation has to read and write: every input and output once; None if unknown
    work          see `Work`; None if unknown
    precision     element type of the arithmetic, such as `bfloat16`; None if unknown
    dense_flops   2 x multiplications in matrix products, ignoring bias and mask, as in PyTorch's FlopCounterMode; 0 for
                  operators without matrix products
    reason        why a value is unknown; empty if all are known
    repeated_flops  how many of the `flops` repeat operations of the forward pass
    """

    flops: int | None
    bytes: int | None
    work: Work | None = "vector"
    precision: str | None = None
    dense_flops: int | None = 0
    reason: str = ""
    repeated_flops: int = 0


class UnknownCostError(HolotraceError, ValueError):
    """The recorded inputs do not determine the cost of a call; the message names the missing input."""


def unknown(reason: str) -> Cost:
    """Return a cost whose values are all unknown."""
    return Cost(None, None, work=None, dense_flops=None, reason=reason)
