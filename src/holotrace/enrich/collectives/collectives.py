"""Reads the communication of a rank from its trace.

Names of kernels and groups differ between libraries and versions; only this module interprets them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import polars as pl

from holotrace.algorithms.nested.innermost import NO_OWNER
from holotrace.algorithms.signatures import function_name
from holotrace.enrich.collectives.element_types import common_type, element_bytes, input_bytes
from holotrace.enrich.device.device_work import device_work
from holotrace.enrich.device.launches import asked_for, launches, of_work
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.enrich.events.event_rows import of_events
from holotrace.enrich.host.annotations import innermost_of
from holotrace.schema import LAUNCH_KINDS, EventKind, KernelKind
from holotrace.store.derived import derived, derived_under_rules
from holotrace.store.trace import RankTrace

_SCANNED_LENGTH = 1_000
"""Only this many characters of a name are searched for patterns, because the traced program chooses the names, and they
may be very long."""

HOST_COLLECTIVE = r"^(gloo|mpi|ucc):\w"
"""Matches annotations of collectives that run on the host. NCCL's collectives are excluded: they run on devices, and
the host only launches them."""

_FAMILIES = tuple(
    (family, re.compile(pattern, re.IGNORECASE))
    for family, pattern in (
        ("all_reduce", r"all_?reduce|cross_device_reduce|quick_?reduce|rdxn_on_stream"),
        ("reduce_scatter", r"reduce_?scatter|userbuffers_\w*_rs(_|$)"),
        ("all_gather", r"all_?gather|fcollect|userbuffers_\w*_ag(_|$)"),
        ("all_to_all", r"all_?(to|2)_?all|a2a|dispatch|combine"),
        ("broadcast", r"broadcast|bcast"),
        ("send_recv", r"send_?recv"),
        ("barrier", r"barrier|device_sync|(^|_)sync_on_stream"),
        ("all_reduce", r"(one|two|1|2)_?shot|lamport|(^|_|::)userbuffers_fp16_sum"),
        ("gather", r"gather"),
        ("scatter", r"scatter"),
        ("reduce", r"reduce"),
        ("send", r"send|(^|_|::)put(_|$|[A-Z])"),
        ("recv", r"recv|receive|(^|_|::)get_signal"),
    )
)
"""The collectives, as torch.distributed names them, with patterns for their names in traces; the first match decides.

Source: https://docs.pytorch.org/docs/stable/distributed.html#collective-functions
"""

UNKNOWN_COLLECTIVE = "unknown"

FAMILIES = (*dict.fromkeys(family for family, _ in _FAMILIES), UNKNOWN_COLLECTIVE)
"""The values of the column `family`."""

SAME_SIZE = frozenset({"all_reduce", "broadcast", "reduce", "barrier"})
"""Families in which every rank contributes the same number of elements."""

POINT_TO_POINT = ("send", "recv")
"""Calls between two ranks."""

IS_POINT_TO_POINT = pl.col("family").is_in(POINT_TO_POINT)
"""Whether an operation is between two ranks; if so, the other ranks of the group need not wait for it."""

COLLECTIVE_CALL = r"^(nccl|rccl|xccl|hccl|mccl|cncl|ucc|mpi|gloo):(\w+)"
"""Matches PyTorch's annotation of a host range that launches a collective on a device or performs it on the host."""


def collective_family(name: str) -> str | None:
    """Return the collective, such as `all_reduce` or `send_recv`, from the name of a kernel, annotation or collective.

    None if the name does not show the collective, as with RCCL's `ncclDevKernel_Generic`. Dispatch and combine, the
    exchanges of expert parallelism, are all-to-alls.
    """
    function = function_name(name)[:_SCANNED_LENGTH]
    return next((family for family, pattern in _FAMILIES if pattern.search(function)), None)


@derived_under_rules
def communication(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the communication of a rank: kernels on devices or, if there are none, annotations on the host.

    Values missing from a kernel's args are taken from the host call around its launch: `record_param_comms`, or an
    annotation such as `nccl:all_reduce`. The shapes and types of the inputs are taken from there, too, if they were
    recorded.

    Returns:
        Sorted by start_ns:

        event_index          uint32
        described_index      uint32  event that describes the call: this event if it has args, else the host call around
                                     its launch; null if there is none
        start_ns, end_ns     int64
        asked_ns             int64   when the host requested the call; null if before the recording
        name                 str     name of the kernel or annotation
        recorded_collective  str     name of the collective in the args, such as `allreduce`; null if missing
        family               str     collective, such as `all_reduce`, found in the args, in the annotation of the host
                                     call or in name, in this order; `unknown` if none of them names one
        dtype                str     recorded name of the element type; null if unknown
        byte_count           int64   bytes that this rank contributes; null if unknown
        group                str     name that is equal on all ranks of the process group; null if unknown
        sequence             int64   number of the call within the group; null if not recorded
        communication_id     uint64  equal on all ranks of one operation; null or 0 if not recorded
    """
    on_devices = _on_devices(rank_trace)
    rows = on_devices if len(on_devices) else host_collectives(rank_trace)
    return rows.sort("start_ns", maintain_order=True)


def collectives(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the rows of `communication`, except sends and receives between two ranks."""
    return communication(rank_trace).filter(~IS_POINT_TO_POINT)


def stable_numbers(texts: pl.Series) -> pl.Series:
    """Return a uint64 hash of each string, equal in all processes, so ranks can exchange hashes instead of strings."""
    return answers(texts, stable_number, pl.UInt64).alias(texts.name)


def stable_number(text: str | None) -> int | None:
    """Return a 64-bit hash of a string, equal in all processes; None for None."""
    return None if text is None else int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _on_devices(rank_trace: RankTrace) -> pl.DataFrame:
    work = device_work(rank_trace).filter(pl.col("kernel_kind") == KernelKind.COMMUNICATION)
    calls = of_work(launches(rank_trace), work).select("launch_index", "launch_start_ns")
    asked = of_work(asked_for(rank_trace), work).select("asked_ns")
    rows = work.select("event_index", "start_ns", "end_ns", "name").hstack(calls).hstack(asked)
    known = _described(rank_trace, rows.with_columns(_described_by(rank_trace, rows)))
    named = known.with_columns(_family_of(known["collective"], known["name"]))
    return named.select(
        *_SHARED,
        "asked_ns",
        _group(rank_trace.header.world_size),
        "sequence",
        "communication_id",
    )


def _described_by(rank_trace: RankTrace, rows: pl.DataFrame) -> pl.Series:
    """Return the event that describes each kernel: the kernel if it has args, or the host call around its launch."""
    described = rank_trace.table("collectives", ["event_index"])["event_index"]
    is_silent = ~rows["event_index"].is_in(described.implode())
    kernels = rows["event_index"].to_frame("described_index").with_row_index("row")
    if not is_silent.any():
        return kernels["described_index"]
    calls, silent = _host_calls(rank_trace, described), rows.filter(is_silent)
    tracks = of_events(rank_trace.events_of(LAUNCH_KINDS, ["event_index", "track_id"]), silent["launch_index"])
    moments = tracks.with_columns(silent["launch_start_ns"].alias("moment"))
    owners = pl.Series(innermost_of(calls, moments, ["track_id"])).replace(NO_OWNER, None).cast(pl.UInt32)
    return kernels["described_index"].scatter(is_silent.arg_true(), calls["event_index"].gather(owners))


def _host_calls(rank_trace: RankTrace, described: pl.Series) -> pl.DataFrame:
    """Return the host calls that describe collectives.

    These are the calls that have args or, if no call has args, the calls that are named like collectives.
    """
    events = _host_ranges(rank_trace)
    with_args = events.filter(pl.col("event_index").is_in(described.implode()))
    return with_args if len(with_args) else _named(rank_trace, events, COLLECTIVE_CALL)


def host_call_count(rank_trace: RankTrace) -> int:
    """Return how many collectives the host called, including those whose kernels were not recorded."""
    return len(_named(rank_trace, _host_ranges(rank_trace), COLLECTIVE_CALL))


def _host_ranges(rank_trace: RankTrace) -> pl.DataFrame:
    """Return operators and annotations; collectives were operators before PyTorch 1.13, and are annotations since."""
    columns = ["event_index", "name", "start_ns", "end_ns", "track_id"]
    return event_ranges(rank_trace, [EventKind.CPU_OP, EventKind.USER_ANNOTATION], columns)


def _named(rank_trace: RankTrace, events: pl.DataFrame, pattern: str) -> pl.DataFrame:
    ids = names_matching(rank_trace, pattern)
    return events.filter(pl.col("name").is_in(ids.implode()))


def _described(rank_trace: RankTrace, rows: pl.DataFrame) -> pl.DataFrame:
    """Add to each row the args and inputs of its event `described_index`, and the dtype and sizes derived from them."""
    known = rows
    for table, columns in (("collectives", _ARGS), ("operator_inputs", _INPUTS)):
        known = known.hstack(of_events(rank_trace.table(table, ["event_index", *columns]), rows["described_index"]))
    texts = known.with_columns(rank_trace.texts(known[column]) for column in (*_TEXTS, *_INPUTS))
    sized = _with_sizes(texts.with_columns(pl.col("collective").alias("recorded_collective")))
    if not sized["collective"].null_count():
        return sized
    return sized.with_columns(pl.col("collective").fill_null(_call_name(rank_trace, known)))


def _call_name(rank_trace: RankTrace, known: pl.DataFrame) -> pl.Series:
    """Return the collective named in a call's annotation: `all_reduce` for `nccl:all_reduce`."""
    ids = names_matching(rank_trace, COLLECTIVE_CALL)
    kinds = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)
    events = rank_trace.events_of(kinds, ["event_index", "name"], names=ids)
    return rank_trace.texts(of_events(events, known["described_index"])["name"]).str.extract(COLLECTIVE_CALL, 2)


def _with_sizes(known: pl.DataFrame) -> pl.DataFrame:
    """Add dtype, in_elements and byte_count from the inputs if the args lack them."""
    dtype = known["dtype"].fill_null(answers(known["input_types"], common_type, pl.String)).alias("dtype")
    inputs = known.select(*_INPUTS).unique()
    byte_counts = [input_bytes(dims, kinds) for dims, kinds in inputs.select(*_INPUTS).iter_rows()]
    by_inputs = inputs.with_columns(pl.Series("of_inputs", byte_counts, pl.Int64))
    sized = known.join(by_inputs, on=_INPUTS, how="left", nulls_equal=True, maintain_order="left").with_columns(
        dtype, answers(dtype, element_bytes, pl.Int64).alias("element_bytes")
    )
    return sized.with_columns(
        pl.coalesce("in_elements", pl.col("of_inputs") // pl.col("element_bytes")).alias("in_elements"),
        pl.coalesce(pl.col("in_elements") * pl.col("element_bytes"), "of_inputs").alias("byte_count"),
    )


_SHARED = (
    "event_index",
    "described_index",
    "start_ns",
    "end_ns",
    "name",
    "recorded_collective",
    "family",
    "dtype",
    "byte_count",
)
_TEXTS = ("name", "collective", "dtype", "group_ranks", "group_description")
_INPUTS = ("input_dims", "input_types")
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
    """Return a name for each group: the same on all its ranks, and different from the names of other groups.

    Processes number their groups independently, so the recorded names of a group differ between ranks. The recorded
    list of ranks ends after 30 ranks, but these are enough to distinguish groups of the same size and description.
    Without a list of ranks, only the group of all ranks can be identified.
    """
    listed = pl.col("group_ranks").fill_null("").str.contains(r"\d")
    is_whole_job = (pl.col("group_description") == "default_pg") | (pl.col("group_size") == (world_size or -1))
    parts = ["group_ranks", "group_size", "group_description", "global_rank_start", "global_rank_stride"]
    identity = pl.concat_str([pl.col(part).cast(pl.String).fill_null("") for part in parts], separator=" ")
    return pl.when(listed).then(identity).when(is_whole_job).then(pl.lit("all")).alias("group")


@derived
def host_collectives(rank_trace: RankTrace) -> pl.DataFrame:
    """Return the collectives that the host itself performs, with the columns of `communication`, in file order."""
    chosen = _named(rank_trace, _host_ranges(rank_trace), HOST_COLLECTIVE)
    known = _described(rank_trace, chosen.with_columns(pl.col("event_index").alias("described_index")))
    return known.with_columns(_family_of(known["name"])).select(
        *_SHARED,
        pl.col("start_ns").alias("asked_ns"),
        pl.lit(None, pl.String).alias("group"),
        "sequence",
        "communication_id",
    )


def _family_of(*names: pl.Series) -> pl.Series:
    """Return each row's collective family, from the first of its `names` that reveals it; `unknown` if none does."""
    told = pl.DataFrame(
        [answers(texts.fill_null(""), collective_family, pl.String).alias(str(n)) for n, texts in enumerate(names)]
    )
    return told.select(pl.coalesce(pl.all(), pl.lit(UNKNOWN_COLLECTIVE)).alias("family")).to_series()


def answers(texts: pl.Series, answer: Callable[[Any], object], dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    """Return `answer(text)` for each text, including null; call `answer` once per distinct text."""
    values = texts.to_list()
    answer_to = {text: answer(text) for text in set(values)}
    return pl.Series("answer", [answer_to[text] for text in values], dtype)
