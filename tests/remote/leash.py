"""Runs a server for as long as somebody holds this program's standard input open.

A test run that is killed closes it like one that ends, so no server outlives the run that started it.
"""

from __future__ import annotations

import subprocess
import sys
import threading

SECONDS_TO_STOP = 5


def main() -> int:
    """Run the command, and stop it at the end of standard input."""
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL) as server:  # noqa: S603 -- what the tests start
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
