"""Generated files are up to date."""

from __future__ import annotations

import subprocess
import sys

from pages import ROOT


def test_generated_files_are_up_to_date() -> None:
    """`scripts/generate --check` finds no file that `make generate` would change."""
    check = [sys.executable, ROOT / "scripts" / "generate", "--check"]
    run = subprocess.run(check, capture_output=True, check=False, text=True)  # noqa: S603
    assert (run.returncode, run.stderr) == (0, "")
