"""Public functions, and the methods of the main classes, have a correct example in their docstring."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import holotrace
import holotrace.figures
import holotrace.testing
import hta

FUNCTIONS = {
    f"{module.__name__}.{name}": inspect.unwrap(getattr(module, name))
    for module in (holotrace, holotrace.testing, holotrace.figures)
    for name in module.__all__
    if inspect.isfunction(inspect.unwrap(getattr(module, name)))
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_is_correct(name: str) -> None:
    """The example in a function's docstring runs without other code and prints the documented output."""
    (example,) = doctest.DocTestFinder(recurse=False).find(FUNCTIONS[name], name, globs={})
    result = doctest.DocTestRunner().run(example)

    assert result.attempted > 0, f"{name} has no example"
    assert result.failed == 0


CLASSES = (holotrace.Trace, holotrace.RankTrace, holotrace.testing.TraceBuilder)


@pytest.mark.parametrize("class_", CLASSES, ids=lambda class_: class_.__name__)
def test_the_examples_of_a_class_and_its_methods_are_correct(class_: type) -> None:
    """The class, and each of its public methods and properties, has an example that runs without other code."""
    examples = [test for test in doctest.DocTestFinder().find(class_, globs={}) if "._" not in test.name]
    results = {test.name: doctest.DocTestRunner().run(test) for test in examples}

    assert len(results) > 1
    assert [name for name, result in results.items() if result.attempted == 0] == []
    assert [name for name, result in results.items() if result.failed] == []


OTHER_CLASSES = [
    value for name in holotrace.__all__ if isinstance(value := getattr(holotrace, name), type) and value not in CLASSES
]


@pytest.mark.parametrize("class_", OTHER_CLASSES, ids=lambda class_: class_.__name__)
def test_the_example_of_a_class_is_correct(class_: type) -> None:
    """The example in the docstring of any other public class runs and prints the documented output."""
    (example,) = doctest.DocTestFinder(recurse=False).find(class_, class_.__name__, globs={})
    result = doctest.DocTestRunner().run(example)

    assert result.attempted > 0, f"{class_.__name__} has no example"
    assert result.failed == 0


METHODS_OF = {f"{class_.__module__}.{class_.__qualname__}" for class_ in CLASSES}
MODULES = sorted(
    ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
    for root in (Path(holotrace.__file__).parent, Path(hta.__file__).parent)
    for path in root.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_correct(name: str) -> None:
    """The examples of private functions and classes print the documented output."""
    public = {f"{value.__module__}.{value.__qualname__}" for value in (*FUNCTIONS.values(), *CLASSES, *OTHER_CLASSES)}
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(import_module(name)):
        if example.name not in public and example.name.rpartition(".")[0] not in METHODS_OF:
            runner.run(example)

    assert runner.failures == 0
