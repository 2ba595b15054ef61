"""Python code that computes the result on a page."""

from __future__ import annotations

from holotrace.web.session.runs import RunInfo
from holotrace.web.session.session import Scope

_SELECTING = ("import functools", "from holotrace.enrich.steps.selections import in_steps, on_devices")


def python_of(call: str, run: RunInfo, scope: Scope, *, imports: tuple[str, ...] = ()) -> str:
    """Return code that opens the trace and evaluates `call`, such as `holotrace.idle_time(trace)`."""
    lines = ["import holotrace", *imports, *(_SELECTING if scope.steps or scope.devices else ()), ""]
    return "\n".join([*lines, *opening("trace", run, scope), f"result = {call}"])


def opening(name: str, run: RunInfo, scope: Scope) -> list[str]:
    """Return the lines that open a trace and select ranks, steps and devices."""
    source = run.source if isinstance(run.source, str) else list(run.source)
    ranks = "" if scope.ranks is None else f", ranks={list(scope.ranks)}"
    selected = (("in_steps", "steps", scope.steps), ("on_devices", "devices", scope.devices))
    return [
        f"{name} = holotrace.open_trace({source!r}{ranks})",
        *(
            f"{name} = {name}.where(functools.partial({function}, {key}={list(numbers)}))"
            for function, key, numbers in selected
            if numbers is not None
        ),
    ]
