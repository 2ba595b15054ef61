"""Tests of `c10d::` operators, which show when the host requested communication and with which peer."""

from __future__ import annotations

from holotrace.enrich.across_ranks.matching.calls import calls
from holotrace.testing.builder import TraceBuilder

_WORKERS = (2, 3)


def _dims(size: int) -> dict[str, object]:
    return {"Input Dims": [[size]], "Input type": ["float"]}


def _all_reduce(builder: TraceBuilder, *, asked_us: int | None, start_us: int, size: int, worker: int) -> TraceBuilder:
    if asked_us is not None:
        args = {"Input Dims": [[[size]], [], []], "Input type": ["TensorList", "", ""]}
        builder.operator("c10d::allreduce_", start_us=asked_us, duration_us=1, args=args)
    return builder.annotation("gloo:all_reduce", start_us=start_us, duration_us=5, thread=worker, args=_dims(size))


def test_two_worker_threads_may_start_in_the_wrong_order() -> None:
    """Two worker threads start two all-reduces in reverse order; the sizes show which operator requested which."""
    builder = TraceBuilder()
    _all_reduce(builder, asked_us=0, start_us=21, size=8, worker=2)
    _all_reduce(builder, asked_us=2, start_us=20, size=16, worker=3)

    assert calls(builder.build().ranks[0]).select("start_ns", "asked_ns").rows() == [(20_000, 2_000), (21_000, 0)]


def test_a_call_from_before_the_recording_has_no_operator() -> None:
    """If an all-reduce runs before the first recorded operator, its request time is its own start."""
    builder = TraceBuilder()
    _all_reduce(builder, asked_us=None, start_us=1, size=8, worker=2)
    _all_reduce(builder, asked_us=10, start_us=12, size=8, worker=3)
    _all_reduce(builder, asked_us=11, start_us=18, size=8, worker=2)

    assert calls(builder.build().ranks[0])["asked_ns"].to_list() == [1_000, 10_000, 11_000]


def test_outputs_come_before_inputs_except_in_place() -> None:
    """The gloo range of `c10d::_allgather_base_(output, input)` has the shape of the input, not of the output."""
    args = {"Input Dims": [[16], [8], []], "Input type": ["float", "float", ""]}
    builder = TraceBuilder()
    for asked_us, start_us in ((1, 5), (2, 9)):
        builder.operator("c10d::_allgather_base_", start_us=asked_us, duration_us=1, args=args)
        builder.annotation("gloo:all_gather", start_us=start_us, duration_us=2, thread=2, args=_dims(8))

    assert calls(builder.build().ranks[0])["asked_ns"].to_list() == [1_000, 2_000]


def test_the_operator_around_the_start_of_a_send_knows_its_peer_and_tag() -> None:
    """The tag and the peer's number within the group come from the operator in which the gloo range starts."""
    builder = TraceBuilder()
    for name, start_us, inputs in (("send", 0, ["", "", "1", "7"]), ("recv", 10, ["", "", "3", "0"])):
        operator = "c10d::recv_" if name == "recv" else "c10d::send"
        builder.operator(operator, start_us=start_us, duration_us=3, args={"Concrete Inputs": inputs})
        builder.annotation(f"gloo:{name}", start_us=start_us + 2, duration_us=30, args=_dims(8))

    known = calls(builder.build().ranks[0]).select("family", "asked_ns", "peer", "group_peer", "tag")

    assert known.rows() == [("send", 0, None, 1, 7), ("recv", 10_000, None, 3, 0)]


def test_values_that_are_not_numbers_count_as_unknown() -> None:
    """If a list is too short or a value is not a number, peer and tag are null."""
    builder = TraceBuilder()
    for start_us, inputs in ((0, [""]), (10, ["", "", "one", "99999999999"]), (20, {"a": 1}), (30, ["", "", "-1", 2])):
        builder.operator("c10d::send", start_us=start_us, duration_us=3, args={"Concrete Inputs": inputs})
        builder.annotation("gloo:send", start_us=start_us + 2, duration_us=3, args=_dims(8))

    assert set(calls(builder.build().ranks[0]).select("group_peer", "tag").rows()) == {(None, None)}


def test_nccl_names_the_peer_in_its_annotation() -> None:
    """In a trace without collective args, `nccl:send 0->1` means that rank 0 of the group sends to its rank 1."""
    builder = (
        TraceBuilder()
        .annotation("nccl:send 0->1", start_us=0, duration_us=5)
        .kernel("ncclDevKernel_SendRecv", start_us=10, duration_us=5, launch_us=1)
        .annotation("nccl:recv 0<-3", start_us=20, duration_us=5)
        .kernel("ncclDevKernel_SendRecv", start_us=30, duration_us=5, launch_us=21)
    )

    assert calls(builder.build().ranks[0]).select("family", "group_peer").rows() == [("send", 1), ("recv", 3)]
