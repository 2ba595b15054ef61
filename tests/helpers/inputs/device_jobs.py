"""Jobs of one rank on a GPU, with operators of known shapes and kernels of known durations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from holotrace.analyses.diagnosis.rank_examination import examined
from holotrace.analyses.diagnosis.rule import RankCase, Said
from holotrace.analyses.diagnosis.rules.all_rules import RULES
from holotrace.ingest.open_trace import open_trace
from holotrace.store.trace import Trace
from holotrace.testing.builder import TraceBuilder

EXAMPLES = Path(__file__).parents[3] / "examples" / "gpu" / "traces"

H100 = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 80_000_000_000,
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 233472,
}
V100 = {**H100, "name": "Tesla V100-SXM2-32GB", "computeMajor": 7, "numSms": 80}
BFLOAT16, FLOAT32 = "c10::BFloat16", "float"


class DeviceJob:
    """Steps of 1 ms on one stream. The host launches far ahead, so the device determines how long a step takes."""

    def __init__(self, device: Mapping[str, Any] = H100, steps: int = 3) -> None:
        """Begin a job on the given device."""
        self._builder = TraceBuilder().header(deviceProperties=[dict(device)])
        self._steps = steps
        for number in range(steps):
            self._builder.step(number, 1000 * number, 1000)

    def call(
        self,
        operator: str,
        kernel: str,
        *,
        start_us: float,
        duration_us: float,
        dims: Sequence[Any] = (),
        types: Sequence[str] = (),
        strides: Sequence[Any] = (),
        args: Mapping[str, Any] | None = None,
        stream: int = 7,
    ) -> DeviceJob:
        """Add an operator with one kernel to each step; `start_us` counts from the start of the step."""
        shapes = {"Input Dims": dims, "Input type": types, "Input Strides": strides}
        recorded = {name: json.loads(json.dumps(value)) for name, value in shapes.items() if value}
        for number in range(self._steps):
            begin = 1000 * number + start_us
            self._builder.operator(operator, start_us=begin - 1, duration_us=0.8, args=recorded)
            self._builder.kernel(
                kernel,
                start_us=begin,
                duration_us=duration_us,
                launch_us=begin - 0.9,
                launch_duration_us=0.5,
                stream=stream,
                args=args,
            )
        return self

    def product(
        self, rows: int, inner: int, columns: int, *, duration_us: float, start_us: float = 10, **options: Any
    ) -> DeviceJob:
        """Add the product `[rows, inner] x [inner, columns]`.

        By default, the product is computed in bfloat16 on tensor cores; the options `type` and `kernel` change this.
        """
        element = options.get("type", BFLOAT16)
        return self.call(
            "aten::mm",
            options.get("kernel", "nvjet_sm90_tst_128x128"),
            start_us=start_us,
            duration_us=duration_us,
            dims=[[rows, inner], [inner, columns]],
            types=[element, element],
            strides=[[inner, 1], [columns, 1]],
        )

    @property
    def builder(self) -> TraceBuilder:
        """The builder, for adding other events."""
        return self._builder

    def build(self) -> Trace:
        """Return the trace."""
        return self._builder.build()


@cache
def recorded(name: str) -> Trace:
    """Return a job of `examples/gpu/traces`; each job is opened only once."""
    return open_trace(EXAMPLES / name)


def cases_of(trace: Trace, rule: str) -> dict[str, RankCase]:
    """Return {subject: case} of a rule on the first rank; the dict is empty if the rule does not apply."""
    (rank_trace, *_) = trace.ranks.values()
    return dict(examined(rank_trace, rules=[known for known in RULES if known.name == rule]).cases.get(rule, {}))


def said(trace: Trace, rule: str) -> Said:
    """Return the rule's sentences for its cases on the first rank."""
    (known,) = (known for known in RULES if known.name == rule)
    return known.say(list(cases_of(trace, rule).values()))


def missing_for(trace: Trace, rule: str) -> str | None:
    """Return the name of the data that a rule needs and the trace lacks, or None if the rule can be checked."""
    (rank_trace, *_) = trace.ranks.values()
    return examined(rank_trace, rules=[known for known in RULES if known.name == rule]).not_checked.get(rule)
