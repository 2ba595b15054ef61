"""Rules about how a job is set up: one process for several GPUs, or collectives that run on the hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.analyses.diagnosis.job_evidence import JobEvidence
from holotrace.analyses.diagnosis.rule import NOTHING, OF_THE_STEP, Case, JobCase, JobRule, Place, RankCase, Rule, Said
from holotrace.analyses.diagnosis.rules.needs import needs_device, needs_results
from holotrace.analyses.diagnosis.rules.ranks.mean_costs import mean_costs, share_of_step
from holotrace.enrich.events.event_ranges import event_ranges
from holotrace.schema import EventKind

_DATA_PARALLEL = "DataParallel.forward"
_KINDS = (EventKind.CPU_OP, EventKind.USER_ANNOTATION)


def data_parallel(evidence: RankEvidence) -> Iterator[Case]:
    """Yield a case without a cost if DataParallel drives several devices from one process."""
    names = (evidence.rank_trace.strings == _DATA_PARALLEL).arg_true().cast(pl.UInt32)
    calls = event_ranges(evidence.rank_trace, _KINDS, ["event_index", "start_ns"], names=names)
    if len(calls):
        first = Place(event_index=calls["event_index"][0], at_ns=calls["start_ns"][0])
        yield Case(NOTHING, len(evidence.devices), count=len(calls), place=first)


def host_collectives(evidence: JobEvidence) -> Iterator[JobCase]:
    """Yield a case if all ranks compute on devices but communicate through a library on the host, such as gloo.

    Collectives of such a library also copy data between host and device. These copies are part of the cost only while
    the device does nothing else.
    """
    libraries = {rank: of_rank.numbers.host_library for rank, of_rank in evidence.ranks.items()}
    known = {rank: library for rank, library in libraries.items() if library is not None}
    if len(known) < len(libraries):
        return
    transfers = evidence.results["parallelism"].per_step.drop_nulls("step")
    costs = mean_costs(evidence, transfers, "transfer_ns")
    copies = {rank: library.copies_ns for rank, library in known.items() if rank in costs}
    words = {"library": next(iter(known.values())).name}
    yield JobCase(costs, share_of_step(evidence, costs), words=words, else_ns=copies)


def _say_data_parallel(cases: Sequence[RankCase]) -> Said:
    return Said(
        f"DataParallel drives {cases[0].value:.0f} devices from one process, and copies the model to each device in every step",
        "Use DistributedDataParallel with one process per device (torchrun --nproc-per-node).",
    )


def _say_host_collectives(cases: Sequence[RankCase]) -> Said:
    library = cases[0].words["library"]
    return Said(
        f"{library} communicates through the hosts, although every rank works on a GPU",
        'Initialise the process group with init_process_group("nccl"), which moves data directly between GPUs. NCCL needs one GPU '
        "per rank.",
    )


RANK_RULES = (
    Rule(
        "data_parallel",
        "DataParallel on several devices",
        threshold=2,
        unit="devices per process",
        reason="With a single device, DataParallel only calls the model.",
        source="https://docs.pytorch.org/docs/stable/notes/cuda.html#use-nn-parallel-distributeddataparallel-instead-of-"
        "multiprocessing-or-nn-dataparallel",
        check=data_parallel,
        say=_say_data_parallel,
        needs=needs_device,
    ),
)
"""The rule about DataParallel."""

JOB_RULES = (
    JobRule(
        "host_collectives",
        "transfers of gloo, MPI or UCC on the hosts, and their copies to the GPUs, in a job whose ranks all use GPUs",
        threshold=0.05,
        unit=OF_THE_STEP,
        reason="The last bucket of gradients can never be hidden, but it takes less than 5 % of a step.",
        source="https://docs.pytorch.org/docs/stable/distributed.html#which-backend-to-use",
        analyses=("parallelism",),
        check=host_collectives,
        say=_say_host_collectives,
        precedence=1,
        needs=needs_results("parallelism"),
    ),
)
"""The rule about libraries that communicate through the hosts."""
