"""`import hta` warns when Meta's files are mixed with ours."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import hta

PACKAGE = Path(hta.__file__).parent.parent

IMPORT = "import site, sys; site.addsitedir(sys.argv[1]); import hta"


@pytest.fixture
def environment(tmp_path) -> Path:
    """Create a site-packages folder that contains holotrace-hta."""
    (tmp_path / "hta").mkdir()
    (tmp_path / "hta" / "__init__.py").touch()
    (tmp_path / "hta" / "trace_analysis.py").touch()
    (tmp_path / "_holotrace_hta").symlink_to(PACKAGE / "_holotrace_hta")
    (tmp_path / "holotrace_hta.pth").write_text((PACKAGE / "holotrace_hta.pth").read_text(encoding="utf-8"))
    add_distribution(tmp_path, "holotrace-hta", "0.1.0", files=["hta/__init__.py", "hta/trace_analysis.py"])
    return tmp_path


def add_distribution(folder: Path, name: str, number: str, files: list[str]) -> None:
    """Write the metadata of an installed distribution."""
    info = folder / f"{name.replace('-', '_')}-{number}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def said(environment: Path) -> str:
    """Import `hta` in a new process and return what it writes to stderr."""
    command = [sys.executable, "-S", "-c", IMPORT, str(environment)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 -- our own code
    return done.stderr


def test_a_clean_environment_causes_no_warning(environment) -> None:
    """In a clean environment, neither the start of Python nor `import hta` prints anything."""
    assert said(environment) == ""


@pytest.mark.parametrize("name", ["traceinsight", "HolisticTraceAnalysis"])
def test_metas_package_next_to_ours_is_reported(environment, name) -> None:
    """`import hta` warns if Meta's package is installed too, whatever the order of installation."""
    add_distribution(environment, name, "0.6.1", files=["hta/__init__.py"])
    assert (
        f"holotrace-hta and Meta's {name} 0.6.1 both install the package hta, and their files are mixed now. "
        f"Run `pip uninstall -y {name} holotrace-hta`, then install the one you want"
    ) in said(environment)


def test_files_removed_by_an_uninstallation_are_reported(environment) -> None:
    """`import hta` warns if uninstalling Meta's package removed files of holotrace-hta."""
    (environment / "hta" / "trace_analysis.py").unlink()
    warning = said(environment)
    assert "another package has removed files of holotrace-hta: hta/trace_analysis.py." in warning
    assert "pip install --force-reinstall --no-deps holotrace-hta" in warning


def test_both_distributions_have_the_same_version() -> None:
    """holotrace-hta and holotrace have the same version."""
    assert version("holotrace-hta") == version("holotrace")
