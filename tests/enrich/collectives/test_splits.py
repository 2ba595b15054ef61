"""Tests of the recorded split sizes of all-to-alls."""

from __future__ import annotations

import pytest

from holotrace.enrich.across_ranks.matching.calls import calls
from holotrace.testing.builder import TraceBuilder


def _splits(text: str | None, *, out_elements: int = 80, elements: int = 80) -> tuple[object, ...]:
    args = {"Out msg nelems": out_elements} | ({} if text is None else {"In split size": text})
    builder = TraceBuilder().rank(4)
    builder.collective(
        "all_to_allv",
        elements=elements,
        group_ranks=(0, 4),
        start_us=1,
        duration_us=1,
        args={"In split size": "[1, 1]"},
    )
    builder.collective("all_to_all", elements=elements, group_ranks=(0, 4), start_us=5, duration_us=1, args=args)
    return calls(builder.build().ranks[4]).select("is_even", "in_splits", "sent_bytes").row(1)


@pytest.mark.parametrize(
    ("text", "is_even", "in_splits", "sent_bytes"),
    [
        ("[6, 2]", False, [6, 2], 240),
        ("[4, 4]", True, [4, 4], 160),
        ("[0, 8]", False, [0, 8], 0),
        ("[]", True, None, None),
        ("", True, None, None),
        ("[1, 2, ...]", False, None, None),
        ("[2, 2, ...]", None, None, None),
        ("[0, 0]", True, None, None),
        ("[99999999999999999999, 1]", False, None, None),
        (None, None, None, None),
    ],
)
def test_split_sizes(text, is_even, in_splits, sent_bytes) -> None:
    """`text` splits 80 elements of 4 bytes between the two ranks of a group.

    Rank 4, the second rank of the group, keeps the second part and sends only the first.
    """
    assert _splits(text) == (is_even, in_splits, sent_bytes)


def test_an_empty_list_is_even_only_if_input_and_output_are_equally_large() -> None:
    """An empty list of splits means an even split only if input and output are equally large.

    If input and output differ in size, the call may have received a list of tensors of different sizes. The list of
    splits is then empty too.
    """
    assert _splits("[]", out_elements=60) == (None, None, None)


def test_operators_describe_all_to_alls_whose_kernels_do_not() -> None:
    """In older traces, only the arguments of c10d::alltoall_base_ give the output's size and the splits."""
    operator = {
        "Input Dims": [[6, 2], [8, 2], [], [], [], []],
        "Input type": ["float", "float", "", "", "", "Scalar"],
        "Concrete Inputs": ["", "", "", "[5, 1]", "[3, 5]", "-1"],
    }
    call = {"Input Dims": [[8, 2]], "Input type": ["float"]}
    rank_trace = (
        TraceBuilder()
        .header(distributedInfo={"backend": "nccl", "rank": 0, "world_size": 2})
        .operator("c10d::alltoall_base_", start_us=0, duration_us=9, args=operator)
        .annotation("nccl:all_to_all", start_us=2, duration_us=5, args=call)
        .kernel("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", start_us=20, duration_us=5, launch_us=3)
        .build()
        .ranks[0]
    )

    described = calls(rank_trace).select("family", "in_bytes", "out_bytes", "is_even", "in_splits")
    assert described.rows() == [("all_to_all", 64, 48, False, [3, 5])]
