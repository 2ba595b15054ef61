"""A server with a small job, for tests of the timeline in a browser."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="package")
def url(tmp_path_factory):
    """Serve the job; return the address of the timeline."""
    pytest.importorskip("dash")
    pytest.importorskip("waitress")
    from drawn_timeline import job, serving  # noqa: PLC0415 -- needs Dash

    folder = tmp_path_factory.mktemp("job")
    job().write(folder)
    with serving(folder) as address:
        yield address
