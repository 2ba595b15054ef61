"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from holotrace.cli.grouped_help import OUTPUT, TRACES, WORK
from holotrace.locations import Location, address_text, is_url, located
from holotrace.store.trace import OnError

if TYPE_CHECKING:
    Target = Location
else:  # str at run time, because typer does not support unions; `parser=located` still returns a Location
    Target = str


def without_secret(text: str) -> str:
    """Return an address without its secret; the secret is kept in memory for requests to this address."""
    return address_text(text) if is_url(text) else text


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACE...",
        parser=without_secret,
        help="A trace file, a folder of traces, a store, a glob pattern, or several files; paths or URLs.",
    ),
]
Ranks = Annotated[
    str | None,
    typer.Option(
        "--ranks",
        metavar="0-7,512",
        help="Analyse only these ranks; 0-1023:64 selects every 64th rank from 0 to 1023.",
        rich_help_panel=TRACES,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="Use this many processes; the default depends on the job, the cores and the memory.",
        rich_help_panel=WORK,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", metavar="tcp://HOST:8786", help="Run on this Dask cluster.", rich_help_panel=WORK),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="auto",
        help="Run on the Ray cluster at this address; auto finds a running cluster.",
        rich_help_panel=WORK,
    ),
]
Mpi = Annotated[
    bool,
    typer.Option(
        "--mpi",
        help="Run in the processes started by mpiexec -n N python -m mpi4py.futures -m holotrace ….",
        rich_help_panel=WORK,
    ),
]
OnErrorOption = Annotated[
    OnError,
    typer.Option(
        "--on-error",
        help="If a rank fails, skip it with a warning (skip) or stop with its error (fail).",
        rich_help_panel=WORK,
    ),
]
Control = Annotated[
    str,
    typer.Argument(metavar="CONTROL", parser=without_secret, help="The baseline trace: a file, folder or pattern."),
]
Test = Annotated[
    str,
    typer.Argument(
        metavar="TEST", parser=without_secret, help="The trace to compare with CONTROL: a file, folder or pattern."
    ),
]
ControlRanks = Annotated[
    str | None,
    typer.Option(
        "--control-ranks", metavar="0-7,9", help="Compare only these ranks of CONTROL.", rich_help_panel=TRACES
    ),
]
TestRanks = Annotated[
    str | None,
    typer.Option("--test-ranks", metavar="0-7,9", help="Compare only these ranks of TEST.", rich_help_panel=TRACES),
]
Capture = Annotated[
    list[str] | None,
    typer.Option(
        "--capture",
        parser=without_secret,
        metavar="PATH",
        help="A file or folder that names the operators behind the kernels of CUDA graphs: a trace of the capture, "
        "a trace of the same step without graphs, or annotations of graph nodes; may be repeated.",
        rich_help_panel=TRACES,
    ),
]
ControlCapture = Annotated[
    list[str] | None,
    typer.Option(
        "--control-capture",
        parser=without_secret,
        metavar="PATH",
        help="Like --capture, but only for CONTROL.",
        rich_help_panel=TRACES,
    ),
]
TestCapture = Annotated[
    list[str] | None,
    typer.Option(
        "--test-capture",
        parser=without_secret,
        metavar="PATH",
        help="Like --capture, but only for TEST.",
        rich_help_panel=TRACES,
    ),
]
NoCache = Annotated[
    bool,
    typer.Option("--no-cache", help="Neither read nor write the cache of parsed files.", rich_help_panel=TRACES),
]
AsCsv = Annotated[
    bool,
    typer.Option(
        "--csv",
        help="Print all rows of the main table as CSV, with times in ns and shares as fractions of 1.",
        rich_help_panel=OUTPUT,
    ),
]
MostRows = Annotated[
    int | None,
    typer.Option("--rows", min=1, help="Print at most this many rows of each table.", rich_help_panel=OUTPUT),
]
SortedBy = Annotated[
    str | None,
    typer.Option(
        "--sort",
        metavar="COLUMN",
        help="Sort each table that has this column (named as in --json) by the column's values, largest first.",
        rich_help_panel=OUTPUT,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print all rows as JSON, with times in ns and shares as fractions of 1.", rich_help_panel=OUTPUT
    ),
]
Figure = Annotated[
    Target | None,
    typer.Option(
        "--figure",
        parser=located,
        metavar="FILE",
        help="Also write the figure: .html, or with kaleido .png, .svg or .pdf.",
        rich_help_panel=OUTPUT,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.", rich_help_panel=OUTPUT)]
RawText = Annotated[
    bool,
    typer.Option(
        "--raw-text",
        help="In CSV, do not put an apostrophe before text that a spreadsheet would run as a formula.",
        rich_help_panel=OUTPUT,
    ),
]
