//! Converts decimal microseconds to whole nanoseconds.

use crate::json::digits::number;

/// Number of digits to read; any decimal places after them cannot change the result.
const MOST_DIGITS: usize = 36;

/// Limit on times, in nanoseconds since 1970: the year 2116. Differences and sums of times within this limit fit in 64
/// bits.
const FARTHEST_NS: i64 = 1 << 62;

/// The longest duration accepted, 52 days: longer than any recording, and short enough for the sum of thousands
/// of durations to fit in 64 bits.
const LONGEST_NS: i64 = 1 << 52;

/// Whether a duration is short enough to be accepted.
#[inline]
pub(crate) fn is_possible_duration(ns: i64) -> bool {
    ns <= LONGEST_NS
}

/// Whether a time is within the range of times that the tables store.
#[inline]
pub(crate) fn is_in_range(ns: i64) -> bool {
    (-FARTHEST_NS..=FARTHEST_NS - 1).contains(&ns)
}

/// Convert the text of a number of microseconds to whole nanoseconds; rounds halves away from zero.
///
/// Reads text because an f64 cannot represent `1725000000000000.123` exactly: at that size, neighbouring doubles are
/// 0.25 µs apart. Accepts integers, decimals and exponents; `None` if the text is not a number or overflows an i64.
#[must_use]
pub fn nanoseconds_from_microseconds(text: &[u8]) -> Option<i64> {
    plain(text).or_else(|| decimal(text, 3))
}

/// Parse digits alone, or digits with exactly three decimal places: the forms that profilers usually write.
#[inline]
fn plain(text: &[u8]) -> Option<i64> {
    let whole = text.len().checked_sub(4).filter(|&point| text[point] == b'.');
    match whole {
        Some(point) => {
            digits(&text[..point]).zip(digits(&text[point + 1..])).map(|(whole, part)| whole * 1_000 + part)
        }
        None => digits(text).map(|whole| whole * 1_000),
    }
}

/// A number of 1 to 16 digits below 9 * 10^15.
#[inline]
fn digits(text: &[u8]) -> Option<i64> {
    number(text).filter(|&value| value < 9_000_000_000_000_000).map(u64::cast_signed)
}

/// The value of a decimal number times `10^shift`, rounded to a whole number.
fn decimal(text: &[u8], shift: i32) -> Option<i64> {
    let (negative, unsigned) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (digits, exponent) = match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let (mantissa, places) = mantissa(digits)?;
    let magnitude = scaled(mantissa, exponent.saturating_add(shift).saturating_sub(places))?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

fn exponent(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Return two values: the number that the digits form without the point; how many digits follow the point.
fn mantissa(digits: &[u8]) -> Option<(i128, i32)> {
    let (mut value, mut places, mut seen, mut after_point) = (0_i128, 0, 0, false);
    for &byte in digits {
        match byte {
            b'.' if !after_point => after_point = true,
            b'0'..=b'9' => {
                seen += 1;
                if value < 10_i128.pow(MOST_DIGITS as u32) {
                    value = value * 10 + i128::from(byte - b'0');
                    places += i32::from(after_point);
                } else if !after_point {
                    return None;
                }
            }
            _ => return None,
        }
    }
    (seen > 0).then_some((value, places))
}

fn scaled(mantissa: i128, power: i32) -> Option<i128> {
    if mantissa == 0 {
        return Some(0);
    }
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    match (power >= 0, factor) {
        (true, Some(factor)) => mantissa.checked_mul(factor),
        (true, None) => None,
        (false, Some(factor)) => Some((mantissa + factor / 2) / factor),
        (false, None) => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::nanoseconds_from_microseconds as ns;

    /// Times are converted to the nearest nanosecond in every notation that profilers have used.
    #[test]
    fn all_spellings_are_exact() {
        assert_eq!(ns(b"0"), Some(0));
        assert_eq!(ns(b"45"), Some(45_000));
        assert_eq!(ns(b"1669783687464181"), Some(1_669_783_687_464_181_000));
        assert_eq!(ns(b"1725000000000000.123"), Some(1_725_000_000_000_000_123));
        assert_eq!(ns(b"0.001"), Some(1));
        assert_eq!(ns(b"12.3456"), Some(12_346));
        assert_eq!(ns(b"1.5e3"), Some(1_500_000));
        assert_eq!(ns(b"1E-3"), Some(1));
        assert_eq!(ns(b"-0.5"), Some(-500));
        assert_eq!(ns(b"7."), Some(7_000));
        assert_eq!(ns(b"0.00000000000000000000000000000000000000000000001"), Some(0));
    }

    /// Text that is not a number, and numbers that overflow 64 bits, give `None`.
    #[test]
    fn nonsense_and_overflow_are_rejected() {
        for text in
            [&b""[..], b"abc", b"1.2.3", b".", b"-", b"1e", b"9223372036854775807", b"1e40", b"0x10", b"NaN"]
        {
            assert_eq!(ns(text), None, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(ns(b"9223372036854775.807"), Some(i64::MAX));
        assert_eq!(ns(b"9223372036854775.808"), None);
    }
}
