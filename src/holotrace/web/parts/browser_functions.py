"""Names of the functions in `assets/holotrace.js`: no script stands in a page, so that the policy can forbid it."""

from __future__ import annotations

from dash import ClientsideFunction


def client(name: str) -> ClientsideFunction:
    """Return the function of that name in the browser."""
    return ClientsideFunction(namespace="holotrace", function_name=name)
