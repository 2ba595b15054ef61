"""Draw the layers of the package as docs/images/layers.svg: names from the import contract, texts from the docstrings.

python scripts/pictures/layers.py
"""

from __future__ import annotations

import ast
import re
from html import escape
from pathlib import Path

import tomllib

from holotrace.drawing.theme import FONT, SURFACES, Theme

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "holotrace"
PICTURE = ROOT / "docs" / "images" / "layers.svg"

_WIDTH = 1000
_LINE = 24
_GAP = 7
_NAMES_END = 200
_LONGEST = 108


def contract() -> list[list[str]]:
    """Return the modules of each layer, the top layer first, from the contract that lint-imports checks."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(entry["layers"] for entry in contracts if entry.get("containers") == ["holotrace"])
    return [re.findall(r"\w+", layer) for layer in layers]


def write_pictures() -> None:
    """Write the light and the dark picture."""
    themes: tuple[Theme, ...] = ("light", "dark")
    for theme in themes:
        path = PICTURE if theme == "light" else PICTURE.with_suffix(".dark.svg")
        path.write_text(_svg(theme), encoding="utf-8")


def _svg(theme: Theme) -> str:
    surface = SURFACES[theme]
    parts: list[str] = []
    top = _GAP
    for layer in contract():
        height = len(layer) * _LINE + 4
        parts.append(f'<rect x="34" y="{top}" width="{_WIDTH - 42}" height="{height}" rx="5" fill="{surface.grid}"/>')
        for position, module in enumerate(layer):
            baseline = top + position * _LINE + 18
            parts.append(f'<text x="46" y="{baseline}" font-weight="600" fill="{surface.text}">{module}</text>')
            parts.append(
                f'<text x="{_NAMES_END}" y="{baseline}" fill="{surface.muted}">{escape(_meaning(module))}</text>'
            )
        top += height + _GAP
    arrow = (
        f'<path d="M17 {_GAP} V{top - 18} m-6 -8 l6 10 l6 -10" fill="none" stroke="{surface.muted}" stroke-width="2"/>'
        f'<text transform="translate(12 {top // 2}) rotate(-90)" text-anchor="middle" fill="{surface.muted}">imports</text>'
    )
    size = f'width="{_WIDTH}" height="{top}" viewBox="0 0 {_WIDTH} {top}"'
    style = f'font-family="{escape(FONT)}" font-size="14"'
    background = f'<rect width="{_WIDTH}" height="{top}" fill="{surface.background}"/>'
    body = "\n".join([background, *parts, arrow])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{body}\n</svg>\n'


def _meaning(module: str) -> str:
    """Return the first clause of a module's docstring."""
    files = [PACKAGE / module / "__init__.py", PACKAGE / f"{module}.py", PACKAGE / f"{module}.pyi"]
    source = next(path for path in files if path.exists()).read_text(encoding="utf-8")
    sentence = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].replace("\n", " ").replace("`", "")
    clause = re.split(r"[;.]( |$)", sentence)[0]
    return clause if len(clause) <= _LONGEST else f"{clause[:_LONGEST].rsplit(' ', 1)[0]} …"


if __name__ == "__main__":
    write_pictures()
