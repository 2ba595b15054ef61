"""`holotrace serve`: show runs as pages in a browser."""

from __future__ import annotations

import importlib.util
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from holotrace.cli.option_groups import read_or_refuse
from holotrace.cli.options import Capture, NoCache, Sources
from holotrace.cli.output import console, print_line
from holotrace.errors import InvalidOptionError, TraceNotFoundError

Host = Annotated[str, typer.Option("--host", help="Listen on this address.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65_535, help="Listen on this port; 0 picks a free one.")]
Open = Annotated[bool, typer.Option("--open", help="Open the browser.")]
NoToken = Annotated[
    bool,
    typer.Option("--no-token", help="Let every user of this machine see the pages, even without the printed address."),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="Also answer requests to this host name; may be repeated."),
]

Event = Annotated[
    str | None,
    typer.Option(
        "--event",
        metavar="RANK:INDEX",
        help="Open the first run's timeline at this event; `diagnose` prints RANK:INDEX for each finding.",
    ),
]

_MODULES = ("dash", "dash_ag_grid", "dash_mantine_components", "waitress")


def serve(  # noqa: PLR0913 -- one argument per option
    sources: Sources,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8050,
    open_browser: Open = False,
    no_token: NoToken = False,
    allow_host: AllowHost = None,
    event: Event = None,
    capture: Capture = None,
    no_cache: NoCache = False,
) -> None:
    """Serve the runs until Ctrl-C; exit at once if there are no runs, or if a file named by the user is not a trace."""
    _expect_extra()
    at = None if event is None else read_or_refuse(_event, event)
    from holotrace.web.server.server import Address, bound_server  # noqa: PLC0415 -- loads dash
    from holotrace.web.session.session import Session  # noqa: PLC0415

    session = Session(sources, cache=not no_cache, capture=tuple(capture or ()), uses_processes=True)
    if not session.runs:
        raise TraceNotFoundError.nothing_under(sources)
    for run in session.runs:
        if run.root is None:  # the user named this file, so report its errors now
            session.whole(run.id)
    address = Address(host, port, frozenset(allow_host or ()), has_token=not no_token)
    with bound_server(session, address) as server, ExitStack() as until_the_end:
        to = console()
        url = server.url if at is None else _at_event(server.url, session.runs[0].id, *at)
        print_line(to, f"{len(session.runs):,} run{'' if len(session.runs) == 1 else 's'} at {url}", "bold")
        print_line(to, "Press Ctrl-C to stop.")
        if open_browser:
            webbrowser.open(until_the_end.enter_context(_redirect_to(url)))
        server.run()


def _event(text: str) -> tuple[int, int]:
    """Parse `3:71535` as rank 3, event 71535."""
    rank, _, index = text.partition(":")
    if not (rank.isdecimal() and index.isdecimal()):
        message = f"{text!r} is not of the form RANK:INDEX, such as 3:71535"
        raise ValueError(message)
    return int(rank), int(index)


def _at_event(url: str, run_id: str, rank: int, index: int) -> str:
    """Return the address that shows an event on the timeline; `url` may end in the access token."""
    from holotrace.web.parts.timeline_link import AtEvent, timeline_link  # noqa: PLC0415 -- needs the extra
    from holotrace.web.session.selection import Selection  # noqa: PLC0415

    query = timeline_link(Selection(run=run_id), AtEvent(rank, index)).removeprefix("?")
    return f"{url}{'&' if '?' in url else '?'}{query}"


@contextmanager
def _redirect_to(url: str) -> Iterator[str]:
    """Yield the address of a temporary file that redirects to the pages.

    Opening `url` directly would reveal its token, because every user of the machine can see the browser's command line.
    """
    with tempfile.TemporaryDirectory(prefix="holotrace-") as folder:
        page = Path(folder, "open.html")
        page.write_text(f'<!doctype html><title>holotrace</title><meta http-equiv="refresh" content="0;url={url}">')
        yield page.as_uri()


def _expect_extra() -> None:
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        message = f"holotrace serve needs {', '.join(missing)}: pip install 'holotrace[web]'"
        raise InvalidOptionError(message)
