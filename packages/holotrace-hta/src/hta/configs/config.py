"""The logger, and HTA's configuration files.

Analyses do not read configuration files. `HtaConfig` exists only for scripts that read `trace_analyzer.json` with it.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from holotrace.errors import InvalidOptionError
from hta.configs.default_values import DEFAULT_CONFIG_FILENAME

logger = logging.getLogger("holotrace")
"""The logger of holotrace; configure its output with `logging`."""


def setup_logger(config_file: str = "logging.config") -> None:
    """Do nothing; configure output with `logging.basicConfig`."""


class HtaConfig:
    """The merged content of configuration files; later files take precedence.

    Args:
        config_file_path: a file to read last.
        load_default_paths: also read `trace_analyzer.json` next to this package, in `~/.hta` and in the current folder.

    Raises:
        InvalidOptionError: a file is not a JSON object.
    """

    def __init__(
        self,
        config_file_path: str | None = None,
        load_default_paths: bool | None = True,  # noqa: FBT001, FBT002 -- HTA's signature
    ) -> None:
        self.config_file_paths = HtaConfig.get_default_paths() if load_default_paths else []
        if config_file_path:
            self.config_file_paths.append(config_file_path)
        self.config: dict[str, Any] = {}
        for path in self.get_config_file_paths():
            self.config |= _content(path)

    @staticmethod
    def get_default_paths() -> list[str]:
        """Return the default paths: next to this package, in `~/.hta` and in the current folder."""
        folders = (Path(__file__).parents[1], Path.home() / ".hta", Path.cwd())
        return [str(folder / DEFAULT_CONFIG_FILENAME) for folder in folders]

    @staticmethod
    def get_test_data_path(dataset: str) -> str:
        """Return `tests/data/<dataset>` below the current folder."""
        return str(Path.cwd() / "tests" / "data" / dataset)

    def get_config_file_paths(self) -> list[str]:
        """Return the files that exist and are readable."""
        return [path for path in self.config_file_paths if os.access(path, os.R_OK)]

    def get_config(self, dot_path: str | None = None, default_value: Any = None) -> Any:  # noqa: ANN401 -- HTA's
        """Return the value at a path such as `a.b.c`, or the default; without a path, return the whole content."""
        value: Any = self.config
        for key in [] if dot_path is None else dot_path.split("."):
            if not isinstance(value, dict) or key not in value:
                return default_value
            value = value[key]
        return value

    def show(self) -> None:
        """Print the content as JSON."""
        print(json.dumps(self.config, indent=4, sort_keys=True))  # noqa: T201 -- its purpose is to print


def _content(path: str) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        message = f"{path} is not valid JSON: {error}"
        raise InvalidOptionError(message) from error
    if not isinstance(content, dict):
        message = f"{path} is not a JSON object"
        raise InvalidOptionError(message)
    return content
