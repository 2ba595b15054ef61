"""Call stacks of single threads, at HTA's import path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hta.facade.graphs.call_stack_nodes import (
    EVENT_END,
    EVENT_START,
    NON_EXISTENT_NODE_INDEX,
    NULL_NODE_INDEX,
    CallStackGraph,
    CallStackIdentity,
    CallStackNode,
)
from hta.facade.imports.elsewhere import names_of

if not TYPE_CHECKING:
    __getattr__ = names_of(__name__)

__all__ = [
    "EVENT_END",
    "EVENT_START",
    "NON_EXISTENT_NODE_INDEX",
    "NULL_NODE_INDEX",
    "CallStackGraph",
    "CallStackIdentity",
    "CallStackNode",
]
