"""`holotrace.testing` exports its public names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holotrace import testing


def test_public_names_are_sorted_and_exist():
    """`holotrace.testing.__all__` is sorted, and each name exists."""
    assert testing.__all__ == sorted(testing.__all__)
    assert all(getattr(testing, name) for name in testing.__all__)


def test_an_unknown_name_is_an_attribute_error():
    """`testing.nothing` raises an AttributeError that names the module and the attribute."""
    with pytest.raises(AttributeError, match=r"holotrace\.testing.* nothing"):
        _ = testing.nothing


def test_only_strategies_needs_hypothesis():
    """Importing the builder and the simulated jobs does not import Hypothesis."""
    code = "import sys, holotrace.testing.builder, holotrace.testing.synthetic; sys.exit('hypothesis' in sys.modules)"

    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 -- own code
