"""Facts about a rank's recording that should be equal on all ranks of a job."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from holotrace.enrich.job.one_job import HARDWARE, FileFacts, file_facts
from holotrace.enrich.trust.start_up import first_collectives
from holotrace.store.header import OPTION_NAMES, Header
from holotrace.store.trace import RankTrace

_VERSIONS = {
    "torch_version": "PyTorch version",
    "pytorch_version": "PyTorch version",
    "cuda_driver_version": "CUDA driver",
    "cupti_version": "CUPTI version",
    "hip_driver_version": "HIP driver",
    "roctracer_version": "roctracer version",
    "schemaVersion": "schema of the trace",
}
"""Top-level keys of the trace file that contain versions. Runtime versions are not listed here, because
`holotrace.enrich.job.one_job` compares them."""


@dataclass(frozen=True, eq=False)
class RankRecording:
    """Facts about a rank's file that should be equal on all ranks of a job.

    file         the facts that `one_job` compares
    software     {name: value} for the GPUs, software versions and profiler options that the file records
    collectives  the first few collective kernels; see `first_collectives`
    """

    file: FileFacts
    software: dict[str, str]
    collectives: pl.DataFrame


def rank_recording(rank_trace: RankTrace) -> RankRecording:
    """Return the facts about a rank's file."""
    header = rank_trace.header
    facts = file_facts(rank_trace)
    hardware = {what.removeprefix("the ").removesuffix("s"): of(facts) for what, of in HARDWARE.items()}
    software = {**{what: str(value) for what, value in hardware.items() if value is not None}, **_software(header)}
    return RankRecording(facts, software, first_collectives(rank_trace.unselected))


def _software(header: Header) -> dict[str, str]:
    if not header.raw:
        return {}
    known = {
        what: str(header.raw[key]) for key, what in _VERSIONS.items() if isinstance(header.raw.get(key), (int, str))
    }
    distributed = header.raw.get("distributedInfo")
    nccl = distributed.get("nccl_version") if isinstance(distributed, dict) else None
    options = {f"profiler option {name}": "on" if header.options[name] else "off" for name in OPTION_NAMES}
    return {**known, **({"NCCL version": nccl} if isinstance(nccl, str) else {}), **options}
