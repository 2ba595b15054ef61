"""Finds the axis of parallelism of each process group: data, tensor, pipeline, expert or context parallel.

Names of meshes and groups: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.device_mesh.DeviceMesh and
https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/parallel_state.py
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

AXES = ("pp", "tp", "cp", "ep", "fsdp", "dp", "world", "unknown")
"""The axes: pipeline, tensor, context and expert parallel, fully sharded data parallel, and data parallel. `world` is
the group of all ranks if the job also has other axes.

If several axes communicate at once, exposed time is assigned to the first of them in this list. Axes whose
communication blocks the next layer come before axes whose communication only blocks the optimizer.
"""

NamedBy = Literal["description", "equal groups", "collectives", "nothing"]

Exchange = Literal["in turn", "ring", "undecided", "unknown"]
"""The order in which the ranks of a group send and receive.

    in turn    in a step, ranks mostly send only after receiving, like all pipeline stages except the first
    ring       three or more ranks that all send and receive; each sends to only one rank, mostly before it receives
    undecided  either `in turn` or `ring`: two ranks send to each other at once, or ranks in a circle send one after
               the other
    unknown    no send or receive is known
"""

_NAMES = tuple(
    (axis, re.compile(pattern, re.IGNORECASE))
    for axis, pattern in (
        ("pp", r"(^|[^a-z0-9])pp($|[^a-z0-9])|pipe|stage"),
        ("fsdp", r"fsdp|shard|zero"),
        ("dp", r"(^|[^a-z0-9])(h|e)?d?dp($|[^a-z0-9])|data|replica"),
        ("tp", r"(^|[^a-z0-9])e?tp($|[^a-z0-9])|tensor"),
        ("ep", r"(^|[^a-z0-9])ep($|[^a-z0-9])|expert|moe"),
        ("cp", r"(^|[^a-z0-9])[cs]p($|[^a-z0-9])|context|sequence|ulysses|ring"),
    )
)
_PART_OF = {"dp": {"fsdp"}, "cp": {"fsdp", "dp"}, "ep": {"fsdp", "dp", "tp"}}
"""For each axis, the axes that are chosen instead if a description matches their patterns, too.

`mesh_dp_shard` matches the patterns of dp and fsdp, but its axis is fsdp. "data parallel with context parallel" matches
the patterns of dp and cp, and "expert data parallel" matches those of dp and ep; the axis of both is dp.
"""

FSDP_ANNOTATION = r"^FSDP::"
"""Annotations of fully sharded data parallelism, such as `FSDP::all_gather (layers.0)`.

Source: https://github.com/pytorch/pytorch/blob/main/torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py
"""

DDP = "DistributedDataParallel"
DDP_ANNOTATION = r"^DistributedDataParallel\.forward$"
"""Source: https://github.com/pytorch/pytorch/blob/main/torch/nn/parallel/distributed.py"""

_EXCHANGES: tuple[Exchange, ...] = ("in turn", "undecided", "ring")
"""Possible values for an axis. If the groups of an axis differ, the axis gets the value that comes first here."""

_DEFAULT_GROUP = "default_pg"
_PURPOSES = {
    **dict.fromkeys(("send", "recv", "send_recv"), "pairs"),
    "all_to_all": "all_to_all",
    **dict.fromkeys(("all_gather", "reduce_scatter"), "gather"),
    **dict.fromkeys(("all_reduce", "reduce"), "all_reduce"),
}
_SETUP = frozenset({"barrier", "broadcast", "gather", "scatter", "unknown"})

MOST_BESIDE_GRADIENTS = 0.05
LEAST_OF_LAYERS = 0.25
"""Limits for the fraction of a group's all-reduced bytes that is requested in the forward pass.

In a data parallel group, this fraction is at most `MOST_BESIDE_GRADIENTS`: the ranks reduce gradients in or after the
backward pass; in the forward pass, they reduce at most a few small tensors. In a tensor parallel group, the fraction is
at least `LEAST_OF_LAYERS`: it is about a half, or a third with activation checkpointing.
"""


class Use(NamedTuple):
    """What a group's communication shows about its purpose.

    families          kinds of communication
    forward_fraction  fraction of the all-reduced bytes requested in the forward pass, 0..1; None if unknown
    has_uneven        whether it has all-to-alls with uneven splits
    is_fsdp           whether FSDP operators request its collectives
    is_ddp            whether DDP requests its all-reduces
    exchange          the order in which its ranks send and receive
    """

    families: frozenset[str]
    forward_fraction: float | None = None
    has_uneven: bool = False
    is_fsdp: bool = False
    is_ddp: bool = False
    exchange: Exchange = "unknown"


class Axis(NamedTuple):
    """The axis of a group; several candidates if the trace does not determine the axis.

    by_collective  the axis of each kind of communication, if the group has several purposes; else empty
    """

    candidates: tuple[str, ...]
    named_by: NamedBy
    by_collective: Mapping[str, Axis] = MappingProxyType({})

    @property
    def name(self) -> str:
        """The only candidate, else `unknown`."""
        return self.candidates[0] if len(self.candidates) == 1 else "unknown"

    def of(self, collective: str) -> Axis:
        """Return the group's axis for this kind of communication."""
        return self.by_collective.get(collective, self)


def axes_of_description(description: str | None) -> tuple[str, ...]:
    """Return the axes that the description of a group names; several if the group spans several mesh dimensions.

    >>> axes_of_description("mesh_dp_shard_cp"), axes_of_description("TENSOR_AND_PIPELINE_PARALLEL_GROUP")
    (('fsdp',), ('pp', 'tp'))
    """
    named = [axis for axis, pattern in _NAMES if pattern.search(description or "")]
    return tuple(axis for axis in named if not _PART_OF.get(axis, set()) & set(named))


def axis_of_use(use: Use) -> Axis:
    """Return the axis for which a group is used; several candidates if its use fits more than one axis.

    send, recv                      pp if in turn, cp in a ring, else pp or cp
    send_recv alone                 pp, cp or ep: the direction of batched messages is not recorded
    all_to_all                      ep if a split is uneven, else ep or cp
    all_gather and reduce_scatter   fsdp if FSDP operators request them; unknown if the group also uses DDP, which does
                                    not shard; else fsdp or tp
    all_reduce                      dp if DDP requests them or nearly all bytes are requested in or after the backward
                                    pass; tp if many bytes are requested in the forward pass; else dp or tp

    A group with several kinds of communication has one axis for each kind. A recommender, for example, exchanges the
    rows of its embedding tables and reduces gradients among the same ranks. If a group uses all_gather or
    reduce_scatter besides all_reduce, its all-reduces get a separate axis only if DDP requests them.
    """
    purposes = _purposes(use)
    if not purposes:
        return Axis((), "nothing")
    axes = {purpose: Axis(_candidates(purpose, use), "collectives") for purpose in purposes}
    if len(axes) == 1:
        return next(iter(axes.values()))
    of_setup = axes.get("all_reduce", next(iter(axes.values())))
    of_families = {family: axes.get(_purpose(family, purposes), of_setup) for family in sorted(use.families)}
    candidates = (candidate for axis in axes.values() for candidate in axis.candidates)
    return Axis(tuple(dict.fromkeys(candidates)), "collectives", of_families)


def _purposes(use: Use) -> list[str]:
    purposes = sorted({_PURPOSES[family] for family in use.families - _SETUP})
    return [purpose for purpose in purposes if purpose != "all_reduce" or use.is_ddp or "gather" not in purposes]


def _purpose(family: str, purposes: Collection[str]) -> str:
    purpose = _PURPOSES.get(family, "")
    return "gather" if purpose == "all_reduce" and purpose not in purposes else purpose


def _candidates(purpose: str, use: Use) -> tuple[str, ...]:
    if purpose == "pairs":
        return _of_messages(use)
    if purpose == "all_to_all":
        return ("ep",) if use.has_uneven else ("ep", "cp")
    if purpose == "gather":
        return ("fsdp",) if use.is_fsdp else () if use.is_ddp else ("fsdp", "tp")
    return ("dp",) if use.is_ddp else _of_all_reduces(use.forward_fraction)


def _of_messages(use: Use) -> tuple[str, ...]:
    if not use.families & {"send", "recv"}:
        return ("pp", "cp", "ep")
    return {"in turn": ("pp",), "ring": ("cp",)}.get(use.exchange, ("pp", "cp"))


def _of_all_reduces(forward_fraction: float | None) -> tuple[str, ...]:
    if forward_fraction is None or MOST_BESIDE_GRADIENTS < forward_fraction < LEAST_OF_LAYERS:
        return ("dp", "tp")
    return ("dp",) if forward_fraction <= MOST_BESIDE_GRADIENTS else ("tp",)


def axes_of_groups(groups: pl.DataFrame, uses: Mapping[int, Use]) -> dict[int, Axis]:
    """Return {group: its axis}.

    If the description of a group names an axis, the group has this axis. Among the other groups, those of
    equal size and stride share one axis:

    - If the descriptions of groups of this size and stride name exactly one axis, the other groups have the same axis.
    - If the descriptions name no axis or several axes, the axis of the other groups is inferred from the collectives of
      these other groups.

    If other groups have axes, the default group has the axis `world`; otherwise it gets an axis like any other group.

    Args:
        groups: `Matching.groups`.
        uses: {group: how it is used}; unused groups get no axis.
    """
    used = [group for group in _groups(groups) if group.number in uses]
    defaults = {group.number for group in used if group.description == _DEFAULT_GROUP}
    named = {group.number: axes_of_description(group.description) for group in used if group.number not in defaults}
    axes = {number: Axis(candidates, "description") for number, candidates in named.items() if candidates}
    described = _described_shapes(used, axes)
    for shape, alike in _of_equal_shape(group for group in used if group.number not in axes).items():
        shared = _shared_axis(described.get(shape, set()), [uses[number] for number in alike])
        axes |= dict.fromkeys(alike, shared)
    return _with_world(axes, defaults)


_Shape: TypeAlias = tuple[int, int | None, bool]
"""The size of a group, its stride (None if uneven or unknown), and whether it is the default group."""


class _Group(NamedTuple):
    number: int
    ranks: list[int] | None
    size: int
    description: str | None

    @property
    def shape(self) -> _Shape:
        strides = {after - before for before, after in pairwise(self.ranks or [])}
        return self.size, strides.pop() if len(strides) == 1 else None, self.description == _DEFAULT_GROUP


def _groups(groups: pl.DataFrame) -> list[_Group]:
    return [_Group(*row) for row in groups.select("group", "ranks", "size", "description").iter_rows()]


def _described_shapes(groups: Iterable[_Group], axes: Mapping[int, Axis]) -> dict[_Shape, set[str]]:
    """Return, for each shape, the axes named in the descriptions of groups of this shape."""
    shapes: dict[_Shape, set[str]] = {}
    for group in groups:
        if group.number in axes and axes[group.number].name != "unknown":
            shapes.setdefault(group.shape, set()).add(axes[group.number].name)
    return shapes


def _of_equal_shape(groups: Iterable[_Group]) -> dict[_Shape, list[int]]:
    shapes: dict[_Shape, list[int]] = {}
    for group in groups:
        shapes.setdefault(group.shape, []).append(group.number)
    return shapes


def _shared_axis(described: Collection[str], uses: Iterable[Use]) -> Axis:
    """Return the axis that all groups of one shape share.

    If `described` contains exactly one axis, return this axis; otherwise, the axis that fits the use of the groups.
    """
    return Axis(tuple(described), "equal groups") if len(described) == 1 else axis_of_use(_joined(uses))


def _joined(uses: Iterable[Use]) -> Use:
    """Combine the uses of all groups of one axis into a single use."""
    listed = list(uses)
    fractions = [use.forward_fraction for use in listed if use.forward_fraction is not None]
    exchanges = {use.exchange for use in listed} - {"unknown"}
    return Use(
        frozenset().union(*(use.families for use in listed)),
        sorted(fractions)[len(fractions) // 2] if fractions else None,
        any(use.has_uneven for use in listed),
        any(use.is_fsdp for use in listed),
        any(use.is_ddp for use in listed),
        next((exchange for exchange in _EXCHANGES if exchange in exchanges), "unknown"),
    )


def _with_world(axes: dict[int, Axis], default_groups: Collection[int]) -> dict[int, Axis]:
    has_others = any(group not in default_groups for group in axes)
    world = dict.fromkeys(default_groups, Axis(("world",), "description")) if has_others else {}
    return axes | world
