"""The examples, links and navigation of the documentation pages, for tests."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NAVIGATION = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def python_blocks(page: Path) -> list[str]:
    """Return the Python examples of a page that do not import PyTorch."""
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [block for block in blocks if "import torch" not in block]


def relative_links(page: Path) -> list[str]:
    """Return the files that a page links to, without anchors."""
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    return [link.split("#")[0] for link in links if "://" not in link and not link.startswith("#")]


def navigation_entries(page: Path) -> list[Path]:
    """Return the pages listed below a page in the navigation."""
    lines = [line for block in _NAVIGATION.findall(page.read_text(encoding="utf-8")) for line in block.splitlines()]
    names = [line.split("<")[-1].rstrip(">") for line in lines if line and not line.startswith(":")]
    return [entry for name in names for entry in sorted(page.parent.glob(f"{name}.md")) if entry != page]


def run_blocks(page: Path) -> None:
    """Run the examples of a page in order."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), namespace)  # noqa: S102 -- pages of this repository


def script(name: str) -> ModuleType:
    """Import a script of the repository; return its module."""
    spec = importlib.util.spec_from_file_location(Path(name).name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
