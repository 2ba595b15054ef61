"""The documentation is complete, its links are valid, and its examples run."""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from typer.main import get_command

import holotrace
from holotrace import errors
from holotrace.cli.group import app
from holotrace.enrich.kernels import kernel_kind, tensor_cores
from holotrace.testing.synthetic import write_job
from pages import PAGES, ROOT, navigation_entries, python_blocks, relative_links, run_blocks, script

DOCS = ROOT / "docs"
COMMANDS = get_command(app)
LONG = {"thousands_of_ranks", "diagnosis", "advice", "critical_path", "ask_what_if", "wait_causes"}
"""Pages whose examples take much longer than those of other pages."""

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Path:
    """Return a folder with the traces that the examples use."""
    folder = tmp_path_factory.mktemp("docs")
    write_job(folder / "traces", ranks=8, steps=2, layers=2)
    (folder / "mine").mkdir()
    for source, name in zip(sorted((folder / "traces").glob("*.gz")), ("first", "second"), strict=False):
        shutil.copy(source, folder / "mine" / f"{name}.json.gz")
    shutil.copytree(folder / "mine", folder / "log" / "baseline")
    execution_trace = ROOT / "tests/reference/traces/execution_trace/benchmark_simple_add_et.json.gz"
    (folder / "et.json").write_bytes(gzip.decompress(execution_trace.read_bytes()))
    return folder


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow) if page.stem in LONG else page
        for page in PAGES
        if page.parent != ROOT and python_blocks(page)
    ],
    ids=lambda page: page.stem,
)
def test_the_examples_of_a_page_run(page, job, monkeypatch) -> None:
    """The Python examples of a page run in order."""
    monkeypatch.chdir(job)
    monkeypatch.setenv("HOLOTRACE_CACHE_DIR", str(job / "cache"))
    try:
        run_blocks(page)
    finally:
        kernel_kind.remove_added_rules()
        tensor_cores.remove_added_rules()


@each_page
def test_links_to_files_are_valid(page) -> None:
    """Each file that a page links to exists in the repository."""
    assert [link for link in relative_links(page) if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_navigation_once() -> None:
    """The navigation lists every page once and nothing else."""
    listed = [entry for page in DOCS.rglob("*.md") for entry in navigation_entries(page)]
    pages = [page for page in DOCS.rglob("*.md") if page != DOCS / "index.md"]
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize("name", COMMANDS.list_commands(None))
def test_every_command_and_option_is_documented(name) -> None:
    """The pages of the commands have a heading for each command, and name each option."""
    pages = [DOCS / "reference" / "commands.md", DOCS / "reference" / "question_commands.md"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert f"## holotrace {name}\n" in text
    options = {
        option
        for parameter in COMMANDS.get_command(None, name).params
        for option in parameter.opts
        if option.startswith("-")
    }
    assert {option for option in options if f"`{option}" not in text and f" [{option}" not in text} == set()


def test_every_environment_variable_is_documented() -> None:
    """The page of the commands names each environment variable that the code reads."""
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    text = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert {name for name in re.findall(r'"((?:HOLOTRACE|HTA)_[A-Z_]+)"', code) if f"`{name}`" not in text} == set()


def test_every_error_is_documented() -> None:
    """The error reference lists each error class, followed by its last base class."""
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    classes = [
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.HolotraceError)
    ]
    for error in classes:
        assert f"| `{error.__name__}` | `{error.__bases__[-1].__name__}` |" in text


@pytest.mark.parametrize("name", sorted(path.stem for path in (DOCS / "reference" / "analyses").glob("[!i]*.md")))
def test_every_question_has_its_picture(name) -> None:
    """The page of an analysis shows a picture that exists in a light and a dark version."""
    page = DOCS / "reference" / "analyses" / f"{name}.md"
    assert f"](../../images/questions/{name}.webp)" in page.read_text(encoding="utf-8")
    assert (DOCS / "images" / "questions" / f"{name}.webp").is_file()
    assert (DOCS / "images" / "questions" / f"{name}.dark.webp").is_file()


def test_the_pictures_are_small_enough_for_a_repository() -> None:
    """Each picture takes at most 200 KB, and all together take at most 3 MB."""
    sizes = [path.stat().st_size for path in (DOCS / "images").rglob("*.*")]
    assert max(sizes) <= 200_000
    assert sum(sizes) <= 3_000_000


def test_the_picture_of_the_layers_shows_every_module() -> None:
    """The picture shows each module of the import contract; `python scripts/pictures/layers.py` draws it."""
    pytest.importorskip("tomllib")
    drawn = re.findall(r'font-weight="600"[^>]*>(\w+)<', (DOCS / "images" / "layers.svg").read_text(encoding="utf-8"))
    assert drawn == [module for layer in script("pictures/layers").contract() for module in layer]


@pytest.mark.parametrize(
    "page", [ROOT / "CONTRIBUTING.md", ROOT / "README.md", DOCS / "install.md"], ids=lambda page: page.stem
)
def test_every_target_of_make_exists(page) -> None:
    """Each `make target` that a page names is in the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)) - targets == set()


def test_every_path_in_contributing_exists() -> None:
    """Each path in backticks exists in the repository, except files that are generated or outside it."""
    named = set(re.findall(r"`([\w./-]+/[\w./-]*)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    assert {name for name in named if not (ROOT / name).exists()} <= {"build/screenshots", "site/", "../shared"}


@each_page
def test_functions_and_results_in_the_text_exist(page) -> None:
    """Each `holotrace.function(...).table` names an existing function and an existing table or field of its result."""
    for name, tables in re.findall(
        r"holotrace\.(\w+)\([^)`]*\)((?:`?,? ?`?\.\w+)*)`", page.read_text(encoding="utf-8")
    ):
        result = get_type_hints(getattr(holotrace, name))["return"]
        results = get_args(result) or (result,)
        known = {name for kind in results for name in (*dir(kind), *getattr(kind, "__dataclass_fields__", ()))}
        assert set(re.findall(r"\w+", tables)) <= known
