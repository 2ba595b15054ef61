"""Format durations, fractions and byte counts, which are plain numbers everywhere else in the library."""

from __future__ import annotations

import re

DURATIONS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
BANDWIDTHS = ((1_000_000_000, "GB/s"), (1_000_000, "MB/s"), (1_000, "kB/s"), (1, "B/s"))
COUNTS = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"), (1_000, "k"), (1, ""))
SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
"""Units with their sizes, largest first; `make generate` copies them to the timeline page."""

_FOUR_DIGITS = 999.5
_SMALLEST_PERCENTAGE = 0.0005
"""`percent_text` rounds smaller fractions to 0.0 %."""

_UNITS = "|".join(("%", *(unit for table in (DURATIONS, BANDWIDTHS, SIZES) for _, unit in table)))
_BEFORE_UNIT = re.compile(rf"(?<=\d) (?=(?:{_UNITS})(?![\w/])|[kMGTP]?FLOP)")


def duration_text(duration_ns: float) -> str:
    """Format nanoseconds in the largest unit in which the number is at least 1: `12.3 ms`."""
    return _scaled(duration_ns, DURATIONS)


def size_text(byte_count: float) -> str:
    """Format bytes in binary units: `1.5 GiB`."""
    return _scaled(byte_count, SIZES)


def bandwidth_text(bytes_per_s: float) -> str:
    """Format bytes per second in decimal units, as datasheets and profilers do: `12.3 GB/s`."""
    return _scaled(bytes_per_s, BANDWIDTHS)


def operations_text(count: float) -> str:
    """Format floating-point operations: `51.6 GFLOP`.

    >>> operations_text(51_581_550_592)
    '51.6 GFLOP'
    """
    return f"{_scaled(count, COUNTS) if abs(count) >= 1 else '0 '}FLOP"


def percent_text(fraction: float | None) -> str:
    """Format a fraction from 0 to 1 as a percentage, and None as a dash."""
    return "-" if fraction is None else f"{100 * fraction:.1f} %"


def number_text(value: float, *, digits: int = 3) -> str:
    """Format a number without a unit, rounded to `digits` significant digits; digits before the point are never rounded.

    >>> number_text(12345), number_text(1.90424), number_text(1234.5), number_text(2.0)
    ('12,345', '1.9', '1,234', '2')
    >>> number_text(1.90424, digits=2), number_text(123.4, digits=2)
    ('1.9', '123')
    """
    is_whole = float(value).is_integer() or abs(value) >= 10**digits - 0.5
    return f"{value:,.0f}" if is_whole else f"{value:.{digits}g}"


def small_percent_text(fraction: float | None) -> str:
    """Format a fraction as a percentage; fractions under 0.05 % show their first significant digit instead of 0.0 %.

    >>> small_percent_text(0.000312), small_percent_text(0.42), small_percent_text(0.0)
    ('0.03 %', '42.0 %', '0.0 %')
    """
    is_small = fraction is not None and 0 < fraction < _SMALLEST_PERCENTAGE
    return f"{float(f'{100 * (fraction or 0):.1g}'):.15f}".rstrip("0") + " %" if is_small else percent_text(fraction)


def counted(count: int, singular: str, plural: str = "") -> str:
    """Return a count with its noun.

    >>> counted(1, "region"), counted(1200, "region"), counted(2, "launch", "launches")
    ('1 region', '1,200 regions', '2 launches')
    """
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def times_text(count: int) -> str:
    """Return how often something happens, as text.

    >>> times_text(1), times_text(3000)
    ('once', '3,000 times')
    """
    return "once" if count == 1 else f"{count:,} times"


def unbroken(sentence: str) -> str:
    r"""Return a sentence with no-break spaces between numbers and units, to keep each number and its unit on one line.

    >>> unbroken("rank 3 waits 1.5 ms (8.5 %)").split(" ")
    ['rank', '3', 'waits', '1.5\xa0ms', '(8.5\xa0%)']
    """
    return _BEFORE_UNIT.sub("\u00a0", sentence)


def microseconds(duration_ns: int) -> float:
    """Convert whole nanoseconds to microseconds, HTA's unit."""
    return duration_ns / 1_000


def _scaled(value: float, units: tuple[tuple[int, str], ...]) -> str:
    """Format a value in the largest unit in which it rounds to 1 or more: 999,999 ns are 1 ms, not 1,000 µs."""
    for (size, unit), (smaller, _) in zip(units, (*units[1:], units[-1]), strict=True):
        if _rounded(abs(value) / smaller) * smaller >= size:
            return f"{_three_digits(value / size)} {unit}"
    return f"0 {units[-1][1]}"


def _rounded(value: float) -> float:
    return float(_three_digits(value).replace(",", ""))


def _three_digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < _FOUR_DIGITS else f"{value:,.0f}"
