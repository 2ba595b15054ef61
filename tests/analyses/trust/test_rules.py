"""Tests that the rules of trust are documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from holotrace.enrich.trust.across_ranks import JOB_RULES
from holotrace.enrich.trust.rules import RULES

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "analyses" / "trust.md"


@pytest.mark.parametrize("name", [rule.__name__ for rule in (*RULES, *JOB_RULES)])
def test_every_rule_is_documented(name: str) -> None:
    """The documentation page has a table row for each rule."""
    assert f"\n| `{name}` | " in PAGE.read_text(encoding="utf-8")
