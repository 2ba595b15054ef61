"""A small job on the timeline, in a real browser."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from browsing import PATIENCE_MS, Visit
from holotrace.testing.builder import TraceBuilder
from holotrace.web.server.server import Address, bound_server
from holotrace.web.session.session import Session
from jobs import MARKUP

LENGTH_NS = 400_000
LABELS_PX, RULER_PX = 230, 34


def job() -> TraceBuilder:
    """Return a job of two ranks; each runs two steps of 200 µs.

    On each rank, a forward operator launches a kernel, and the backward operator follows on another thread. Rank 1
    enters the all-reduce 60 µs after rank 0. The GPUs of both ranks are idle from 150 to 240 µs.
    """
    builder = TraceBuilder(base_time_ns=1_700_000_000_000_000_000)
    for rank in (0, 1):
        forward = {"Sequence number": 7, "Fwd thread id": 0, "Input Dims": [[2, 3]]}
        backward = {"Sequence number": 7, "Fwd thread id": 1}
        builder.rank(rank).step(1, 0, 200).step(2, 200, 200)
        builder.operator("aten::mm", start_us=10, duration_us=90, args=forward)
        builder.kernel("gemm", start_us=50, duration_us=100, launch_us=20)
        builder.kernel(MARKUP, start_us=240, duration_us=10, launch_us=220)
        builder.collective("allreduce", start_us=260 + 60 * rank, duration_us=100 - 60 * rank, launch_us=230)
        builder.operator("MmBackward0", start_us=300, duration_us=50, thread=2, args=backward)
    return builder


@contextmanager
def serving(folder) -> Iterator[str]:
    """Serve the runs in a folder; return the address of the timeline."""
    with bound_server(Session([folder], cache=False), Address(port=0, has_token=False)) as server:
        threading.Thread(target=server.run, daemon=True).start()
        yield f"{server.url}?view=timeline"


class Drawn:
    """A timeline on a page; its values are read from the state of the page."""

    def __init__(self, seen: Visit, ranks: int | None = 2) -> None:
        """Wait until this many ranks are drawn and their rows no longer move; if None, wait until any rank is drawn."""
        self.page = seen.page
        if ranks is None:
            self.page.wait_for_selector('#timeline[data-drawn]:not([data-drawn="0"])', timeout=PATIENCE_MS)
        else:
            self.page.wait_for_selector(f'#timeline[data-drawn="{ranks}"]', timeout=PATIENCE_MS)
            self.until("it.ranks.every((rank) => rank.isArranged)")
        self.status = self.page.locator(".holotrace-timeline-status")
        self.details = self.page.locator(".holotrace-timeline-details")

    def of(self, expression: str) -> object:
        """Return the value of a JavaScript expression; `it` is the timeline."""
        return self.page.evaluate(f"() => {{ const it = window.holotrace.timeline; return {expression}; }}")

    def until(self, condition: str) -> None:
        """Wait until a JavaScript condition is true; `it` is the timeline."""
        self.page.wait_for_function(
            f"() => {{ const it = window.holotrace.timeline; return {condition}; }}", timeout=PATIENCE_MS
        )

    @property
    def window(self) -> tuple[float, float]:
        """The visible time range, in ns since the first event."""
        return tuple(self.of("[it.view.start, it.view.end]"))  # type: ignore[arg-type,return-value]  # two numbers

    def item(self, rank: int, row: str) -> str:
        """Return a JavaScript expression that finds this row of a rank in `it.view.items`."""
        return f"it.view.items.find((item) => item.rank.number === {rank} && item.row && item.row.label === '{row}')"

    def label(self, rank: int, row: str, x: float = LABELS_PX / 2) -> tuple[float, float]:
        """Return a position on the label of a row."""
        return self.on_page(x, self.of(f"it.view.y({self.item(rank, row)}.top) + 6"))  # type: ignore[arg-type]  # a number

    def press(self, name: str, rank: int, row: str) -> None:
        """Press the button `pin` or `hide` on the label of a row."""
        self.page.mouse.move(*self.label(rank, row, LABELS_PX - {"pin": 35, "hide": 13}[name]))
        self.page.mouse.down()
        self.page.mouse.up()

    def at(self, time_ns: float, rank: int, row: str, depth: int = 0) -> tuple[float, float]:
        """Return where a time in a row is drawn on the page."""
        x, y = self.of(f"[it.view.x({time_ns}), it.view.y({self.item(rank, row)}.top) + {depth} * 17 + 8]")  # type: ignore[misc]  # two numbers
        return self.on_page(x, y)

    def band(self, kind: str, time_ns: float, rank: int, below: float = 8) -> tuple[float, float]:
        """Return where a time in an overlay's row is drawn on the page."""
        item = f"it.view.items.find((item) => item.kind === '{kind}' && item.rank.number === {rank})"
        x, y = self.of(f"[it.view.x({time_ns}), it.view.y({item}.top) + {below}]")  # type: ignore[misc]  # two numbers
        return self.on_page(x, y)

    def ruler(self, time_ns: float) -> tuple[float, float]:
        """Return where a time on the ruler is drawn on the page."""
        return self.on_page(self.of(f"it.view.x({time_ns})"), RULER_PX / 2)  # type: ignore[arg-type]  # a number

    def on_page(self, x: float, y: float) -> tuple[float, float]:
        """Convert a position on the canvas to a position on the page."""
        box = self.page.locator(".holotrace-timeline-view canvas").bounding_box()
        assert box is not None
        return box["x"] + x, box["y"] + y

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag with the mouse from start to end."""
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move(*end, steps=4)
        self.page.mouse.up()

    def hold(self, key: str) -> None:
        """Hold a key briefly."""
        self.page.keyboard.down(key)
        self.page.wait_for_timeout(250)
        self.page.keyboard.up(key)

    def hold_until(self, key: str, moved: Callable[[tuple[float, float]], bool]) -> None:
        """Hold a key until `moved` returns true for the visible range; fail after `PATIENCE_MS`."""
        deadline = time.monotonic() + PATIENCE_MS / 1_000
        self.page.keyboard.down(key)
        while not moved(self.window):
            assert time.monotonic() < deadline, f"{key}: {self.window}"
            self.page.wait_for_timeout(20)
        self.page.keyboard.up(key)


def length(window: tuple[float, float]) -> float:
    """Return the length of the visible range."""
    return window[1] - window[0]
