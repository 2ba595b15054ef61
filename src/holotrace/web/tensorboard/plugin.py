"""What TensorBoard loads at its start: kept small, so that whoever never opens the tab pays nothing for it.

TensorBoard finds the class by the entry point `tensorboard_plugins`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING

from tensorboard.plugins import base_plugin

from holotrace.web.tensorboard.mount import Mount

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

MOST_FOLDERS = 1_000
"""Folders looked through for a trace; TensorBoard waits for the answer."""

HOSTS_VARIABLE = "HOLOTRACE_ALLOW_HOST"
"""Environment variable: names, separated by commas, by which browsers may call TensorBoard besides its own."""

_ENDINGS = (".json", ".json.gz", ".json.zst")


class HolotracePlugin(base_plugin.TBPlugin):  # type: ignore[misc]  # tensorboard has no types
    """The tab `holotrace`: one run for each folder below the log folder that holds traces."""

    plugin_name = "holotrace"

    def __init__(self, context: base_plugin.TBContext) -> None:
        """Take the log folder; nothing is read."""
        self._logdir = str(context.logdir or "")
        self._flags = context.flags
        self._mount = Mount("/app", self._app)
        self._has_traces = False

    def get_plugin_apps(self) -> Mapping[str, WSGIApplication]:
        """Return what answers below `/data/plugin/holotrace`."""
        return {"/index.js": _index, "/app": self._mount, "/app/*": self._mount}

    def is_active(self) -> bool:
        """Whether the tab is worth showing: something below the log folder may be a trace."""
        self._has_traces = self._has_traces or _may_hold_traces(self._logdir)
        return self._has_traces

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """Say how the tab is loaded."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="holotrace", disable_reload=True)

    def _app(self) -> WSGIApplication:
        """Make the application; that loads dash."""
        from holotrace.web.server.guard import Guard  # noqa: PLC0415
        from holotrace.web.session.session import Session  # noqa: PLC0415
        from holotrace.web.shell.app import create_app  # noqa: PLC0415

        app: WSGIApplication = create_app(Session([self._logdir])).server.wsgi_app
        return Guard(
            app,
            allowed_hosts=self._allowed_hosts(),
            any_address=True,
            may_be_framed=True,  # TensorBoard stands in pages of notebooks and editors
            way_to_allow=f"set {HOSTS_VARIABLE}=NAME and start TensorBoard again",
        )

    def _allowed_hosts(self) -> frozenset[str]:
        """Return the names that TensorBoard goes by; a proxy may pass on others, which only its owner knows."""
        from holotrace.web.server.server import Address  # noqa: PLC0415

        everywhere = "" if getattr(self._flags, "bind_all", False) else "localhost"
        host = getattr(self._flags, "host", None) or everywhere
        named = (each.strip() for each in os.environ.get(HOSTS_VARIABLE, "").split(","))
        return Address(host, names=frozenset(named)).allowed_hosts - {""}


def _index(_environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
    script = files("holotrace.web.tensorboard").joinpath("index.js").read_bytes()
    headers = [("Content-Type", "text/javascript; charset=utf-8"), ("X-Content-Type-Options", "nosniff")]
    start_response("200 OK", [*headers, ("Content-Length", str(len(script)))])
    return [script]


def _names_below(logdir: str) -> Iterator[list[str]]:
    """Yield the names in each folder; the log folder may be a URL, as TensorBoard's own may."""
    from holotrace.locations import is_url, located, scan  # noqa: PLC0415 -- kept out of TensorBoard's start

    if not is_url(logdir):
        yield from (names for _, _, names in os.walk(logdir))
        return
    waiting = [str(located(logdir))]
    while waiting:
        try:
            children = scan(waiting.pop())
        except OSError:
            continue
        waiting += [child.path for child in children if child.is_dir]
        yield [child.name for child in children]


def _may_hold_traces(logdir: str) -> bool:
    """Look at names only; a tree that is too large to look through quickly may."""
    folders = list(islice(_names_below(logdir), MOST_FOLDERS))
    return len(folders) == MOST_FOLDERS or any(name.endswith(_ENDINGS) for names in folders for name in names)
