"""Trace files that are damaged or impossible; each made an earlier version of the reader or of an analysis fail."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

OPERATOR = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5}
LAUNCH = {
    "ph": "X",
    "cat": "cuda_runtime",
    "name": "cudaLaunchKernel",
    "pid": 1,
    "tid": 1,
    "ts": 12,
    "dur": 1,
    "args": {"correlation": 72},
}
KERNEL = {
    "ph": "X",
    "cat": "kernel",
    "name": "gemm",
    "pid": 0,
    "tid": 7,
    "ts": 14,
    "dur": 5,
    "args": {"device": 0, "stream": 7, "correlation": 72},
}
EVENTS = [OPERATOR, LAUNCH, KERNEL]
FAR_US = 5_000_000_000_000_000
"""158 years in microseconds; twice this time does not fit into 64 bits of nanoseconds."""

NESTED = 20_000


def document(events: list[Any] = EVENTS, **header: object) -> str:
    """Return a trace with these events."""
    return json.dumps({**header, "traceEvents": events})


def at(event: dict[str, Any], time_us: float, **changes: object) -> dict[str, Any]:
    """Return a copy of an event with a different time and other changes."""
    return {**event, "ts": time_us, **changes}


def call(name: str, time_us: float, duration_us: float = 0, **args: object) -> dict[str, Any]:
    """Return a CUDA runtime call."""
    return {**LAUNCH, "name": name, "ts": time_us, "dur": duration_us, "args": args}


def memory(time_us: float, byte_count: int) -> dict[str, Any]:
    """Return a device allocation."""
    total = {"Total Allocated": byte_count, "Total Reserved": byte_count}
    args = {"Device Type": 1, "Device Id": 0, "Addr": int(time_us), "Bytes": byte_count, **total}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": time_us} | {
        "args": args
    }


def with_bracket() -> str:
    """Return a trace with a closing bracket after the second event."""
    return document().replace("}, {", "}] {", 2).replace("}] {", "}, {", 1)


WAITS = [
    call("cudaStreamSynchronize", -303_164_427_007_075.0, correlation=144),
    call("cudaDeviceSynchronize", 8_696_835_579_936_504.0, correlation=7),
    at(KERNEL, FAR_US, args={"device": 0, "stream": 7, "correlation": 144}),
    call("cudaEventSynchronize", -FAR_US, correlation=72),
    call("cudaStreamWaitEvent", 20, 2 * FAR_US, correlation=72),
]

ODD_INPUTS = [
    at(
        OPERATOR,
        30 + index,
        args={"Input Dims": dims, "Input type": kinds, "Concrete Inputs": dims, "Sequence number": 1},
    )
    for index, (dims, kinds) in enumerate(
        [
            ([[2**62, 2**62]], ["float"]),
            ([[-(2**63)], [-1]], ["float", "float"]),
            (5, 5),
            ({"a": 1}, {"a": 1}),
            ("x", "x"),
            ([5, None, "x", {"a": 1}], [5, None, {"a": 1}, [1]]),
            (None, None),
        ]
    )
]
"""Operators with shapes and types that tensors cannot have."""

BROKEN: dict[str, bytes] = {
    name: content.encode()
    for name, content in {
        "flow_with_args.json": document([*EVENTS, {**OPERATOR, "ph": "s", "id": 1, "args": {"correlation": 1}}]),
        "counter_with_texts.json": document(
            [OPERATOR, {"ph": "C", "pid": 1, "tid": 1, "ts": 12, "name": "c", "args": {"device": "0", "x": "5"}}]
        ),
        "key_twice.json": document().replace(
            '"ph": "X", "cat": "kernel"', '"ph": "s", "id": 3, "ph": "X", "cat": "kernel"'
        ),
        "last_key_counts.json": document().replace('"correlation": 72}}]', '"correlation": 72}, "ph": "s", "id": 3}]'),
        "stray_bracket.json": with_bracket(),
        "two_documents.json": document() + document([at(event, event["ts"] + 100) for event in EVENTS]),
        "two_lists.json": document()[:-1] + ', "traceEvents": ' + json.dumps([at(OPERATOR, 50)]) + "}",
        "device_is_object.json": document(deviceProperties=[{"id": {"a": 1}, "name": "x"}]),
        "device_of_kernel_is_object.json": document([OPERATOR, LAUNCH, {**KERNEL, "args": {"device": {"a": 1}}}]),
        "device_too_large.json": document(
            deviceProperties=[{"id": 0, "name": "x", "numSms": 2**63, "totalGlobalMem": 2**63}]
        ),
        "far_memory.json": document([*EVENTS, memory(12, 512), at(OPERATOR, -FAR_US), at(OPERATOR, FAR_US)]),
        "far_timeline.json": document([at(OPERATOR, -FAR_US), at(OPERATOR, FAR_US), LAUNCH, KERNEL]),
        "far_waits.json": document([*EVENTS, *WAITS]),
        "damaged_key.json": '{"schemaVersion: 1,' + document()[1:],
        "damaged_device.json": '{"deviceProperties": [{"id": 0, "name": "x"], ' + document()[1:],
        "cut_off.json": document()[:-30],
        "odd_inputs.json": document([*EVENTS, *ODD_INPUTS]),
        "huge_bandwidth.json": document(
            [*EVENTS, {**KERNEL, "cat": "gpu_memcpy", "args": {"bytes": 2**62, "memory bandwidth (GB/s)": 1e300}}]
        ),
    }.items()
}
BROKEN["nested.json.gz"] = gzip.compress(
    (document()[:-2] + ", " + '{"ph": "X", "args": [1, ' * NESTED + "]}").encode(), mtime=0
)
BROKEN["stray_bracket.json.gz"] = gzip.compress(BROKEN["stray_bracket.json"], mtime=0)
BROKEN["cut_off.json.gz"] = gzip.compress(document(EVENTS * 50).encode(), mtime=0)[:-40]


def write_broken(folder: Path) -> None:
    """Write each file into a separate folder, as rank 0 of a job."""
    for name, content in BROKEN.items():
        (folder / name).mkdir()
        (folder / name / ("rank0.json.gz" if name.endswith(".gz") else "rank0.json")).write_bytes(content)
