"""Runs a server until the standard input of this program is closed.

Standard input is a pipe from the test run. If the test run is killed, the pipe closes, so the server does not outlive
the test run.
"""

from __future__ import annotations

import subprocess
import sys
import threading

SECONDS_TO_STOP = 5


def main() -> int:
    """Run the command, and stop it when standard input ends."""
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL) as server:  # noqa: S603 -- a test server
        threading.Thread(target=_stop_at_the_end, args=[server], daemon=True).start()
        return server.wait()


def _stop_at_the_end(server: subprocess.Popen[bytes]) -> None:
    sys.stdin.buffer.read()
    server.terminate()
    try:
        server.wait(SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        server.kill()


if __name__ == "__main__":
    sys.exit(main())
