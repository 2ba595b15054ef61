"""Check the health of a job's files: unreadable files, lost data, broken rules, and doubts about the recordings."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import polars as pl

from holotrace.analyses.trust.compute import Trust, trust
from holotrace.enrich.trust.across_ranks import missing_ranks
from holotrace.execution.executor import IN_PROCESS, Executor
from holotrace.ingest.file_health import FileHealth, State, health_of_rank
from holotrace.questions.result import tables_of, text_of
from holotrace.store.trace import SkippedFile, Trace
from holotrace.units import counted, size_text
from holotrace.validation import Violation, validate
from holotrace.visible_text import html_table, html_text

_STATES = get_args(State)
_HEADINGS = ("rank", "file", "state", "events", "GPU work", "size")
_MOST_ROWS = 50
"""Maximum number of files that a notebook lists."""


@dataclass(frozen=True)
class Check:
    """The health of a job's files.

    files       one per rank, sorted by rank
    skipped     files that are not part of the job, with the reason
    violations  rules that files break; None without `strict`
    trust       how much of the recordings can be trusted; None without `strict`, or if no file can be read

    >>> import holotrace
    >>> from holotrace.testing import small_job
    >>> holotrace.check(small_job()).verdict
    '2 files: 2 clean.'
    """

    files: tuple[FileHealth, ...]
    skipped: tuple[SkippedFile, ...] = ()
    violations: tuple[Violation, ...] | None = None
    trust: Trust | None = None

    @property
    def verdict(self) -> str:
        """The number of files in each state, such as `3 files: 1 clean, 1 with losses, 1 unreadable.`."""
        counts = Counter(file.state for file in self.files)
        states = [f"{counts[state]:,} {state}" for state in _STATES if counts[state]]
        if self.skipped:
            states.append(f"{len(self.skipped):,} skipped")
        total = len(self.files) + len(self.skipped)
        others = sum(bool(file.other_writer) for file in self.files)
        if others:
            states.append(f"{others:,} not written by PyTorch's profiler")
        return f"{counted(total, 'file')}: {', '.join(states)}."

    @property
    def is_sound(self) -> bool:
        """Whether at least one file is readable, no file breaks a rule of severity "error", and `doubts` is empty."""
        has_errors = any(violation.severity == "error" for violation in self.violations or ())
        return not has_errors and not self.doubts and any(file.error is None for file in self.files)

    @property
    def doubts(self) -> tuple[dict[str, Any], ...]:
        """The rows of `trust.doubts`, except those also reported in `violations`."""
        reported = {(violation.rank, violation.rule) for violation in self.violations or ()}
        rows = [] if self.trust is None else self.trust.doubts.to_dicts()
        return tuple(row for row in rows if (row["rank"], row["rule"]) not in reported)

    def to_dict(self) -> dict[str, Any]:
        """Return the health of all files as plain Python objects; `violations` and `trust` exist only with `strict`."""
        violations = (
            {}
            if self.violations is None
            else {"violations": [dataclasses.asdict(violation) for violation in self.violations]}
        )
        return {
            "verdict": self.verdict,
            "files": [dataclasses.asdict(file) for file in self.files],
            "skipped_files": [{"path": file.path, "reason": file.reason} for file in self.skipped],
            **violations,
            **({} if self.trust is None else {"trust": {"answer": self.trust.answer, **tables_of(self.trust)}}),
        }

    def __repr__(self) -> str:
        """Show the verdict, and the rules that files break."""
        return text_of(f"Check: {self.verdict}", (), self._broken_rules)

    def _repr_html_(self) -> str:
        """Show the verdict and one row per file in a notebook."""
        rest = len(self.files) - _MOST_ROWS
        more = f"<p>… and {counted(rest, 'more file')}: <code>.files</code></p>" if rest > 0 else ""
        broken = "".join(f"<li>{html_text(sentence)}</li>" for sentence in self._broken_rules)
        table = html_table(_HEADINGS, map(_cells, self.files[:_MOST_ROWS]))
        return f"<p><b>{html_text(self.verdict)}</b></p>{table}{more}{f'<ul>{broken}</ul>' if broken else ''}"

    @property
    def _broken_rules(self) -> tuple[str, ...]:
        return (*map(_sentence, self.violations or ()), *map(doubt_text, self.doubts))


def check(trace: Trace, *, strict: bool = False, executor: Executor = IN_PROCESS) -> Check:
    """Check the health of a job's files: repaired data, dropped data and unreadable files.

    An unreadable file raises no exception; its entry in `files` contains the error.

    Args:
        trace: the job.
        strict: also check whether the files are sound, for example whether each kernel starts after its launch, and
            whether the recordings can be trusted; see `holotrace.trust`.
        executor: processes the ranks.

    >>> import holotrace
    >>> from holotrace.testing import TraceBuilder
    >>> trace = TraceBuilder().kernel("gemm", start_us=0, duration_us=5).build()
    >>> holotrace.check(trace).verdict
    '1 file: 1 clean.'
    """
    visit = trace.visit(health_of_rank, executor)
    files, skipped = tuple(visit.results.values()), visit.trace.skipped
    if not strict:
        return Check(files, skipped)
    readable = [file.rank for file in files if file.error is None]
    trusted = trust(visit.trace.select(readable), executor=executor) if readable else None
    if trusted is not None:
        trusted = _without_chosen(trusted, trace.left_out)
    return Check(files, skipped, validate(visit.trace, executor=executor), trusted)


def _without_chosen(trusted: Trust, left_out: Collection[int]) -> Trust:
    """Drop the doubt about missing ranks if the user left out exactly as many ranks as are missing."""
    doubts = trusted.doubts
    is_chosen = (pl.col("rule") == missing_ranks.__name__) & (pl.col("case_count") == len(left_out))
    return replace(trusted, doubts=doubts.filter(~is_chosen))


def doubt_text(doubt: Mapping[str, Any]) -> str:
    """Describe a row of `Trust.doubts` in one sentence, with its rank and rule."""
    return f"rank {doubt['rank']}, {doubt['rule']}: {doubt['sentence']}"


def _cells(file: FileHealth) -> tuple[str, ...]:
    size = size_text(file.bytes_read) if file.error is None else ""
    state = file.state if file.error is None else f"{file.state}: {file.error}"
    return str(file.rank), file.path, state, f"{file.event_count:,}", f"{file.gpu_event_count:,}", size


def _sentence(violation: Violation) -> str:
    return f"rank {violation.rank}, {violation.rule}: {violation.meaning}"
