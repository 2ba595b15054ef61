"""Tests of finding the parallelism axis of each process group."""

from __future__ import annotations

import polars as pl
import pytest

from holotrace.enrich.across_ranks.axes import Use, axes_of_description, axes_of_groups, axis_of_use


@pytest.mark.parametrize(
    ("description", "axis"),
    [
        ("mesh_pp", "pp"),
        ("mesh_dp", "dp"),
        ("mesh_tp", "tp"),
        ("mesh_cp", "cp"),
        ("mesh_ep", "ep"),
        ("mesh_dp_shard", "fsdp"),
        ("mesh_dp_replicate", "dp"),
        ("mesh_fsdp", "fsdp"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "dp"),
        ("TENSOR_MODEL_PARALLEL_GROUP", "tp"),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "pp"),
        ("CONTEXT_PARALLEL_GROUP", "cp"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "ep"),
        ("EXPERT_DATA_PARALLEL_GROUP", "dp"),
        ("EXPERT_TENSOR_PARALLEL_GROUP", "tp"),
        ("default_pg", None),
        ("undefined", None),
        ("", None),
        (None, None),
    ],
)
def test_descriptions_name_axes(description, axis):
    """The axis follows from names of mesh dimensions in PyTorch and names of groups in Megatron."""
    assert axes_of_description(description) == ((axis,) if axis else ())


@pytest.mark.parametrize(
    ("description", "axes"),
    [
        ("mesh_dp_shard_cp", ("fsdp",)),
        ("mesh_dp_cp", ("dp",)),
        ("mesh_dp_replicate", ("dp",)),
        ("mesh_dp_shard_cp_tp", ("fsdp", "tp")),
        ("mesh_pp.mesh_tp", ("pp", "tp")),
        ("mesh_dp/mesh_tp", ("dp", "tp")),
        ("pp-2", ("pp",)),
        ("TENSOR_AND_DATA_PARALLEL_GROUP", ("dp", "tp")),
        ("TENSOR_AND_CONTEXT_PARALLEL_GROUP", ("tp", "cp")),
        ("EXPERT_TENSOR_AND_MODEL_PIPELINE_PARALLEL_GROUP", ("pp", "tp")),
        ("happy_tps_group", ()),
        ("a" * 5_000, ()),
    ],
)
def test_names_of_nested_groups_name_all_their_axes(description, axes):
    """A group that spans several mesh dimensions has no single axis, except that "dp with cp" is dp."""
    assert axes_of_description(description) == axes


def test_a_group_over_two_axes_is_ambiguous():
    """A group whose description names two dimensions has an unknown axis.

    If a group has no description, its axis is inferred from its calls.
    """
    groups = [([0, 1, 2, 3], "mesh_dp.mesh_tp"), ([4, 5, 6, 7], "")]

    assert _names(groups, [_GRADIENTS, _GRADIENTS]) == ["unknown", "dp"]


@pytest.mark.parametrize(
    ("use", "candidates"),
    [
        (Use(frozenset({"send", "recv"}), exchange="in turn"), ("pp",)),
        (Use(frozenset({"send", "recv", "barrier"}), exchange="in turn"), ("pp",)),
        (Use(frozenset({"send", "recv", "send_recv"}), exchange="in turn"), ("pp",)),
        (Use(frozenset({"send", "recv"}), exchange="ring"), ("cp",)),
        (Use(frozenset({"send", "recv"}), exchange="undecided"), ("pp", "cp")),
        (Use(frozenset({"send_recv"})), ("pp", "cp", "ep")),
        (Use(frozenset({"all_to_all"}), has_uneven=True), ("ep",)),
        (Use(frozenset({"all_to_all"})), ("ep", "cp")),
        (Use(frozenset({"all_gather", "reduce_scatter"}), is_fsdp=True), ("fsdp",)),
        (Use(frozenset({"all_gather", "reduce_scatter"})), ("fsdp", "tp")),
        (Use(frozenset({"all_reduce"}), forward_fraction=0.0), ("dp",)),
        (Use(frozenset({"all_reduce", "broadcast"}), forward_fraction=0.0), ("dp",)),
        (Use(frozenset({"all_reduce"}), forward_fraction=0.5), ("tp",)),
        (Use(frozenset({"all_reduce"}), forward_fraction=0.1), ("dp", "tp")),
        (Use(frozenset({"all_reduce"})), ("dp", "tp")),
        (Use(frozenset({"all_reduce"}), is_ddp=True), ("dp",)),
        (Use(frozenset({"barrier"})), ()),
    ],
)
def test_collectives_name_axes_or_leave_candidates(use, candidates):
    """If the collectives of a group fit two axes, both are candidates."""
    axis = axis_of_use(use)

    assert axis.candidates == candidates
    assert axis.name == (candidates[0] if len(candidates) == 1 else "unknown")


def _names(groups: list[tuple[list[int], str]], uses: list[Use]) -> list[str]:
    table = pl.DataFrame(
        {
            "group": list(range(len(groups))),
            "ranks": [ranks for ranks, _ in groups],
            "size": [len(ranks) for ranks, _ in groups],
            "description": [description for _, description in groups],
        }
    )
    axes = axes_of_groups(table, dict(enumerate(uses)))
    return [axes[number].name for number in range(len(groups))]


_SENDS = Use(frozenset({"send", "recv"}), exchange="in turn")
_GRADIENTS = Use(frozenset({"all_reduce"}), forward_fraction=0.01)


def test_blank_descriptions_leave_the_collectives_to_name_the_axes():
    """With two pipeline stages and two replicas, groups that send are pp, and groups that reduce gradients are dp."""
    groups = [([0, 2], ""), ([1, 3], ""), ([0, 1], ""), ([2, 3], "")]

    assert _names(groups, [_SENDS, _SENDS, _GRADIENTS, _GRADIENTS]) == ["pp", "pp", "dp", "dp"]


def test_a_described_group_names_those_of_equal_size_and_stride():
    """Only one group is described as mesh_tp; the other group has the same size and stride, so it is tp too."""
    assert _names([([0, 1], "mesh_tp"), ([2, 3], "")], [_GRADIENTS, _GRADIENTS]) == ["tp", "tp"]


def test_the_default_group_is_the_world_beside_other_axes_and_an_axis_alone():
    """The default group is dp if it is the only group, as in DDP, and `world` if the job also has a mesh."""
    everyone = [0, 1, 2, 3]

    assert _names([(everyone, "default_pg")], [_GRADIENTS]) == ["dp"]
    assert _names([(everyone, "default_pg"), ([0, 1], "mesh_tp")], [_GRADIENTS, _GRADIENTS]) == ["world", "tp"]


def test_one_group_that_sends_in_turn_names_its_equals():
    """If the ranks of one group send in turn, it is pp, and another group of the same size and stride is pp too.

    The recorded sends of the other group do not show whether its ranks send in turn or in a ring.
    """
    undecided = Use(frozenset({"send", "recv"}), exchange="undecided")

    assert _names([([0, 2], ""), ([1, 3], "")], [undecided, _SENDS]) == ["pp", "pp"]


def test_groups_without_ranks_have_a_shape_too():
    """The collectives of a group show its axis even if its ranks are unknown."""
    types = {"group": pl.Int64, "ranks": pl.List(pl.Int64), "size": pl.Int64, "description": pl.String}
    table = pl.DataFrame({"group": [0], "ranks": [None], "size": [64], "description": [""]}, types)

    assert axes_of_groups(table, {0: _SENDS})[0].name == "pp"


@pytest.mark.parametrize(
    ("use", "axes"),
    [
        (
            Use(frozenset({"all_to_all", "all_reduce", "barrier"}), forward_fraction=0.0, has_uneven=True),
            {"all_to_all": "ep", "all_reduce": "dp", "barrier": "dp"},
        ),
        (
            Use(frozenset({"all_to_all", "all_reduce"}), forward_fraction=0.0),
            {"all_to_all": "unknown", "all_reduce": "dp"},
        ),
        (
            Use(frozenset({"send", "recv", "all_reduce"}), forward_fraction=0.0, exchange="in turn"),
            {"send": "pp", "recv": "pp", "all_reduce": "dp"},
        ),
        (
            Use(frozenset({"all_to_all", "all_gather", "all_reduce", "broadcast"}), is_fsdp=True, has_uneven=True),
            {"all_to_all": "ep", "all_gather": "fsdp", "all_reduce": "fsdp", "broadcast": "ep"},
        ),
        (
            Use(frozenset({"all_gather", "all_reduce", "barrier"}), is_ddp=True),
            {"all_gather": "unknown", "all_reduce": "dp", "barrier": "dp"},
        ),
        (Use(frozenset({"all_gather", "all_reduce"}), is_fsdp=True), {"all_gather": "fsdp", "all_reduce": "fsdp"}),
    ],
)
def test_a_group_with_several_purposes_has_an_axis_for_each(use, axes):
    """A recommender exchanges embeddings and reduces gradients in one group; each kind of call gets its own axis."""
    axis = axis_of_use(use)

    assert {collective: axis.of(collective).name for collective in axes} == axes
