"""`holotrace export`: write a trace in the formats of other tools."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Annotated

import typer

from holotrace.analyses.critical_path.across_ranks import critical_path_across_ranks
from holotrace.cli.job import ReadingOptions, opened_alone
from holotrace.cli.option_groups import with_option_groups
from holotrace.cli.options import Force, RawText, Target
from holotrace.cli.output import console, print_line
from holotrace.errors import InvalidOptionError
from holotrace.export.merged.merged_trace import MERGED_NAME, MergedTrace, clock_lines, write_merged_trace
from holotrace.export.tables import TableFormat, export_tables
from holotrace.export.trace_with_counters import write_traces_with_counters
from holotrace.locations import Location, expect_writable_folder, located, status_of
from holotrace.store.trace import Trace
from holotrace.units import size_text


class ExportFormat(str, Enum):
    """The values of `--to`."""

    perfetto = "perfetto"
    csv = "csv"
    parquet = "parquet"


To = Annotated[
    ExportFormat,
    typer.Option(
        "--to",
        help="perfetto writes a copy of each file with added counters; csv and parquet write the tables of each rank.",
    ),
]
Merge = Annotated[
    bool,
    typer.Option(
        "--merge", help="With --to perfetto: write all ranks into one file, on one clock, instead of one file per rank."
    ),
]
WithPath = Annotated[
    bool,
    typer.Option("--critical-path", help="With --merge: add the critical path through all ranks, on separate tracks."),
]
Folder = Annotated[
    Target,
    typer.Option(
        "--output",
        "-o",
        parser=located,
        metavar="FOLDER",
        help="Write into this folder, a path or URL; created if missing.",
    ),
]


@with_option_groups
def export(  # noqa: PLR0913 -- one argument per option
    job: ReadingOptions,
    *,
    to: To,
    output: Folder,
    merge: Merge = False,
    critical_path: WithPath = False,
    force: Force = False,
    raw_text: RawText = False,
) -> None:
    """Check the folder, write the files, and print their paths and sizes."""
    if merge and to is not ExportFormat.perfetto:
        message = (
            f"--merge writes a timeline, and --to {to.value} writes tables; use --to perfetto, or leave --merge out"
        )
        raise InvalidOptionError(message)
    if critical_path and not merge:
        message = "--critical-path needs the timeline of all ranks, which --merge writes; add --merge"
        raise InvalidOptionError(message)
    expect_writable_folder(output if output.exists() else output.absolute().parent)
    with opened_alone(job) as trace:
        if merge:
            output.mkdir(exist_ok=True)
            path = critical_path_across_ranks(trace, segment_limit=None) if critical_path else None
            target = output / MERGED_NAME
            _print_merged(write_merged_trace(trace, target, critical_path=path, overwrite=force))
            return
        _print_files(_exported(trace, to, output, force=force, raw_text=raw_text))


def _exported(trace: Trace, to: ExportFormat, output: Location, *, force: bool, raw_text: bool) -> Iterable[Location]:
    if to is ExportFormat.perfetto:
        output.mkdir(exist_ok=True)
        return write_traces_with_counters(trace, output, overwrite=force).values()
    table_format: TableFormat = "csv" if to is ExportFormat.csv else "parquet"
    return export_tables(trace, output, table_format, overwrite=force, escape_formulas=not raw_text)


def _print_files(paths: Iterable[Location]) -> None:
    to = console()
    for path in paths:
        print_line(to, f"{path} ({size_text(status_of(path).size or 0)})")


def _print_merged(merged: MergedTrace) -> None:
    _print_files([merged.path])
    to = console()
    for line in (*clock_lines(merged), *merged.findings):
        print_line(to, line)
