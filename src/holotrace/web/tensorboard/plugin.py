"""The plugin that TensorBoard loads when it starts; it imports little, because most users never open its tab.

TensorBoard finds the class through the entry point `tensorboard_plugins`.
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
"""Maximum number of folders to search for a trace; TensorBoard waits for the answer, so the search must be short."""

HOSTS_VARIABLE = "HOLOTRACE_ALLOW_HOST"
"""Environment variable with additional host names of TensorBoard's server, separated by commas."""

_ENDINGS = (".json", ".json.gz", ".json.zst")


class HolotracePlugin(base_plugin.TBPlugin):  # type: ignore[misc]  # tensorboard has no types
    """The tab `holotrace`: one run for each folder with traces below the log folder."""

    plugin_name = "holotrace"

    def __init__(self, context: base_plugin.TBContext) -> None:
        """Remember the path of the log folder; its files are read later."""
        self._logdir = str(context.logdir or "")
        self._flags = context.flags
        self._mount = Mount("/app", self._app)
        self._has_traces = False

    def get_plugin_apps(self) -> Mapping[str, WSGIApplication]:
        """Return the WSGI application for each path below `/data/plugin/holotrace`."""
        return {"/index.js": _index, "/app": self._mount, "/app/*": self._mount}

    def is_active(self) -> bool:
        """Return whether to show the tab, that is, whether any file below the log folder may be a trace."""
        self._has_traces = self._has_traces or _may_hold_traces(self._logdir)
        return self._has_traces

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """Return the settings with which TensorBoard loads the tab."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="holotrace", disable_reload=True)

    def _app(self) -> WSGIApplication:
        """Load Dash and create the application."""
        from holotrace.web.server.guard import Guard  # noqa: PLC0415
        from holotrace.web.session.session import Session  # noqa: PLC0415
        from holotrace.web.shell.app import create_app  # noqa: PLC0415

        app: WSGIApplication = create_app(Session([self._logdir])).server.wsgi_app
        return Guard(
            app,
            allowed_hosts=self._allowed_hosts(),
            any_address=True,
            may_be_framed=True,  # notebooks and editors embed TensorBoard
            way_to_allow=f"set {HOSTS_VARIABLE}=NAME and restart TensorBoard",
        )

    def _allowed_hosts(self) -> frozenset[str]:
        """Return the host names of TensorBoard's server, including the additional ones in the environment variable."""
        from holotrace.web.server.server import Address  # noqa: PLC0415

        everywhere = "" if getattr(self._flags, "bind_all", False) else "localhost"
        host = getattr(self._flags, "host", None) or everywhere
        named = (name.strip() for name in os.environ.get(HOSTS_VARIABLE, "").split(","))
        return Address(host, names=frozenset(named)).allowed_hosts - {""}


def _index(_environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
    script = files("holotrace.web.tensorboard").joinpath("index.js").read_bytes()
    headers = [("Content-Type", "text/javascript; charset=utf-8"), ("X-Content-Type-Options", "nosniff")]
    start_response("200 OK", [*headers, ("Content-Length", str(len(script)))])
    return [script]


def _names_below(logdir: str) -> Iterator[list[str]]:
    """Yield the names of the files in each folder; the log folder may be a URL, as in TensorBoard."""
    from holotrace.locations import is_url, located, scan  # noqa: PLC0415 -- not needed when TensorBoard starts

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
    """Return whether a file below the log folder has the name of a trace; also True if there are too many folders."""
    folders = list(islice(_names_below(logdir), MOST_FOLDERS))
    return len(folders) == MOST_FOLDERS or any(name.endswith(_ENDINGS) for names in folders for name in names)
