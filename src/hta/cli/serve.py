"""`hta serve`: the pages in a browser."""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

from hta.cli.options import NoCache, Sources
from hta.cli.output import console, print_line
from hta.errors import InvalidOptionError, TraceNotFoundError

Host = Annotated[str, typer.Option("--host", help="Address to listen on; others than this machine's need the token.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65_535, help="Port; 0 takes a free one.")]
Open = Annotated[bool, typer.Option("--open", help="Open the browser.")]
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
    allow_host: AllowHost = None,
    no_cache: NoCache = False,
) -> None:
    """Show pages with figures and tables of all runs under a folder; ends with Ctrl-C."""
    _expect_extra()
    from hta.web.server import Address, bound_server  # noqa: PLC0415 -- loads dash
    from hta.web.session import Session  # noqa: PLC0415

    session = Session(sources, cache=not no_cache)
    if not session.runs:
        raise TraceNotFoundError.nothing_under(sources)
    for run in session.runs:
        if run.root is None:  # named one by one: what is wrong with them is told before anything is served
            session.whole(run.id)
    with bound_server(session, Address(host, port, frozenset(allow_host or ()))) as server:
        to = console()
        print_line(to, f"{len(session.runs):,} run{'' if len(session.runs) == 1 else 's'} at {server.url}", "bold")
        print_line(to, "Ctrl-C ends it.")
        if open_browser:
            typer.launch(server.url)
        server.run()


def _expect_extra() -> None:
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        message = f"hta serve needs {', '.join(missing)}: pip install 'holistic-trace-analysis[web]'"
        raise InvalidOptionError(message)
