"""HTA's environment variables, as functions.

Every call reads the variable, so changes take effect immediately. Only CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE and
CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS have an effect. The other variables have no effect, because holotrace never
rounds times, always includes edges for launches without a delay, and always computes depths.
"""

from __future__ import annotations

import os
from typing import ClassVar

HTA_DISABLE_NS_ROUNDING_ENV = "HTA_DISABLE_NS_ROUNDING"
HTA_DISABLE_CG_DEPTH_ENV = "HTA_DISABLE_CG_DEPTH"
CP_LAUNCH_EDGE_ENV = "CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE"
CP_LAUNCH_EDGE_SHOW_ENV = "CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE"
CP_STRICT_NEG_WEIGHT_CHECK_ENV = "CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS"

_VARIABLES = {
    "disable_ns_rounding": HTA_DISABLE_NS_ROUNDING_ENV,
    "disable_call_graph_depth": HTA_DISABLE_CG_DEPTH_ENV,
    "critical_path_add_zero_weight_launch_edges": CP_LAUNCH_EDGE_ENV,
    "critical_path_show_zero_weight_launch_edges": CP_LAUNCH_EDGE_SHOW_ENV,
    "critical_path_strict_negative_weight_check": CP_STRICT_NEG_WEIGHT_CHECK_ENV,
}


class HTAEnvOptions:
    """The environment variables as methods; a variable is on if it is 1."""

    _the_one: ClassVar[HTAEnvOptions | None] = None

    @classmethod
    def instance(cls) -> HTAEnvOptions:
        """Return the shared instance."""
        if cls._the_one is None:
            cls._the_one = cls()
        return cls._the_one

    def disable_ns_rounding(self) -> bool:
        """Return whether HTA_DISABLE_NS_ROUNDING is 1; it has no effect, because times are always exact."""
        return is_switched_on(HTA_DISABLE_NS_ROUNDING_ENV)

    def set_disable_ns_rounding(self, value: bool) -> None:  # noqa: FBT001 -- HTA's signature
        """Set HTA_DISABLE_NS_ROUNDING."""
        _set(HTA_DISABLE_NS_ROUNDING_ENV, is_on=value)

    def disable_call_graph_depth(self) -> bool:
        """Return whether HTA_DISABLE_CG_DEPTH is 1; it has no effect, because depths are always computed."""
        return is_switched_on(HTA_DISABLE_CG_DEPTH_ENV)

    def set_disable_call_graph_depth(self, value: bool) -> None:  # noqa: FBT001 -- HTA's signature
        """Set HTA_DISABLE_CG_DEPTH."""
        _set(HTA_DISABLE_CG_DEPTH_ENV, is_on=value)

    def critical_path_add_zero_weight_launch_edges(self) -> bool:
        """Return whether CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE is 1; it has no effect: these edges always exist."""
        return is_switched_on(CP_LAUNCH_EDGE_ENV)

    def set_critical_path_add_zero_weight_launch_edges(self, value: bool) -> None:  # noqa: FBT001 -- HTA's signature
        """Set CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE."""
        _set(CP_LAUNCH_EDGE_ENV, is_on=value)

    def critical_path_show_zero_weight_launch_edges(self) -> bool:
        """Return whether trace copies with all edges include the edges of launches that have no launch delay."""
        return is_switched_on(CP_LAUNCH_EDGE_SHOW_ENV)

    def set_critical_path_show_zero_weight_launch_edges(self, value: bool) -> None:  # noqa: FBT001 -- HTA's signature
        """Set CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE."""
        _set(CP_LAUNCH_EDGE_SHOW_ENV, is_on=value)

    def critical_path_strict_negative_weight_check(self) -> bool:
        """Return whether the analysis fails if an edge ends before it starts."""
        return is_switched_on(CP_STRICT_NEG_WEIGHT_CHECK_ENV)

    def set_critical_path_strict_negative_weight_check(self, value: bool) -> None:  # noqa: FBT001 -- HTA's signature
        """Set CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS."""
        _set(CP_STRICT_NEG_WEIGHT_CHECK_ENV, is_on=value)

    def get_options_str(self) -> str:
        """Return every variable with its value."""
        return "\n".join(
            f"{name}={is_switched_on(variable)}, {variable}={os.environ.get(variable, 'unset')}"
            for name, variable in _VARIABLES.items()
        )


def disable_ns_rounding() -> bool:
    """See `HTAEnvOptions`."""
    return HTAEnvOptions.instance().disable_ns_rounding()


def disable_call_graph_depth() -> bool:
    """See `HTAEnvOptions`."""
    return HTAEnvOptions.instance().disable_call_graph_depth()


def critical_path_add_zero_weight_launch_edges() -> bool:
    """See `HTAEnvOptions`."""
    return HTAEnvOptions.instance().critical_path_add_zero_weight_launch_edges()


def critical_path_show_zero_weight_launch_edges() -> bool:
    """See `HTAEnvOptions`."""
    return HTAEnvOptions.instance().critical_path_show_zero_weight_launch_edges()


def critical_path_strict_negative_weight_check() -> bool:
    """See `HTAEnvOptions`."""
    return HTAEnvOptions.instance().critical_path_strict_negative_weight_check()


def get_options() -> str:
    """Return every variable with its value."""
    return HTAEnvOptions.instance().get_options_str()


def is_switched_on(variable: str) -> bool:
    """Return whether an environment variable is 1."""
    return os.environ.get(variable) == "1"


def _set(variable: str, *, is_on: bool) -> None:
    os.environ[variable] = "1" if is_on else "0"
