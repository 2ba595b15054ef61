"""A question about traces: its wording, and the code that answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from holotrace.questions.options import Option
from holotrace.schema import EventKind

if TYPE_CHECKING:
    from holotrace.questions.tables import View
    from holotrace.store.plan import Plan
    from holotrace.store.trace import RankTrace


class Result(Protocol):
    """The properties that all results have; most of their other fields are tables."""

    @property
    def answer(self) -> str:
        """The answer in one sentence."""

    @property
    def findings(self) -> tuple[str, ...]:
        """Caveats and remarks about the result, one sentence each."""


@dataclass(frozen=True)
class Analysis:
    """One question about a trace, or about two traces.

    package      folder of the question; function, figure, command and page are named after it
    title        readable name, for headings and navigation
    question     the question in words
    definitions  terms used in the tables and the figure, each with its meaning
    section      the heading under which pages list the question
    options      options of the command, besides the common ones
    alias        name of the command, if it differs from the folder's name
    most_rows    maximum number of rows of a table on the terminal
    needs        kinds of events; a trace with no events of these kinds has no data for the question
    has_input    name of a function in `compute` that returns whether a rank has the required data; empty if `needs` is
                 enough
    fewest_ranks a trace with fewer ranks has no data for the question

    The computation and the tables are imported when first used, because both need polars.
    """

    package: str
    title: str
    question: str
    definitions: tuple[tuple[str, str], ...]
    section: str = "More"
    options: tuple[Option, ...] = ()
    alias: str = ""
    most_rows: int = 50
    needs: tuple[EventKind, ...] = ()
    has_input: str = ""
    fewest_ranks: int = 1

    @property
    def name(self) -> str:
        """Name of the question's folder, function, figure and page, such as `idle_time`."""
        return self.package.rpartition(".")[2]

    @property
    def command(self) -> str:
        """Name of the question's command, such as `idle-time`."""
        return self.alias or self.name.replace("_", "-")

    @property
    def page(self) -> str:
        """Path of the question's page, relative to the root of the documentation."""
        return f"reference/analyses/{self.name}.md"

    @property
    def python(self) -> str:
        """The line of Python that computes the result for an open trace."""
        return f"holotrace.{self.name}(trace)"

    @property
    def compute(self) -> Callable[..., Result]:
        """`compute(trace, *, executor) -> result`; for a comparison, `compute(control, test, *, executor)`."""
        function: Callable[..., Result] = getattr(self._module("compute"), self.name)
        return function

    @property
    def plan(self) -> Callable[..., Plan[Any, Any]]:
        """`plan(**options)` splits `compute` into one step per rank and a last step for all; comparisons have no plan."""
        function: Callable[..., Plan[Any, Any]] = self._module("compute").plan
        return function

    @property
    def input_check(self) -> Callable[[RankTrace], bool] | None:
        """The function whose name is in `has_input`; None if `has_input` is empty."""
        return getattr(self._module("compute"), self.has_input) if self.has_input else None

    @property
    def views(self) -> tuple[View, ...]:
        """The printed tables, the main one first."""
        views: tuple[View, ...] = self._module("tables").VIEWS
        return views

    @property
    def main_views(self) -> tuple[View, ...]:
        """The printed tables except detail tables, which have, for example, one row per stream, step or call."""
        return tuple(view for view in self.views if not view.is_detail)

    def _module(self, name: str) -> Any:  # noqa: ANN401 -- modules have different attributes
        return import_module(f"{self.package}.{name}")
