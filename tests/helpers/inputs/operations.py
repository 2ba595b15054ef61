"""Tables of operations with known times; each operation starts when the operations it depends on have ended."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cached_property

import polars as pl

Needs = Callable[[str, int, int, int], int]
"""Returns the time from the start of an operation's last participant to the end of the operation, in ns.

The arguments are kind, replica, stage and microbatch; the microbatch is -1 if the operation has none.
"""

Key = tuple[str, int, int, int]

_COLUMNS = ["rank", "dp_rank", "stage", "step", "microbatch", "kind", "start_ns", "duration_ns"]


def pipelined_step(stages: int, microbatches: int, replicas: int, needs: Needs, *, step: int = 0) -> pl.DataFrame:
    """Return the operations of one step in 1F1B order; each starts as early as possible.

    Operations have the same kinds as in the traces published with the OSDI'25 paper.
    """
    job = _Job(stages, microbatches, replicas, needs)
    rows = [
        (replica * stages + stage, replica, stage, step, number, kind, job.start(key), job.end(key) - job.start(key))
        for key in job.operations()
        for kind, replica, stage, number in [key]
    ]
    return pl.DataFrame(rows, _COLUMNS, orient="row")


def drawn(seed: int, low: int = 10, high: int = 100) -> Needs:
    """Return a function that draws a random time for an operation, always the same time for the same operation."""

    def needs(*key: object) -> int:
        return random.Random(f"{seed} {key}").randint(low, high)  # noqa: S311 -- not a secret

    return needs


def one_f_one_b(stage: int, stages: int, microbatches: int) -> list[tuple[str, int]]:
    """Return the forward and backward passes of a stage in 1F1B order."""
    ahead = min(stages - stage, microbatches)
    actions = [("forward", number) for number in range(ahead)]
    for number in range(microbatches):
        actions += [("backward", number), ("forward", number + ahead)]
    return [(way, number) for way, number in actions if number < microbatches]


class _Job:
    """Computes when each operation of a step starts and ends from the operations that it depends on."""

    def __init__(self, stages: int, microbatches: int, replicas: int, needs: Needs) -> None:
        self._stages, self._microbatches, self._replicas, self._needs = stages, microbatches, replicas, needs
        self._starts: dict[Key, int] = {}

    def start(self, key: Key) -> int:
        if key not in self._starts:
            self._starts[key] = max((self.end(earlier) for earlier in self._before(key)), default=0)
        return self._starts[key]

    def end(self, key: Key) -> int:
        return max(self.start(member) for member in self._members(key)) + self._needs(*key)

    def operations(self) -> Iterator[Key]:
        for replica in range(self._replicas):
            for stage in range(self._stages):
                for kind in ("params-all-gather", *self._after_passes(stage)):
                    yield kind, replica, stage, -1
                for kind in self._of_microbatches(stage):
                    for number in range(self._microbatches):
                        yield kind, replica, stage, number

    @cached_property
    def _orders(self) -> list[list[tuple[str, int]]]:
        return [one_f_one_b(stage, self._stages, self._microbatches) for stage in range(self._stages)]

    def _is_last(self, stage: int) -> bool:
        return stage == self._stages - 1

    def _receives(self, way: str, stage: int) -> bool:
        return stage > 0 if way == "forward" else not self._is_last(stage)

    def _of_microbatches(self, stage: int) -> list[str]:
        kinds = ["forward-compute", "backward-compute"]
        if stage > 0:
            kinds += ["forward-recv", "backward-send"]
        return kinds if self._is_last(stage) else [*kinds, "forward-send", "backward-recv"]

    def _after_passes(self, stage: int) -> list[str]:
        has_embedding = self._stages > 1 and (stage == 0 or self._is_last(stage))
        embedding = ["embedding-grads-all-reduce"] if has_embedding else []
        first, last = ["gc", "layernorm-grads-all-reduce"], ["optimizer-clip-main-grad", "optimizer"]
        return [*first, *embedding, "grads-reduce-scatter", *last]

    def _before(self, key: Key) -> list[Key]:
        kind, replica, stage, _ = key
        if kind == "params-all-gather":
            return []
        if kind.endswith("compute"):
            return self._before_pass(key)
        if kind.endswith(("send", "recv")):
            return self._before_message(key)
        place = self._after_passes(stage).index(kind)
        if place:
            return [(self._after_passes(stage)[place - 1], replica, stage, -1)]
        return [self._pass(replica, stage, -1)]

    def _pass(self, replica: int, stage: int, place: int) -> Key:
        way, number = self._orders[stage][place]
        return f"{way}-compute", replica, stage, number

    def _before_pass(self, key: Key) -> list[Key]:
        kind, replica, stage, number = key
        way = kind.partition("-")[0]
        place = self._orders[stage].index((way, number))
        earlier = self._pass(replica, stage, place - 1) if place else ("params-all-gather", replica, stage, -1)
        received = [(f"{way}-recv", replica, stage, number)] if self._receives(way, stage) else []
        return [earlier, *received]

    def _before_message(self, key: Key) -> list[Key]:
        kind, replica, stage, number = key
        way, role = kind.split("-")
        first_backward = self._orders[stage].index(("backward", 0))
        keys: list[Key] = [(kind, replica, stage, number - 1)] if number else []
        if role == "send":
            keys.append((f"{way}-compute", replica, stage, number))
        elif number:
            keys.append((f"{way}-compute", replica, stage, number - 1))
        if way == "backward" and not number and first_backward > 1:
            keys.append(self._pass(replica, stage, first_backward - 2))
        return keys

    def _members(self, key: Key) -> list[Key]:
        kind, replica, stage, number = key
        onward = 1 if kind in ("forward-send", "backward-recv") else -1
        if kind.endswith("send"):
            return [key, (kind.replace("send", "recv"), replica, stage + onward, number)]
        if kind.endswith("recv"):
            return [key, (kind.replace("recv", "send"), replica, stage + onward, number)]
        if kind in ("params-all-gather", "grads-reduce-scatter"):
            return [(kind, other, stage, number) for other in range(self._replicas)]
        if kind == "embedding-grads-all-reduce":
            return [(kind, replica, other, number) for other in (0, self._stages - 1)]
        if kind == "optimizer-clip-main-grad":
            return [(kind, other, place, number) for other in range(self._replicas) for place in range(self._stages)]
        return [key]
