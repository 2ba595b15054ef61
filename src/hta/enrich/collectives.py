"""The collective operations of a rank, and the key by which other ranks know the same operation.

Names of kernels and groups differ between libraries and versions, so what they mean is worked out here alone.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import polars as pl

from hta.enrich.device_work import device_work
from hta.enrich.event_ranges import event_ranges
from hta.enrich.launches import launches
from hta.enrich.steps import window_of, windows
from hta.schema import EventKind, KernelKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hta.store.trace import RankTrace

HOST_COLLECTIVE = r"^(gloo|mpi|ucc):\w"
"""Annotations by which PyTorch marks collectives that the host itself carries out; `nccl:` only hands work over."""

_FAMILIES = (
    ("allreduce", r"all_?reduce"),
    ("allgather", r"all_?gather"),
    ("reducescatter", r"reduce_?scatter"),
    ("alltoall", r"all_?to_?all"),
    ("broadcast", r"broadcast"),
    ("sendrecv", r"send_?recv"),
    ("barrier", r"barrier"),
    ("gather", r"gather"),
    ("scatter", r"scatter"),
    ("reduce", r"reduce"),
    ("send", r"send"),
    ("recv", r"recv|receive"),
)
_SAME_SIZE = frozenset({"allreduce", "broadcast", "reduce", "barrier"})
"""Families in which all members give the same number of elements."""

_POINT_TO_POINT = frozenset({"send", "recv"})
"""Between two ranks; a sender need not wait for the others of its group."""

_NUMBERS = re.compile(r"\d+")


def collective_family(name: str) -> str:
    """Return which collective a kernel, annotation or collective name stands for, such as `allreduce` or `sendrecv`.

    A name that tells none, such as RCCL's `ncclDevKernel_Generic`, is returned without its arguments and numbers.
    """
    head = re.split(r"[(<]", name.removeprefix("void "), maxsplit=1)[0]
    for family, pattern in _FAMILIES:
        if re.search(pattern, head, re.IGNORECASE):
            return family
    return _NUMBERS.sub("", head).strip().lower()


def collectives(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the collectives of a rank: kernels on devices or, where there are none, annotations on the host.

    Sends and receives between two ranks are left out.

    Returns:
        Sorted by start_ns:

        event_index       uint32
        start_ns, end_ns  int64
        asked_ns          int64    when the host asked for it: the start of the launch where that is known
        name              str      of the kernel or annotation
        family            str      `collective_family`
        group             str      the same on all ranks of the process group; null where that is not known
        sequence          int64    number within the group; null where it was not recorded
        communication_id  uint64   null or 0 where it was not recorded
        content           str      element type, and size where it is the same on all ranks
    """
    found = _on_devices(rank_trace)
    rows = found if len(found) else _on_host(rank_trace)
    return rows.filter(~pl.col("family").is_in(_POINT_TO_POINT)).sort("start_ns", maintain_order=True)


def matchable_collectives(rank_trace: RankTrace, annotation: str | None = None) -> pl.DataFrame:
    """Return the collectives of a rank with a key that is the same for one operation on all ranks.

    The first of these that the trace tells makes the key: group and sequence number; the communication id; what it is
    (kind, type, size, group) and its place among its like within the step or whatever stands in for it.

    Args:
        rank_trace: the rank.
        annotation: what stands in for steps, see `hta.enrich.steps.windows`.

    Returns:
        Sorted by start: key uint64 and number int64, the same on all ranks; place int64, to tell several with one key
        and number apart; window int64, null outside of all; start_ns and duration_ns int64; by_order bool, whether
        only kind and order told the operation.
    """
    found = collectives(rank_trace)
    with_window = found.with_columns(window_of(windows(rank_trace, annotation), found["asked_ns"]))
    keyed = with_window.select(
        _key(),
        _number(),
        "window",
        "start_ns",
        (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"),
        (~_HAS_SEQUENCE & ~_HAS_ID).alias("by_order"),
    )
    hashed = keyed.with_columns(_hashed(keyed["key"]))
    return hashed.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).over("key", "number").alias("place"))


_HAS_SEQUENCE = pl.col("sequence").is_not_null() & pl.col("group").is_not_null()
_HAS_ID = pl.col("communication_id").fill_null(0) > 0


def _key() -> pl.Expr:
    by_order = pl.format(
        "order {} {} {} {}",
        "family",
        pl.col("content").fill_null(""),
        pl.col("group").fill_null(""),
        pl.col("window").cast(pl.String).fill_null(""),
    )
    by_group = pl.format("group {} {}", "family", "group")
    return pl.when(_HAS_SEQUENCE).then(by_group).when(_HAS_ID).then(pl.lit("id")).otherwise(by_order).alias("key")


def _number() -> pl.Expr:
    identity = pl.col("communication_id").reinterpret(signed=True)
    return pl.when(_HAS_SEQUENCE).then("sequence").when(_HAS_ID).then(identity).otherwise(0).alias("number")


def _hashed(texts: pl.Series) -> pl.Series:
    """Return numbers that are the same for equal texts in every process, so that ranks hand over little."""
    distinct = texts.unique().to_list()
    numbers = [int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") for text in distinct]
    table = pl.DataFrame({"key": distinct, "hash": numbers}, schema={"key": pl.String, "hash": pl.UInt64})
    return texts.to_frame().join(table, on="key", how="left", maintain_order="left")["hash"].alias("key")


def _on_devices(rank_trace: RankTrace) -> pl.DataFrame:
    work = device_work(rank_trace).filter(pl.col("kernel_kind") == KernelKind.COMMUNICATION)
    calls = rank_trace.derive(launches).select("event_index", "launch_start_ns")
    rows = work.select("event_index", "start_ns", "end_ns", "name").join(
        calls, on="event_index", how="left", maintain_order="left"
    )
    args = rank_trace.table("collectives", ["event_index", *_ARGS])
    known = rows.join(args, on="event_index", how="left", maintain_order="left")
    texts = known.with_columns(rank_trace.texts(known[column]) for column in _TEXTS)
    named = texts.with_columns(_family_of(texts["collective"].fill_null(texts["name"])))
    same_size = pl.col("family").is_in(_SAME_SIZE)
    size = pl.when(same_size).then(pl.col("in_elements").cast(pl.String)).fill_null("")
    return named.select(
        *_SHARED,
        pl.coalesce("launch_start_ns", "start_ns").alias("asked_ns"),
        _group(rank_trace.header.world_size),
        "sequence",
        "communication_id",
        pl.format("{} {}", pl.col("dtype").fill_null(""), size).alias("content"),
    )


_SHARED = ("event_index", "start_ns", "end_ns", "name", "family")
_TEXTS = ("name", "collective", "dtype", "group_ranks", "group_description")
_ARGS = (
    "collective",
    "dtype",
    "in_elements",
    "group_size",
    "group_ranks",
    "group_description",
    "sequence",
    "communication_id",
    "global_rank_start",
    "global_rank_stride",
)


def _group(world_size: int | None) -> pl.Expr:
    """Return what all ranks of a group, and no ranks of another one, call it.

    Names of groups are numbers of each process. The list of ranks is cut after 30 of them, but lists of different
    groups of the same size and description differ before that. Without a list only the group of all ranks is known.
    """
    listed = pl.col("group_ranks").fill_null("").str.contains(r"\d")
    is_whole_job = (pl.col("group_description") == "default_pg") | (pl.col("group_size") == (world_size or -1))
    parts = ["group_ranks", "group_size", "group_description", "global_rank_start", "global_rank_stride"]
    identity = pl.concat_str([pl.col(part).cast(pl.String).fill_null("") for part in parts], separator=" ")
    return pl.when(listed).then(identity).when(is_whole_job).then(pl.lit("all")).alias("group")


def _on_host(rank_trace: RankTrace) -> pl.DataFrame:
    columns = ["event_index", "start_ns", "end_ns", "name"]
    rows = event_ranges(rank_trace, [EventKind.USER_ANNOTATION], columns)
    inputs = rank_trace.table("operator_inputs", ["event_index", "input_dims", "input_types"])
    named = rows.with_columns(rank_trace.texts(rows["name"])).filter(pl.col("name").str.contains(HOST_COLLECTIVE))
    known = named.join(inputs, on="event_index", how="left", maintain_order="left")
    content = [rank_trace.texts(known[column]).fill_null("") for column in ("input_types", "input_dims")]
    return known.with_columns(_family_of(known["name"])).select(
        *_SHARED,
        pl.col("start_ns").alias("asked_ns"),
        pl.lit(None, pl.String).alias("group"),
        pl.lit(None, pl.Int64).alias("sequence"),
        pl.lit(None, pl.UInt64).alias("communication_id"),
        pl.select(pl.format("{} {}", *content)).to_series().alias("content"),
    )


def _family_of(names: pl.Series) -> pl.Series:
    distinct: Iterable[str] = names.unique().to_list()
    families = {name: collective_family(name) for name in distinct}
    return names.replace_strict(families, return_dtype=pl.String).alias("family")
