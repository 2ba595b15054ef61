"""HTA's lists of args, at HTA's import path; these lists are Python code, not YAML."""

from __future__ import annotations

from hta.configs.default_values import EVENT_ARGS, EventArgs, YamlVersion, v1_0_0

__all__ = ["parse_event_args_yaml", "v1_0_0"]


def parse_event_args_yaml(version: YamlVersion) -> EventArgs:  # noqa: ARG001 -- HTA's signature
    """Return HTA's lists of args; `version` is ignored, because all versions have the same lists."""
    return EVENT_ARGS
