"""The option `compat`, with which an analysis reproduces the numbers of another tool."""

from __future__ import annotations

from typing import Literal, TypeAlias

from holotrace.enrich.attribution import Attribution
from holotrace.errors import InvalidOptionError

Compat: TypeAlias = Literal["torch_tb_profiler"]
"""A tool whose numbers an analysis can reproduce: PyTorch's TensorBoard plugin, in the last version of its source."""


def attribution_of(compat: Compat | None) -> Attribution:
    """Return the attribution that the option `compat` selects; None selects holotrace's own attribution.

    Raises:
        InvalidOptionError: `compat` is neither None nor a known value.
    """
    if checked_compat(compat) is None:
        return Attribution()
    from holotrace.enrich.tensorboard_plugin.attribution import PluginAttribution  # noqa: PLC0415 -- few ask for it

    return PluginAttribution()


def checked_compat(compat: Compat | None) -> Compat | None:
    """Return `compat` unchanged if its value is valid.

    Raises:
        InvalidOptionError: `compat` is neither None nor a known value.
    """
    if compat not in {None, "torch_tb_profiler"}:
        message = (
            f"compat={compat!r} is not a known value; use 'torch_tb_profiler', or leave it out for holotrace's numbers"
        )
        raise InvalidOptionError(message)
    return compat
