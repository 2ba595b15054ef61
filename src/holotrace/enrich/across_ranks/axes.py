"""The axis of parallelism that each process group serves: data, tensor, pipeline, expert or context parallel.

Names of meshes and groups: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.device_mesh.DeviceMesh and
https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/parallel_state.py
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import Literal, NamedTuple

import polars as pl

AXES = ("pp", "tp", "cp", "ep", "fsdp", "dp", "world", "unknown")
"""Pipeline, tensor, context, expert, fully sharded data and data parallel, and the group of all ranks beside another axis.

Where several communicate at once, exposed time counts for the first of them: those that block the next layer come before
those that only block the optimizer.
"""

NamedBy = Literal["description", "equal groups", "collectives", "nothing"]

_NAMES = tuple(
    (axis, re.compile(pattern, re.IGNORECASE))
    for axis, pattern in (
        ("pp", r"(^|_)pp($|_)|pipe|stage"),
        ("fsdp", r"fsdp|shard|zero"),
        ("dp", r"(^|_)[he]?dp($|_)|(^|_)ddp($|_)|data|replica"),
        ("tp", r"(^|_)e?tp($|_)|tensor"),
        ("ep", r"(^|_)ep($|_)|expert|moe"),
        ("cp", r"(^|_)[cs]p($|_)|context|sequence|ulysses|ring"),
    )
)
"""The first pattern that a description contains decides; "expert data parallel" is a data axis."""

_DEFAULT_GROUP = "default_pg"
_PAIRWISE = frozenset({"send", "recv", "send_recv"})
_SETUP = frozenset({"barrier", "broadcast", "gather", "scatter", "unknown"})

EARLY = 0.1
LATE = 0.25
"""A gradient cannot be reduced in the first quarter of a step; a tensor-parallel layer reduces in its first tenth."""


class Use(NamedTuple):
    """How a group is used.

    families       kinds of communication
    first_part     where in a step its first all-reduce begins, 0..1, the median over steps and ranks; None outside steps
    has_uneven     whether it has all-to-alls with uneven splits
    is_fsdp        whether operators of FSDP ask for its collectives
    """

    families: frozenset[str]
    first_part: float | None = None
    has_uneven: bool = False
    is_fsdp: bool = False


class Axis(NamedTuple):
    """The axis of a group; several candidates where the trace does not decide."""

    candidates: tuple[str, ...]
    named_by: NamedBy

    @property
    def name(self) -> str:
        """The axis, `unknown` if there are several candidates or none."""
        return self.candidates[0] if len(self.candidates) == 1 else "unknown"


def axis_of_description(description: str | None) -> str | None:
    """Return the axis that the description of a group names; None if it names none.

    >>> axis_of_description("mesh_dp_shard_cp"), axis_of_description("PIPELINE_MODEL_PARALLEL_GROUP")
    ('fsdp', 'pp')
    """
    return next((axis for axis, pattern in _NAMES if pattern.search(description or "")), None)


def axis_of_use(use: Use) -> Axis:
    """Return the axis that uses its group in this way, or the candidates.

    send, recv                      pp
    all_to_all                      ep if a split is uneven, else ep or cp
    all_gather and reduce_scatter   fsdp if its operators ask for them, else fsdp or tp
    all_reduce                      dp if the first of a step comes after a quarter of it, tp if within a tenth
    """
    families = use.families - _SETUP
    if not families:
        return Axis((), "nothing")
    if families <= _PAIRWISE:
        return Axis(("pp",), "collectives")
    if "all_to_all" in families:
        return Axis(("ep",) if use.has_uneven else ("ep", "cp"), "collectives")
    if families & {"all_gather", "reduce_scatter"}:
        return Axis(("fsdp",) if use.is_fsdp else ("fsdp", "tp"), "collectives")
    return Axis(_of_all_reduces(use.first_part), "collectives")


def _of_all_reduces(first_part: float | None) -> tuple[str, ...]:
    if first_part is None or EARLY <= first_part < LATE:
        return ("dp", "tp")
    return ("dp",) if first_part >= LATE else ("tp",)


def axes_of_groups(groups: pl.DataFrame, uses: Mapping[int, Use]) -> dict[int, Axis]:
    """Return {group: its axis}.

    The description decides if it names an axis. Other groups of equal size and stride are one axis: a described one among
    them names all; else their collectives do. The default group is `world` if the job has other axes, else an axis itself.

    Args:
        groups: `Matching.groups`.
        uses: {group: how it is used}; groups that are not used have no axis.
    """
    rows = [row for row in groups.iter_rows(named=True) if row["group"] in uses]
    named = {row["group"]: axis_of_description(row["description"]) for row in rows if not _is_default(row)}
    axes = {group: Axis((axis,), "description") for group, axis in named.items() if axis}
    others = [row for row in rows if row["group"] not in axes]
    for alike in _of_equal_shape(others):
        axes |= dict.fromkeys(alike, _shared_axis(alike, rows, axes, uses))
    return _with_world(axes, [row["group"] for row in rows if _is_default(row)])


def _is_default(row: Mapping[str, object]) -> bool:
    return row["description"] == _DEFAULT_GROUP


def _shape(row: Mapping[str, object]) -> tuple[int, int | None, bool]:
    """Return size, stride (None if uneven or unknown) and whether it is the default group."""
    ranks = row["ranks"] if isinstance(row["ranks"], list) else []
    strides = {after - before for before, after in pairwise(ranks)}
    return len(ranks), strides.pop() if len(strides) == 1 else None, _is_default(row)


def _of_equal_shape(rows: Iterable[Mapping[str, object]]) -> list[list[int]]:
    shapes: dict[tuple[int, int | None, bool], list[int]] = {}
    for row in rows:
        shapes.setdefault(_shape(row), []).append(int(str(row["group"])))
    return list(shapes.values())


def _shared_axis(
    alike: Collection[int], rows: list[dict[str, object]], axes: Mapping[int, Axis], uses: Mapping[int, Use]
) -> Axis:
    shape = next(_shape(row) for row in rows if row["group"] in alike)
    described = {axes[int(str(row["group"]))].name for row in rows if row["group"] in axes and _shape(row) == shape}
    if len(described) == 1:
        return Axis((described.pop(),), "equal groups")
    return axis_of_use(_joined(uses[group] for group in alike))


def _joined(uses: Iterable[Use]) -> Use:
    """Return how groups of one axis are used together."""
    listed = list(uses)
    parts = [use.first_part for use in listed if use.first_part is not None]
    return Use(
        frozenset().union(*(use.families for use in listed)),
        sorted(parts)[len(parts) // 2] if parts else None,
        any(use.has_uneven for use in listed),
        any(use.is_fsdp for use in listed),
    )


def _with_world(axes: dict[int, Axis], default_groups: Collection[int]) -> dict[int, Axis]:
    has_others = any(group not in default_groups for group in axes)
    world = dict.fromkeys(default_groups, Axis(("world",), "description")) if has_others else {}
    return axes | world
