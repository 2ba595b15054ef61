"""References to the functions of `assets/shell/callbacks.js`.

Callbacks that run in the browser are in that file, because the content security policy forbids inline scripts.
"""

from __future__ import annotations

from dash import ClientsideFunction


def client(name: str) -> ClientsideFunction:
    """Return a reference to the browser function with this name."""
    return ClientsideFunction(namespace="holotrace", function_name=name)
