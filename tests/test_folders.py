"""A newcomer can take in a folder at a glance: it has at most 15 files. Tests that need servers have folders of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import holotrace
import hta

MOST_FILES = 15


@pytest.mark.parametrize("package", [holotrace, hta], ids=lambda package: package.__name__)
def test_no_folder_has_more_than_15_files(package):
    """Source files and assets count as files; compiled modules and caches do not."""
    root = Path(package.__file__).parent
    folders = [root, *(path for path in root.rglob("*") if path.is_dir() and path.name != "__pycache__")]
    sizes = {str(folder.relative_to(root)): sum(map(is_source, folder.iterdir())) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > MOST_FILES} == {}


@pytest.mark.parametrize(("mark", "folder"), [("clusters", "clusters"), ("stores", "remote")])
def test_tests_that_need_servers_are_where_make_looks_for_them(mark, folder):
    """`make test-clusters` and `make test-stores` collect only their folders, because collecting all tests takes long."""
    here = Path(__file__).parent
    files = [*here.rglob("test_*.py"), *(here.parent / "packages").rglob("test_*.py")]
    marked = {path.parent for path in files if re.search(rf"pytest\.mark\.{mark}\b", path.read_text(encoding="utf-8"))}
    assert marked == {here / folder}


def is_source(path: Path) -> bool:
    """Whether somebody who opens the folder sees this file."""
    return path.is_file() and path.suffix not in {".so", ".pyd", ".pyc"} and not path.name.startswith(".")
