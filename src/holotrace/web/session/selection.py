"""What a page shows, written in the query string of its address: `?view=idle_time&run=31fc1308cf59&ranks=0-3,7`.

A link therefore shows the same page to everyone. Query strings are untrusted; invalid parts are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from urllib.parse import parse_qsl, urlencode

from holotrace.web.session.session import Scope

FIRST_VIEW, RUNS_VIEW = "overview", "runs"
"""The default pages: the overview of a run or, if there are several runs, the list of runs."""

LONGEST_QUERY = 8_192
MOST_NUMBERS = 100_000

_NUMBERS = re.compile(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*", re.ASCII)
_SCOPE_KEYS = ("ranks", "steps", "devices")
_OPTION_KEY = re.compile(r"[a-z][a-z0-9_.]{0,39}", re.ASCII)
_NAMED = {"view", "run", *_SCOPE_KEYS}


@dataclass(frozen=True)
class Selection:
    """The contents of an address: the page, and the part of a run that it shows.

    view                   name of the page; empty if the address has none
    run                    id of the run; None if the address has none
    ranks, steps, devices  the selected numbers; None for all
    options                further (key, value) pairs, sorted by key
    """

    view: str = FIRST_VIEW
    run: str | None = None
    ranks: tuple[int, ...] | None = None
    steps: tuple[int, ...] | None = None
    devices: tuple[int, ...] | None = None
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_query(cls, text: str | None) -> Selection:
        """Read a query string, with or without a leading question mark."""
        pairs = dict(_pairs(text or ""))
        options = {key: value for key, value in pairs.items() if key not in _NAMED and _OPTION_KEY.fullmatch(key)}
        return cls(
            view=pairs.get("view", ""),
            run=pairs.get("run") or None,
            ranks=numbers_of(pairs.get("ranks", "")),
            steps=numbers_of(pairs.get("steps", "")),
            devices=numbers_of(pairs.get("devices", "")),
            options=tuple(sorted((key, value) for key, value in options.items() if value)),
        )

    def query(self) -> str:
        """Return the query string, which begins with a question mark."""
        numbers = {key: text_of(getattr(self, key) or ()) for key in _SCOPE_KEYS}
        named = {"view": self.view, "run": self.run or "", **numbers}
        pairs = [(key, value) for key, value in named.items() if value]
        return "?" + urlencode([*pairs, *self.options], errors="surrogatepass", safe=",:")

    @property
    def scope(self) -> Scope:
        """The selected part of the run."""
        return Scope(self.run or "", self.ranks, self.steps, self.devices)

    def option(self, key: str, default: str = "") -> str:
        """Return the value of an option."""
        return dict(self.options).get(key, default)

    @property
    def is_narrow(self) -> bool:
        """Whether only some ranks, steps or devices are selected."""
        return any(numbers is not None for numbers in (self.ranks, self.steps, self.devices))

    @property
    def widened(self) -> Selection:
        """The same page for the whole run."""
        return replace(self, ranks=None, steps=None, devices=None)

    def at(self, view: str) -> Selection:
        """Return the selection with another page, but the same run, ranks, steps and devices."""
        return replace(self, view=view, options=())

    def with_options(self, **options: str) -> Selection:
        """Return the selection with these options changed; an empty value removes an option."""
        merged = {**dict(self.options), **options}
        return replace(self, options=tuple(sorted((key, value) for key, value in merged.items() if value)))


def numbers_of(text: str) -> tuple[int, ...] | None:
    """Read `0-3,7` as (0, 1, 2, 3, 7); None if the text is not a list of numbers, or lists too many."""
    if not _NUMBERS.fullmatch(text):
        return None
    bounds = [tuple(map(int, part.split("-"))) for part in text.split(",")]
    if sum(bound[-1] - bound[0] + 1 for bound in bounds) > MOST_NUMBERS:
        return None
    return tuple(sorted({number for bound in bounds for number in range(bound[0], bound[-1] + 1)})) or None


def text_of(numbers: Iterable[int]) -> str:
    """Write (0, 1, 2, 3, 7) as `0-3,7`."""
    runs = groupby(enumerate(sorted(set(numbers))), key=lambda pair: pair[1] - pair[0])
    parts = [[number for _, number in run] for _, run in runs]
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def _pairs(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text[:LONGEST_QUERY].removeprefix("?"), max_num_fields=64)
    except ValueError:  # the query has too many fields
        return []
