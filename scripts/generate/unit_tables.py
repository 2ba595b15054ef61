"""Generates `src/holotrace/web/assets/unit_tables.js`: the units of `holotrace.units`, for the timeline page."""

from __future__ import annotations

import json

from holotrace.units import BANDWIDTHS, DURATIONS, SIZES

_MODULE = """\
// Units and their sizes, the largest first; `make generate` writes this file from `holotrace.units`.

/** @type {{[number, string][]}} */
export const DURATIONS = {durations};

/** @type {{[number, string][]}} */
export const BANDWIDTHS = {bandwidths};

/** @type {{[number, string][]}} */
export const SIZES = {sizes};
"""


def unit_tables() -> str:
    """Return the text of the module."""
    return _MODULE.format(
        durations=json.dumps(DURATIONS, ensure_ascii=False),
        bandwidths=json.dumps(BANDWIDTHS, ensure_ascii=False),
        sizes=json.dumps(SIZES, ensure_ascii=False),
    )
