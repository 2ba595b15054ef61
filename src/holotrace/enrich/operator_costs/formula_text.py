"""Cost formulas that users write as text, such as `2 * size(0, -2) * size(0, -1) * size(1, -1)`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache
from types import CodeType

from holotrace.enrich.operator_costs.arguments import Arguments
from holotrace.enrich.operator_costs.cost import UnknownCostError
from holotrace.errors import InvalidOptionError

FUNCTIONS = ("elements", "bytes", "size", "element_bytes", "number", "min", "max")
"""Functions that a formula may call.

Four functions describe an input: `elements` returns the number of its elements, `bytes` the number of its bytes, `size`
the size of one of its dimensions, and `element_bytes` its bytes per element. `number` returns the value of an argument
that is a number. `min` and `max` return the smallest and the largest of several numbers.
"""

_ALLOWED = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.Call, ast.Constant, ast.Name, ast.Load),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.USub),
)


def checked_formula(text: object, where: str) -> str:
    """Return the text of a formula if it is valid; `where` names the rule in error messages.

    Raises:
        InvalidOptionError: the text is not arithmetic with numbers and `FUNCTIONS`.
    """
    try:
        _compiled(str(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        message = f"{where}: {text!r} is not a formula: {error}; use + - * / // % and {', '.join(FUNCTIONS)}"
        raise InvalidOptionError(message) from error
    return str(text)


def value_of(text: str, arguments: Arguments) -> int:
    """Return the value of a formula for one call, rounded to a whole number.

    Raises:
        UnknownCostError: the inputs of the formula were not recorded, or its value cannot be computed.
    """
    try:
        value: float = eval(_compiled(text), {"__builtins__": {}}, _names(arguments))  # noqa: S307 -- only arithmetic passes `_compiled`
        return round(value)
    except (ArithmeticError, TypeError, IndexError, ValueError) as error:
        if isinstance(error, UnknownCostError):
            raise
        message = f"{text!r} cannot be computed: {error}"
        raise UnknownCostError(message) from error


@lru_cache(maxsize=1024)
def _compiled(text: str) -> CodeType:
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        _check(node)
    return compile(tree, "<formula>", "eval")


def _check(node: ast.AST) -> None:
    if not isinstance(node, _ALLOWED):
        message = f"{type(node).__name__} is not allowed"
        raise ValueError(message)  # noqa: TRY004 -- the text is wrong, not a type
    if isinstance(node, ast.Name) and node.id not in FUNCTIONS:
        message = f"the name {node.id} is unknown"
        raise ValueError(message)
    if isinstance(node, ast.Constant) and not isinstance(node.value, (int, float)):
        message = f"{node.value!r} is not a number"
        raise ValueError(message)  # noqa: TRY004 -- the text is wrong, not a type


def _names(arguments: Arguments) -> dict[str, Callable[..., int]]:
    return {
        "elements": arguments.elements,
        "bytes": arguments.bytes,
        "size": lambda index, dimension: arguments.shape(index)[dimension],
        "element_bytes": arguments.element_bytes,
        "number": arguments.number,
        "min": min,
        "max": max,
    }
