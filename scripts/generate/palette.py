"""Generates `src/holotrace/web/assets/palette.js`: the figures' colours, for the timeline page."""

from __future__ import annotations

import colorsys
import dataclasses
import json

from holotrace.drawing.colors import DARK_INK, EVENT_COLORS, FINDING_COLORS, LIGHT_INK, PATH_COLORS, ink_on
from holotrace.drawing.theme import SURFACES

_MODULE = """\
// Colours shared with the figures; `make generate` writes this file from `holotrace.drawing`.

/**
 * Hue, saturation and lightness of each class of events; each name in the class gets a similar colour.
 * @type {{Record<string, [number, number, number]>}}
 */
export const EVENTS = {events};

/** @type {{Record<string, string>}} */
export const PATH = {path};

/** @type {{Record<string, string>}} */
export const FINDINGS = {findings};

/** Colours that need dark text. */
export const PALE = {pale};

/** Colours of the page in each scheme. */
export const SURFACES = {surfaces};

export const DARK_INK = "{dark}";
export const LIGHT_INK = "{light}";
"""


def palette() -> str:
    """Return the text of the module."""
    return _MODULE.format(
        events=_object({name: _hsl(color) for name, color in EVENT_COLORS.items()}),
        path=_object({name.replace("_", " "): color for name, color in PATH_COLORS.items()}),
        findings=_object(FINDING_COLORS),
        pale=json.dumps(
            sorted({color for color in (*PATH_COLORS.values(), *FINDING_COLORS.values()) if ink_on(color) == DARK_INK})
        ),
        surfaces=_object({scheme: dataclasses.asdict(surface) for scheme, surface in SURFACES.items()}),
        dark=DARK_INK,
        light=LIGHT_INK,
    )


def _object(values: dict[str, object]) -> str:
    lines = [
        f"  {name if name.isidentifier() else json.dumps(name)}: {json.dumps(value)}," for name, value in values.items()
    ]
    return "\n".join(["{", *lines, "}"])


def _hsl(color: str) -> list[int]:
    red, green, blue = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    return [round(360 * hue), round(100 * saturation), round(100 * lightness)]
