"""Tests of formatting numbers."""

from __future__ import annotations

import pytest

from holotrace.units import duration_text, number_text, operations_text, size_text


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (999.6, "1 µs"),
        (999_400, "999 µs"),
        (999_600, "1 ms"),
        (12_345_678, "12.3 ms"),
        (4_321_000_000_000, "4,321 s"),
        (-4_321_000_000_000, "-4,321 s"),
    ],
)
def test_a_duration_has_the_largest_unit_that_it_reaches_after_rounding(duration_ns: float, text: str) -> None:
    """A duration that rounds to 1,000 of a unit is shown in the next larger unit: 999.6 µs is 1 ms, not 1,000 µs."""
    assert duration_text(duration_ns) == text


def test_only_a_whole_next_unit_counts_for_sizes() -> None:
    """1,023.9 KiB is shown as 1 MiB, but 1,020 KiB stays in KiB, because 1 MiB is 1,024 KiB."""
    assert (size_text(1020 << 10), size_text((1 << 20) - 100)) == ("1,020 KiB", "1 MiB")


def test_operations_move_on_to_the_next_prefix() -> None:
    """999,999 FLOP are 1 MFLOP, not 1,000 kFLOP."""
    assert operations_text(999_999) == "1 MFLOP"


def test_no_number_has_an_exponent() -> None:
    """All digits before the decimal point are shown, even if fewer are requested: 120, not 1.2e+02."""
    assert (number_text(120.4, digits=2), number_text(2_554.0), number_text(2_554.3)) == ("120", "2,554", "2,554")
