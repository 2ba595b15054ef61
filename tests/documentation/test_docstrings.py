"""The documentation site preserves the structure of docstrings."""

from __future__ import annotations

from pages import script


def test_columns_become_lists_and_formulas_stay() -> None:
    """Aligned columns become nested lists, other indented lines are unchanged, and markup characters are escaped."""
    docstring = """\
Divide |busy| by what ran.

    share = busy / total

per_rank  one row per rank:

    rank     int32
    busy_ns  int64  time with `kernels` or
                    copies_

Source: docs/reference/analyses/idle_time.md explains it."""
    assert script("../docs/site/docstrings").restructured(docstring.splitlines()) == [
        "Divide \\|busy\\| by what ran.",
        "",
        "::",
        "",
        "    share = busy / total",
        "",
        "* ``per_rank``: one row per rank:",
        "",
        "  * ``rank`` *int32*",
        "  * ``busy_ns`` *int64*: time with ``kernels`` or",
        "    copies\\_",
        "",
        "Source: :doc:`/reference/analyses/idle_time` explains it.",
        "",
    ]


def test_sections_keep_their_indentation() -> None:
    """Sections such as `Args:` are unchanged, because Sphinx's napoleon extension parses them later."""
    docstring = ["Open a job.", "", "Args:", "    source: a file or", "        folder."]
    assert script("../docs/site/docstrings").restructured(docstring) == [*docstring, ""]


def test_examples_are_kept() -> None:
    """Doctest lines stay code and are not escaped."""
    docstring = [">>> a_ | b", "1"]
    assert script("../docs/site/docstrings").restructured(docstring) == [*docstring, ""]
