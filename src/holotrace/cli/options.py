"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from holotrace.enrich.compat import Compat
from holotrace.locations import Location, address_text, is_url, located
from holotrace.store.trace import OnError

if TYPE_CHECKING:
    Target = Location
else:  # typer knows no unions; with `parser=located` an option is what the type checker sees
    Target = str

_RANGE = r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?"
_MOST_IN_A_RANGE = 1_000_000


def parse_ranks(text: str) -> list[int]:
    """Read a list of ranks such as `0-7,9`, or `0-63:8` for every 8th; each rank once, in rising order."""
    ranks: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(_RANGE, part)
        if found is None:
            message = f"{text!r} is no list of ranks; write it like 0-7,9, or 0-63:8 for every 8th"
            raise typer.BadParameter(message)
        asked = _range(*found.groups())
        if asked[_MOST_IN_A_RANGE:]:
            message = f"{part!r} is more than {_MOST_IN_A_RANGE:,} ranks"
            raise typer.BadParameter(message)
        ranks.update(asked)
    if not ranks:
        message = f"{text!r} holds no rank: a range goes from the lower to the higher one"
        raise typer.BadParameter(message)
    return sorted(ranks)


def _range(first: str, last: str | None, step: str | None) -> range:
    return range(int(first), int(last or first) + 1, int(step or 1) or 1)


def without_secret(text: str) -> str:
    """Return an address that may be shown, and remember the secret in it."""
    return address_text(text) if is_url(text) else text


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACE...",
        parser=without_secret,
        help="A trace file, a folder of them, a store, a glob pattern, or several files; paths or URLs.",
    ),
]
Ranks = Annotated[
    str | None,
    typer.Option("--ranks", metavar="0-7,512", help="Only these ranks; 0-1023:64 is every 64th of a range."),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="In so many processes; by default as many as pay, cores and memory allow."),
]
Dask = Annotated[str | None, typer.Option("--dask", metavar="tcp://HOST:8786", help="On this Dask cluster.")]
Ray = Annotated[
    str | None, typer.Option("--ray", metavar="auto", help="On the Ray cluster at this address; auto finds it.")
]
Mpi = Annotated[
    bool, typer.Option("--mpi", help="In the processes of mpiexec -n N python -m mpi4py.futures -m holotrace ….")
]
OnErrorOption = Annotated[
    OnError,
    typer.Option("--on-error", help="Leave a rank out that cannot be worked on, and say so, or end with its error."),
]
Annotation = Annotated[
    str | None,
    typer.Option("--annotation", metavar="NAME", help="Host annotations that stand in for the steps, from 0."),
]
CompatMode = Annotated[
    Compat | None, typer.Option("--compat", help="Give the numbers of PyTorch's TensorBoard plugin, quirks included.")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither use nor keep what was read from the files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON with all rows, in ns and fractions of 1.")]
Figure = Annotated[
    Target | None,
    typer.Option(
        "--figure",
        parser=located,
        metavar="FILE",
        help="Also write the figure: .html, or .png, .svg, .pdf with kaleido.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")]
RawText = Annotated[
    bool, typer.Option("--raw-text", help="In CSV, leave texts that a spreadsheet would run as formulas as they are.")
]
