"""HTA's logger, configuration files and environment variables."""

from __future__ import annotations

import json
import logging

import pytest

from holotrace.errors import InvalidOptionError
from hta.configs import env_options
from hta.configs.config import HtaConfig, logger, setup_logger
from hta.version import __version__, __version_tuple__


def test_later_configurations_override_earlier_ones(tmp_path, monkeypatch, capsys) -> None:
    """A given file overrides the one in the current folder, which overrides the one in the home folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".hta").mkdir(parents=True)
    for folder, content in (("home/.hta", {"a": 1, "b": {"c": 2}}), (".", {"a": 3})):
        (tmp_path / folder / "trace_analyzer.json").write_text(json.dumps(content))
    (tmp_path / "mine.json").write_text('{"d": null}')
    config = HtaConfig(str(tmp_path / "mine.json"))
    assert config.get_config() == {"a": 3, "b": {"c": 2}, "d": None}
    assert [config.get_config(path, "none") for path in ("b.c", "b.x", "d")] == [2, "none", None]
    assert len(config.get_config_file_paths()) == 3
    config.show()
    assert json.loads(capsys.readouterr().out) == config.config
    assert HtaConfig(load_default_paths=False).config == {}


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_file_that_is_not_a_configuration_is_an_error(text, tmp_path) -> None:
    """The error for invalid JSON, or for JSON that is not an object, names the file."""
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises(InvalidOptionError, match=r"mine\.json"):
        HtaConfig(str(tmp_path / "mine.json"), load_default_paths=False)


def test_the_logger_is_that_of_the_package() -> None:
    """`setup_logger` does not configure logging; `hta.configs.config.logger` is the logger of holotrace."""
    before = list(logging.getLogger().handlers)
    setup_logger()
    assert logger is logging.getLogger("holotrace")
    assert logging.getLogger().handlers == before


OPTIONS = (
    ("disable_ns_rounding", "HTA_DISABLE_NS_ROUNDING"),
    ("disable_call_graph_depth", "HTA_DISABLE_CG_DEPTH"),
    ("critical_path_add_zero_weight_launch_edges", "CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE"),
    ("critical_path_show_zero_weight_launch_edges", "CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE"),
    ("critical_path_strict_negative_weight_check", "CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS"),
)


@pytest.mark.parametrize(("name", "variable"), OPTIONS)
def test_an_option_is_its_environment_variable(name, variable, monkeypatch) -> None:
    """Each option reads its environment variable on every call, and its setter sets the variable."""
    monkeypatch.setenv(variable, "0")  # monkeypatch restores it afterwards
    options = env_options.HTAEnvOptions.instance()
    assert not getattr(env_options, name)()
    getattr(options, f"set_{name}")(value=True)
    assert getattr(env_options, name)()
    monkeypatch.setenv(variable, "0")
    assert not getattr(options, name)()
    assert f"{name}=False, {variable}=0" in env_options.get_options()


def test_the_version_is_that_of_the_package() -> None:
    """`__version__` starts with the numbers in `__version_tuple__`."""
    assert __version__.startswith(".".join(map(str, __version_tuple__)))
