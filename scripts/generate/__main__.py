"""Write the files that are generated from the code: `python scripts/generate`. With `--check`, only list the outdated files."""

from __future__ import annotations

import sys
from pathlib import Path

from columns_page import columns_page
from diagnosis_rules_page import diagnosis_rules_page
from gallery_page import gallery_page
from operator_costs_page import operator_costs_page
from palette import palette
from question_commands_page import question_commands_page
from schema_page import schema_page
from stubs import figures_stub, public_names_stub
from unit_tables import unit_tables

ROOT = Path(__file__).parent.parent.parent

FILES = {
    "docs/gallery.md": gallery_page,
    "docs/reference/columns.md": columns_page,
    "docs/reference/diagnosis_rules.md": diagnosis_rules_page,
    "docs/reference/operator_costs.md": operator_costs_page,
    "docs/reference/question_commands.md": question_commands_page,
    "docs/reference/schema.md": schema_page,
    "src/holotrace/__init__.pyi": public_names_stub,
    "src/holotrace/figures.pyi": figures_stub,
    "src/holotrace/web/assets/palette.js": palette,
    "src/holotrace/web/assets/unit_tables.js": unit_tables,
}
"""{file: function that returns its text}."""


def main() -> None:
    """Write each file whose text has changed."""
    texts = {ROOT / path: text() for path, text in FILES.items()}
    outdated = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        if outdated:
            names = ", ".join(str(path.relative_to(ROOT)) for path in outdated)
            sys.exit(f"out of date: {names}; run `make generate`")
        return
    for path in outdated:
        path.write_text(texts[path], encoding="utf-8")
        print(path.relative_to(ROOT))  # noqa: T201 -- the files to commit


if __name__ == "__main__":
    main()
