"""The functions of `assets/shell/callbacks.js`; the content security policy forbids inline scripts."""

from __future__ import annotations

from dash import ClientsideFunction


def client(name: str) -> ClientsideFunction:
    """Return the function with this name in the browser."""
    return ClientsideFunction(namespace="holotrace", function_name=name)
