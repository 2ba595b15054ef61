"""What an entry of the catalogue is: one question about a trace, with all that people see of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from holotrace.tables import View


class Result(Protocol):
    """What all results have in common: a sentence for each thing noticed on the way. The rest are tables."""

    @property
    def findings(self) -> tuple[str, ...]:
        """What was noticed."""


@dataclass(frozen=True)
class Analysis:
    """One question about a trace.

    name         the word that leads to its function, figure, command and page
    title        what people call it
    question     what it answers
    compute      `compute(trace, *, executor) -> result`
    views        its tables for people, the most telling one first
    definitions  the terms it uses, each with its meaning
    section      the heading under which pages list it
    """

    name: str
    title: str
    question: str
    compute: Callable[..., Result]
    views: tuple[View, ...]
    definitions: tuple[tuple[str, str], ...]
    section: str = "More"

    @property
    def command(self) -> str:
        """Name of its command: `idle-time`."""
        return self.name.replace("_", "-")

    @property
    def main_views(self) -> tuple[View, ...]:
        """The tables of a summary: those not by stream, of which a job has many."""
        return tuple(view for view in self.views if not view.is_detail)

    @property
    def page(self) -> str:
        """Its page, from the root of the documentation."""
        return f"reference/analyses/{self.name}.md"

    @property
    def python(self) -> str:
        """The line that gives its result, for a trace that is open."""
        return f"holotrace.{self.name}(trace)"
