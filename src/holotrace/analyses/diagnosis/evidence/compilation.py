"""Find out whether a job runs torch.compile, or could run it because it uses PyTorch 2.0 or later."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Literal

from holotrace.analyses.diagnosis.evidence.rank_evidence import RankEvidence
from holotrace.enrich.events.event_names import names_matching
from holotrace.enrich.graph_attribution.grafts import GENERATED_KERNEL

Compilation = Literal["runs", "possible", "too_old"]

_COMPILED = rf"^Torch-Compiled Region|^CompiledFunction(Backward)?$|{GENERATED_KERNEL}"
"""Names of compiled code, and of the kernels that it launches."""

_RELEASE_NS = int(datetime(2023, 3, 15, tzinfo=timezone.utc).timestamp()) * 1_000_000_000
"""PyTorch 2.0 was released on this day: https://pytorch.org/blog/pytorch-2.0-release."""
_FIRST_PROFILER_NS = int(datetime(2020, 1, 1, tzinfo=timezone.utc).timestamp()) * 1_000_000_000
"""Timestamps before this day are not dates: some tools count the time from the start of the machine."""


def compilation(evidence: RankEvidence) -> Compilation:
    """Return whether the job runs torch.compile, could run it, or was recorded before torch.compile existed.

    Trace files do not contain the version of PyTorch, so only the date of the recording is checked: a recording from
    before the release of PyTorch 2.0 is `too_old`.
    """
    first_ns = min(evidence.step_windows[0].tolist(), default=0)
    if _FIRST_PROFILER_NS <= first_ns < _RELEASE_NS:
        return "too_old"
    return "runs" if len(names_matching(evidence.rank_trace, _COMPILED)) else "possible"
