"""Hypothesis strategies for intervals, events, whole trace files with all variations of the format, and damaged files.

    @given(trace_documents())
    def test_...(document: bytes): ...

    @given(trace_documents().flatmap(broken_bytes))
    def test_...(damaged: bytes): ...

A document from `trace_documents` is valid JSON, so tests can compare a reader with `json.loads`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Int64Array: TypeAlias = npt.NDArray[np.int64]
Json: TypeAlias = dict[str, Any] | list[Any]

CATEGORIES = (
    "cpu_op",
    "user_annotation",
    "gpu_user_annotation",
    "gpu_memcpy",
    "gpu_memset",
    "kernel",
    "cuda_runtime",
    "cuda_driver",
    "python_function",
    "overhead",
    "cuda_sync",
    "cuda_profiler_range",
    "mtia_ccp_events",
    "collective_comm",
    "Trace",
    "Operator",
    "Runtime",
    "Kernel",
    "Memcpy",
    "gpu_user_Annotation",
    "a category nobody has heard of",
)
"""All categories of complete events that any version of the profiler writes, and one that no version writes."""

_LARGEST_INT64 = 2**63 - 1
_LARGEST_UINT64 = 2**64 - 1
# Events end before 2**62 ns even after their base time and duration are added; the reader drops events that end later.
_LATEST_NS = 2_800_000_000_000_000_000
_LONGEST_NS = 2**52  # the reader drops events that are longer than this, so sums of durations fit into 64 bits


class _NumberText(str):
    """A number as text, with or without quotes; the text is written to the file unchanged."""

    __slots__ = ()


@dataclass(frozen=True)
class _Layout:
    """A way to write a JSON value."""

    comma: str
    colon: str
    before: str
    after: str
    ascii_only: bool
    escape_all: bool

    def text(self, value: object) -> str:
        """Return the value as JSON text."""
        if isinstance(value, dict):
            items = (f"{self._key(key)}{self.colon}{self.text(item)}" for key, item in value.items())
            return f"{{{self.before}{self.comma.join(items)}{self.after}}}"
        if isinstance(value, list):
            return f"[{self.before}{self.comma.join(map(self.text, value))}{self.after}]"
        if isinstance(value, str) and not isinstance(value, _NumberText):
            return self._string(value)
        return value if isinstance(value, _NumberText) else json.dumps(value)

    def _key(self, key: str) -> str:
        """Write a key, escaping only what is necessary, as all profilers do."""
        return json.dumps(key, ensure_ascii=self.ascii_only)

    def _string(self, value: str) -> str:
        """Write a string in this layout; escape a one-character string, such as a phase, only if necessary."""
        if not self.escape_all or len(value) == 1:
            return json.dumps(value, ensure_ascii=self.ascii_only)
        units = value.encode("utf-16-be").hex()
        return '"' + "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4)) + '"'


def interval_arrays(*, max_size: int = 25, latest: int = 40) -> st.SearchStrategy[tuple[Int64Array, Int64Array]]:
    """Return half-open intervals in any order, as arrays of starts and ends; a few have zero or negative length.

    Times are small, so intervals often touch and overlap, and a test can represent an interval as a set of nanoseconds.
    """
    pairs = st.lists(st.tuples(st.integers(-latest, latest), st.integers(-2, latest // 2)), max_size=max_size)
    return pairs.map(_as_arrays)


def names() -> st.SearchStrategy[str]:
    """Return event names: common, empty and long names, names with quotes or backslashes, and random text."""
    usual = st.sampled_from(
        (
            "aten::mm",
            "ProfilerStep#7",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            "Memcpy HtoD (Pinned -> Device)",
            'a "quoted" name',
            "back\\slash\\",
            "line\nbreak\ttab\0null",
            "}, {",
            '"traceEvents": [',
            "时间 é 🚀",
            "void kernel<" + "std::array<char*, 2ul>, " * 60 + ">()",
        )
    )
    return st.one_of(usual, st.text(st.characters(exclude_categories=["Cs"]), max_size=30))


def events() -> st.SearchStrategy[dict[str, Any]]:
    """Return complete events (`ph` X) as in a parsed file, with times as exact Decimal microseconds."""
    return st.fixed_dictionaries(
        {
            "ph": st.just("X"),
            "cat": st.sampled_from(CATEGORIES),
            "name": names(),
            "pid": _tracks(),
            "tid": _tracks(),
            "ts": _times(_LATEST_NS),
            "dur": _times(_LONGEST_NS),
        },
        optional={"args": _args()},
    )


@st.composite
def trace_documents(draw: st.DrawFn, *, max_events: int = 8) -> bytes:
    """Return trace files: valid JSON in any layout, with all variations that the format allows.

    Keys are in any order. Header keys precede or follow the events, or the file is only the list of events.
    Times are whole, decimal, exponent or quoted numbers. Names contain any characters, escaped or not. Ids may use all 64 bits.
    Args may be nested or missing, and may have keys that the reader does not know.
    """
    layout = draw(_layouts())
    number = draw(st.sampled_from(_NUMBER_STYLES))
    written = [_written(event, number) for event in draw(st.lists(_any_events(), max_size=max_events))]
    shuffled = [dict(draw(st.permutations(list(event.items())))) for event in written]
    return layout.text(_enclosed(draw, shuffled)).encode()


def broken_bytes(document: bytes) -> st.SearchStrategy[bytes]:
    """Return the document damaged one to three times: its end cut off, or bytes changed, removed, repeated or inserted.

    The result may happen to be a valid file.
    """
    return st.lists(_damages(), min_size=1, max_size=3).map(lambda damages: _damaged(document, damages))


def _as_arrays(pairs: list[tuple[int, int]]) -> tuple[Int64Array, Int64Array]:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table.sum(axis=1)


def _times(latest_ns: int) -> st.SearchStrategy[Decimal]:
    interesting = st.sampled_from((0, 1, 999, 1_000, min(latest_ns, 1_725_000_000_000_000_123)))
    moments_ns = st.one_of(interesting, st.integers(0, 10_000_000), st.integers(0, latest_ns))
    return moments_ns.map(lambda moment_ns: Decimal(moment_ns).scaleb(-3))


def _tracks() -> st.SearchStrategy[int | str]:
    odd = st.sampled_from(("Spans", "stream 7", "", -1, 4_294_967_295, _LARGEST_INT64))
    return st.one_of(st.integers(0, 12), odd)


def _ids() -> st.SearchStrategy[int]:
    return st.one_of(st.integers(0, 5), st.integers(0, _LARGEST_INT64))


def _addresses() -> st.SearchStrategy[int]:
    return st.one_of(st.sampled_from((0, 2**53 + 1, _LARGEST_UINT64)), st.integers(0, _LARGEST_UINT64))


def _any_json() -> st.SearchStrategy[Any]:
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    leaves = st.none() | st.booleans() | numbers | names()
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | _dicts(inner), max_leaves=6)


def _dicts(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(names(), values, max_size=3)


def _args() -> st.SearchStrategy[dict[str, Any]]:
    known = st.fixed_dictionaries(
        {},
        optional={
            "External id": _ids(),
            "correlation": _ids(),
            "device": st.integers(-1, 15),
            "stream": st.one_of(st.integers(-1, 30), st.sampled_from(("0x0", "7", 4_294_967_295))),
            "Ev Idx": _ids(),
            "Input Dims": st.lists(st.lists(st.integers(0, 4096), max_size=3), max_size=3),
            "Concrete Inputs": st.lists(names(), max_size=3),
            "Call stack": names(),
            "Python parent id": st.none() | _ids(),
            "finished": st.booleans(),
            "grid": st.lists(st.integers(0, 65_535), min_size=3, max_size=3),
            "blocks per SM": st.one_of(st.floats(0, 1e6), st.just("inf")),
            "bytes": st.one_of(_ids(), _ids().map(str)),
            "memory bandwidth (GB/s)": st.one_of(st.floats(0, 1e4), st.just("N/A")),
            "occupancy": st.just({"limitingFactors": "REGS|SMEM", "blockLimitRegs": 2}),
            "graph node id": _addresses(),
            "Collective name": st.sampled_from(("allreduce", "_allgather_base", "send")),
            "Process Group Ranks": st.sampled_from(("[0, 1]", "[0, 1, ...]")),
            "Comms Id": _addresses(),
        },
    )
    return st.one_of(known, st.tuples(known, _dicts(_any_json())).map(lambda both: {**both[1], **both[0]}))


def _any_events() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(events(), events(), _flow_events(), _memory_events(), _name_events(), _counter_events())


def _flow_events() -> st.SearchStrategy[dict[str, Any]]:
    arrow = {"id": _ids(), "pid": _tracks(), "tid": _tracks(), "ts": _times(_LATEST_NS)}
    names_of_arrows = {"cat": st.sampled_from(("ac2g", "fwdbwd", "async_gpu")), "name": st.just("ac2g")}
    starts = st.fixed_dictionaries({"ph": st.just("s"), **arrow, **names_of_arrows})
    ends = st.fixed_dictionaries({"ph": st.just("f"), **arrow, **names_of_arrows, "bp": st.just("e")})
    return st.one_of(starts, ends)


def _memory_events() -> st.SearchStrategy[dict[str, Any]]:
    args = {
        "Device Type": st.sampled_from((0, 1)),
        "Device Id": st.integers(-1, 7),
        "Addr": _addresses(),
        "Bytes": st.integers(-(2**40), 2**40),
        "Total Allocated": _ids(),
        "Total Reserved": _ids(),
    }
    return st.fixed_dictionaries(
        {
            "ph": st.just("i"),
            "cat": st.just("cpu_instant_event"),
            "s": st.just("t"),
            "name": st.just("[memory]"),
            "pid": _tracks(),
            "tid": _tracks(),
            "ts": _times(_LATEST_NS),
            "args": st.fixed_dictionaries(args),
        }
    )


def _name_events() -> st.SearchStrategy[dict[str, Any]]:
    kinds = st.sampled_from(("process_name", "process_labels", "thread_name", "thread_sort_index"))
    return st.tuples(kinds, names(), st.integers(0, 10_000_000), _tracks()).map(
        lambda drawn: {"ph": "M", "name": drawn[0], "pid": drawn[3], "tid": 0, "args": _name_args(*drawn[:3])}
    )


def _name_args(kind: str, name: str, sort_index: int) -> dict[str, Any]:
    if kind.endswith("sort_index"):
        return {"sort_index": sort_index}
    return {"labels": name} if kind == "process_labels" else {"name": name}


def _counter_events() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "ph": st.just("C"),
            "name": names(),
            "pid": st.just("GPU 0 Counters"),
            "tid": st.integers(0, 3),
            "ts": _times(_LATEST_NS),
            "args": st.dictionaries(st.sampled_from(("", "value")), st.floats(-1e9, 1e9), min_size=1, max_size=2),
        }
    )


def _layouts() -> st.SearchStrategy[_Layout]:
    """Return JSON layouts: compact, spaced or multi-line, with more or fewer characters escaped.

    Each layout escapes all characters, all characters outside ASCII, or only the characters that must be escaped.
    """
    return st.builds(
        _Layout,
        comma=st.sampled_from((",", ", ", ",\n    ", "\r\n,")),
        colon=st.sampled_from((":", ": ", "\t:\n")),
        before=st.sampled_from(("", " ", "\n  ")),
        after=st.sampled_from(("", "\n")),
        ascii_only=st.booleans(),
        escape_all=st.booleans(),
    )


def _whole_or_decimal(time_us: Decimal) -> str:
    return f"{time_us:.0f}" if time_us == int(time_us) else f"{time_us:f}"


_NUMBER_STYLES: tuple[Callable[[Decimal], str], ...] = (
    lambda time_us: _NumberText(f"{time_us:f}"),
    lambda time_us: _NumberText(_whole_or_decimal(time_us)),
    lambda time_us: _NumberText(f"{time_us:e}"),
    lambda time_us: _NumberText(f"{int(time_us.scaleb(3))}E-3"),
    lambda time_us: _NumberText(f'"{time_us:f}"'),
)
"""The ways to write a time: with decimals, without decimals if possible, in two exponent forms, and quoted."""


def _written(event: dict[str, Any], number: Callable[[Decimal], str]) -> dict[str, Any]:
    return {key: number(value) if isinstance(value, Decimal) else value for key, value in event.items()}


def _enclosed(draw: st.DrawFn, trace_events: list[dict[str, Any]]) -> Json:
    """Return an object that contains the events among random header keys, or only the list of events."""
    if draw(st.integers(0, 5)) == 0:
        return list(trace_events)
    keys = {**draw(_headers()), **draw(_dicts(_any_json())), "traceEvents": trace_events}
    return dict(draw(st.permutations(list(keys.items()))))


def _headers() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "schemaVersion": st.just(1),
            "deviceProperties": st.sampled_from(([], [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}])),
            "distributedInfo": st.builds(lambda rank: {"backend": "nccl", "rank": rank}, st.integers(0, 4095)),
            "baseTimeNanoseconds": st.sampled_from((0, 1_790_857_026_000_000_000)),
            "displayTimeUnit": st.sampled_from(("ms", "ns")),
            "record_shapes": st.just(1),
            "traceName": names(),
        },
    )


@dataclass(frozen=True)
class _Damage:
    """A change to a document at the relative position `place`, from 0 (the first byte) to 1 (the end)."""

    kind: str
    place: float
    length: int
    inserted: bytes

    def applied(self, document: bytes) -> bytes:
        """Return the document with the change."""
        start = round(self.place * len(document))
        before, inside, after = document[:start], document[start : start + self.length], document[start + self.length :]
        return {
            "cut": before,
            "delete": before + after,
            "double": before + inside + inside + after,
            "flip": before + bytes(byte ^ 0x55 for byte in inside) + after,
            "insert": before + self.inserted + inside + after,
        }[self.kind]


def _damages() -> st.SearchStrategy[_Damage]:
    inserted = st.sampled_from((b'"', b"\\", b"\x00", b"\xff\xfe", b"}", b"]", b"{", b",", b"NaN", b"\\u12", b"\n"))
    return st.builds(
        _Damage,
        kind=st.sampled_from(("cut", "delete", "double", "flip", "insert")),
        place=st.floats(0, 1),
        length=st.integers(1, 12),
        inserted=st.one_of(inserted, st.binary(min_size=1, max_size=4)),
    )


def _damaged(document: bytes, damages: list[_Damage]) -> bytes:
    for damage in damages:
        document = damage.applied(document)
    return document
