"""Tests of how the option `compat` selects the rules that attribute device work to operators."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import pytest

import holotrace
from holotrace.enrich.attribution import Attribution
from holotrace.enrich.compat import attribution_of
from holotrace.enrich.tensorboard_plugin.attribution import PluginAttribution
from holotrace.errors import InvalidOptionError
from holotrace.testing import small_job


def test_the_default_is_our_attribution() -> None:
    """`compat=None` selects holotrace's attribution, and "torch_tb_profiler" the plugin's."""
    assert type(attribution_of(None)) is Attribution
    assert type(attribution_of("torch_tb_profiler")) is PluginAttribution
    assert attribution_of(None) != attribution_of("torch_tb_profiler")


@pytest.mark.parametrize("attribution", [Attribution(), PluginAttribution()])
def test_an_attribution_reaches_workers_unchanged(attribution: Attribution) -> None:
    """Pickling preserves the equality and the hash of an attribution, so workers and caches can use it."""
    copied = pickle.loads(pickle.dumps(attribution))  # noqa: S301 -- our own
    assert copied == attribution
    assert hash(copied) == hash(attribution)


def test_the_plugins_attribution_is_imported_only_for_compat() -> None:
    """Importing `compat` does not import the plugin's code, so commands without the option start faster."""
    code = "import sys, holotrace.enrich.compat; print('holotrace.enrich.tensorboard_plugin' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout.strip() == b"False"  # noqa: S603 -- our own


def test_the_plugin_overrides_methods_of_the_interface() -> None:
    """Each method of the plugin's class overrides a method of the interface; a misspelt one would never be called."""
    overridden = {name for name, _ in inspect.getmembers(PluginAttribution, inspect.isfunction)}
    assert overridden <= {name for name, _ in inspect.getmembers(Attribution, inspect.isfunction)}


@pytest.mark.parametrize("analysis", [holotrace.operators, holotrace.step_time, holotrace.modules, holotrace.kernels])
def test_an_unknown_value_is_an_error(analysis) -> None:
    """The message for `compat="tensorboard"` names the only valid value."""
    with pytest.raises(InvalidOptionError, match="compat='tensorboard' is not a known value; use 'torch_tb_profiler'"):
        analysis(small_job(), compat="tensorboard")
