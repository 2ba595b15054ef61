"""Every public function has a correct example in its docstring."""

from __future__ import annotations

import doctest
import inspect

import pytest

import holotrace
import holotrace.testing

FUNCTIONS = {
    f"{module.__name__}.{name}": inspect.unwrap(getattr(module, name))
    for module in (holotrace, holotrace.testing)
    for name in module.__all__
    if inspect.isfunction(inspect.unwrap(getattr(module, name)))
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_is_correct(name: str) -> None:
    """The example in a function's docstring runs by itself and prints what it says."""
    (example,) = doctest.DocTestFinder(recurse=False).find(FUNCTIONS[name], name, globs={})
    result = doctest.DocTestRunner().run(example)

    assert result.attempted > 0, f"{name} has no example"
    assert result.failed == 0
