"""A check of folders, at HTA's import path."""

from __future__ import annotations

from dataclasses import dataclass

from holotrace.errors import InvalidOptionError
from holotrace.locations import expect_writable_folder, located


@dataclass(frozen=True)
class OperationOutcome:
    """Whether a check passed, and the reason if it failed ("" if it passed)."""

    success: bool
    reason: str


def is_valid_directory(
    path_to_directory: str,
    must_be_writable: bool = False,  # noqa: FBT001, FBT002 -- HTA's signature
) -> OperationOutcome:
    """Check that a path is a folder and, optionally, that it is writable."""
    if not path_to_directory:
        return OperationOutcome(success=False, reason="the path needs to be a non-empty string")
    path = located(path_to_directory)
    if not path.is_dir():
        fault = "is not a directory" if path.exists() else "does not exist"
        return OperationOutcome(success=False, reason=f"{path} {fault}")
    try:
        if must_be_writable:
            expect_writable_folder(path)
    except InvalidOptionError as error:
        return OperationOutcome(success=False, reason=str(error))
    return OperationOutcome(success=True, reason="")
