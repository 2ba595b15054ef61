"""Arguments and options that several commands share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from hta.enrich.host_names import Compat

_RANKS = re.compile(r"\d{1,10}(-\d{1,10})?(,\d{1,10}(-\d{1,10})?)*")
_MOST_IN_A_RANGE = 1_000_000


def parse_ranks(text: str) -> list[int]:
    """Read a list of ranks such as `0-7,9`; each rank once, in rising order."""
    if not _RANKS.fullmatch(text):
        message = f"{text!r} is no list of ranks; write it like 0-7,9"
        raise typer.BadParameter(message)
    ranks: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        asked = range(int(first), int(last or first) + 1)
        if asked[_MOST_IN_A_RANGE:]:
            message = f"{part!r} is more than {_MOST_IN_A_RANGE:,} ranks"
            raise typer.BadParameter(message)
        ranks.update(asked)
    if not ranks:
        message = f"{text!r} holds no rank: a range goes from the lower to the higher one"
        raise typer.BadParameter(message)
    return sorted(ranks)


Sources = Annotated[
    list[str],
    typer.Argument(metavar="TRACE...", help="A trace file, a folder of them, a glob pattern, or several files."),
]
Ranks = Annotated[str | None, typer.Option("--ranks", metavar="0-7,9", help="Only these ranks.")]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Work on several ranks at once, in this many processes.")
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
    Path | None, typer.Option("--figure", metavar="FILE", help="Also write the figure, as an HTML file.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")]
