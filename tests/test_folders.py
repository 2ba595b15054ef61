"""A folder has at most 15 files, so that its listing stays short; tests that need servers are in separate folders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import holotrace
import hta

MOST_FILES = 15


ROOT = Path(__file__).parent.parent
CODE = [
    Path(holotrace.__file__).parent,
    Path(hta.__file__).parent,
    ROOT / "tests",
    ROOT / "packages/holotrace-hta/tests",
]
DATA = {"golden", "reference", "flop_zoo"}


@pytest.mark.parametrize("root", CODE, ids=lambda root: f"{root.parent.name}/{root.name}")
def test_no_folder_has_more_than_15_files(root):
    """Source files and assets are counted; compiled modules, caches and test data are not."""
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and path.name != "__pycache__")]
    folders = [folder for folder in folders if not DATA.intersection(folder.relative_to(root).parts)]
    sizes = {str(folder.relative_to(root)): sum(map(is_source, folder.iterdir())) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > MOST_FILES} == {}


@pytest.mark.parametrize(("mark", "folder"), [("clusters", "clusters"), ("stores", "remote")])
def test_tests_that_need_servers_are_where_make_looks_for_them(mark, folder):
    """`make test-clusters` and `make test-stores` collect only their folders, because collecting all tests is slow."""
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "packages").rglob("test_*.py")]
    marked = {path.parent for path in files if re.search(rf"pytest\.mark\.{mark}\b", path.read_text(encoding="utf-8"))}
    assert marked == {ROOT / "tests" / folder}


def is_source(path: Path) -> bool:
    """Whether a file is counted."""
    return path.is_file() and path.suffix not in {".so", ".pyd", ".pyc"} and not path.name.startswith(".")
