"""`holotrace serve`: the pages in a browser."""

from __future__ import annotations

import importlib.util
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from holotrace.cli.options import NoCache, Sources
from holotrace.cli.output import console, print_line
from holotrace.errors import InvalidOptionError, TraceNotFoundError

Host = Annotated[str, typer.Option("--host", help="Address to listen on.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65_535, help="Port; 0 takes a free one.")]
Open = Annotated[bool, typer.Option("--open", help="Open the browser.")]
NoToken = Annotated[
    bool, typer.Option("--no-token", help="Answer any user of this machine, not only who has the address printed.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="NAME", help="A name by which browsers may call this server; repeat for more."
    ),
]

_MODULES = ("dash", "dash_ag_grid", "dash_mantine_components", "waitress")


def serve(  # noqa: PLR0913 -- one argument an option
    sources: Sources,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8050,
    open_browser: Open = False,
    no_token: NoToken = False,
    allow_host: AllowHost = None,
    no_cache: NoCache = False,
) -> None:
    """Show pages with figures and tables of all runs under a folder; ends with Ctrl-C."""
    _expect_extra()
    from holotrace.web.server.server import Address, bound_server  # noqa: PLC0415 -- loads dash
    from holotrace.web.session.session import Session  # noqa: PLC0415

    session = Session(sources, cache=not no_cache)
    if not session.runs:
        raise TraceNotFoundError.nothing_under(sources)
    for run in session.runs:
        if run.root is None:  # named one by one: what is wrong with them is told before anything is served
            session.whole(run.id)
    address = Address(host, port, frozenset(allow_host or ()), has_token=not no_token)
    with bound_server(session, address) as server, ExitStack() as until_the_end:
        to = console()
        print_line(to, f"{len(session.runs):,} run{'' if len(session.runs) == 1 else 's'} at {server.url}", "bold")
        print_line(to, "Ctrl-C ends it.")
        if open_browser:
            webbrowser.open(until_the_end.enter_context(_way_to(server.url)))
        server.run()


@contextmanager
def _way_to(url: str) -> Iterator[str]:
    """Give the address of a file that leads to the pages.

    The commands by which a browser is started are shown to every user of the machine, and the address holds the token.
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
