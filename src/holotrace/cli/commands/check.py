"""`holotrace check`: the health of a job's files."""

from __future__ import annotations

from typing import Annotated

import typer

from holotrace.cli.job import JobOptions, opened_job
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import AsJson
from holotrace.cli.output import console, print_json, print_line
from holotrace.ingest.file_health import FileHealth
from holotrace.ingest.trace_writer import other_writer_text
from holotrace.store.health import Finding
from holotrace.units import size_text
from holotrace.validation import Violation
from holotrace.whole_job.check import Check, doubt_text
from holotrace.whole_job.check import check as check_files

_EXAMPLE_LENGTH = 100

Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Also check whether the traces are sound and can be trusted; exit with 1 if a file breaks a rule "
        "with severity error or cannot be fully trusted.",
    ),
]


@with_option_groups
def check(
    job: JobOptions,
    *,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Print the health of each file.

    Exit with 1 if no file is readable or, with `strict`, if a rule with severity error is broken
    or a recording cannot be fully trusted.
    """
    with opened_job(job) as (trace, executor):
        checked = check_files(trace, strict=strict, executor=executor)
    if as_json:
        print_json(checked.to_dict())
    else:
        _print(checked)
    if not checked.is_sound:
        raise typer.Exit(1)


def _print(checked: Check) -> None:
    to = console()
    print_line(to, checked.verdict, "bold")
    for line in (line for file in checked.files for line in _lines(file)):
        print_line(to, line)
    for file in checked.skipped:
        print_line(to, f"skipped  {file.path}: {file.reason}")
    for line in _strict_lines(checked):
        print_line(to, line)


def _strict_lines(checked: Check) -> list[str]:
    """Return the lines that --strict adds: broken rules and doubts, or a single line that says that no rule is broken."""
    if checked.violations is None:
        return []
    broken = [line for violation in checked.violations for line in _violation_lines(violation)]
    doubts = [f"doubt: {doubt_text(doubt)}" for doubt in checked.doubts]
    share = [f"strict: {checked.trust.answer}"] if checked.trust is not None and doubts else []
    return [*broken, *doubts, *share] or ["strict: no rule is broken"]


def _violation_lines(violation: Violation) -> list[str]:
    counted = f" {violation.count:,} time{_s(violation.count)}" if violation.count else ""
    head = f"{violation.severity}: rank {violation.rank} {violation.rule}{counted}: {violation.meaning}"
    return [head, *(f"    {example[:_EXAMPLE_LENGTH]}" for example in violation.examples)]


def _lines(file: FileHealth) -> list[str]:
    head = f"rank {file.rank}  {file.path}"
    if file.error is not None:
        return [head, f"    unreadable: {file.error}"]
    size = f"{file.format}, {size_text(file.bytes_read)} holding {size_text(file.bytes_decoded)} of JSON"
    events = f"{file.event_count:,} event{_s(file.event_count)}, {file.gpu_event_count:,} of them GPU work"
    return [
        head,
        *([f"    {other_writer_text(file.other_writer)}"] if file.other_writer else []),
        f"    {size}; {events}",
        f"    rank from {file.rank_origin}; options on: {', '.join(file.options) or 'none'}",
        *map(_finding_line, file.findings),
    ]


def _finding_line(finding: Finding) -> str:
    offsets = ", ".join(f"{offset:,}" for offset in finding.offsets)
    more = ", …" if finding.count > len(finding.offsets) else ""
    where = f" at byte {offsets}{more}" if offsets else ""
    example = f": {' '.join(finding.example.split())[:_EXAMPLE_LENGTH]}" if finding.example else ""
    lost = f", {finding.loss} lost" if finding.loss else ""
    times = f"{finding.count:,} time{_s(finding.count)}"
    return f"    {finding.severity}: {times} {finding.kind}{where}{lost}{example}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
