//! Converts values to the types of columns; `None` if the conversion would be a guess.

use crate::event::time::nanoseconds_from_microseconds;
use crate::json::digits::number;
use crate::json::{is_plain_number, Raw, Shape};

/// −1 as an unsigned 32-bit number.
const UNSIGNED_MINUS_ONE: i64 = u32::MAX as i64;

/// A whole number: plain, with a fraction of zero (`3.0`), in a string, in hexadecimal, or as true (1) and false (0).
#[inline]
pub(crate) fn integer(raw: Raw<'_>) -> Option<i64> {
    let text = raw.scalar()?;
    small(text).or_else(|| match text {
        b"true" => Some(1),
        b"false" => Some(0),
        _ => wide(text).and_then(|value| i64::try_from(value).ok()),
    })
}

/// An unsigned whole number of up to 64 bits; a negative number becomes the unsigned number with the same 64 bits.
pub(crate) fn unsigned(raw: Raw<'_>) -> Option<u64> {
    let text = raw.scalar()?;
    if let Some(value) = number(text) {
        return Some(value);
    }
    let value = wide(text)?;
    u64::try_from(value).ok().or_else(|| i64::try_from(value).ok().map(i64::cast_unsigned))
}

/// A stream; some profilers write −1 as an unsigned 32-bit number.
pub(crate) fn stream(raw: Raw<'_>) -> Option<i64> {
    let text = raw.scalar()?;
    let number = small(text).or_else(|| match wide(text) {
        Some(value) => i64::try_from(value).ok().or_else(|| u64::try_from(value).ok().map(u64::cast_signed)),
        None => integer(raw),
    });
    number.map(|stream| if stream == UNSIGNED_MINUS_ONE { -1 } else { stream })
}

/// A floating-point number; infinities and NaN may be strings or bare words.
pub(crate) fn float(raw: Raw<'_>) -> Option<f64> {
    let text = std::str::from_utf8(raw.scalar()?).ok()?.trim();
    match text {
        "true" => Some(1.0),
        "false" => Some(0.0),
        _ => text.parse().ok(),
    }
}

/// A boolean: true and false, or 1 and 0.
pub(crate) fn boolean(raw: Raw<'_>) -> Option<bool> {
    match raw.scalar()? {
        b"true" | b"True" | b"1" => Some(true),
        b"false" | b"False" | b"0" => Some(false),
        _ => None,
    }
}

/// A number of microseconds, converted to nanoseconds.
pub(crate) fn nanoseconds(raw: Raw<'_>) -> Option<i64> {
    nanoseconds_from_microseconds(raw.scalar()?.trim_ascii())
}

/// A time in an arg of Kineto's XPU plugin: microseconds as text or, in traces from before March 2026, nanoseconds as a
/// number.
///
/// Source: <https://github.com/pytorch/kineto/commit/c6c84d09>
pub(crate) fn time_on_xpu(raw: Raw<'_>) -> Option<i64> {
    if raw.shape == Shape::Number {
        integer(raw)
    } else {
        nanoseconds(raw)
    }
}

/// A list of exactly three whole numbers.
pub(crate) fn triple(raw: Raw<'_>) -> Option<[i64; 3]> {
    let inner = raw.bytes.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut numbers = inner.split(|&byte| byte == b',').map(|part| {
        let bytes = part.trim_ascii();
        is_plain_number(bytes).then(|| integer(Raw { bytes, shape: Shape::Number })).flatten()
    });
    let triple = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(triple)
}

/// Parse a number with few digits, the common case.
#[inline]
fn small(text: &[u8]) -> Option<i64> {
    number(text).map(u64::cast_signed)
}

fn wide(text: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(text).ok()?.trim();
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return i128::from_str_radix(digits, 16).ok();
    }
    text.parse().ok().or_else(|| whole_decimal(text))
}

/// Parse whole decimals such as `3.0` and `1e3` up to 2^53, beyond which doubles are not exact.
fn whole_decimal(text: &str) -> Option<i128> {
    let value: f64 = text.parse().ok()?;
    (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Raw<'_> {
        Raw { bytes: text.as_bytes(), shape: Shape::Number }
    }

    fn literal(text: &str) -> Raw<'_> {
        Raw { bytes: text.as_bytes(), shape: Shape::Literal }
    }

    fn string(text: &str) -> Raw<'_> {
        Raw { bytes: text.as_bytes(), shape: Shape::Text }
    }

    /// An integer may be written as a number, a decimal or hexadecimal string, or a boolean.
    #[test]
    fn every_form_of_integer() {
        for (raw, value) in [(number("7"), 7), (string(" 42 "), 42), (number("-1"), -1), (string("0x1f"), 31)]
        {
            assert_eq!(integer(raw), Some(value));
        }
        assert_eq!(integer(number("3.0")), Some(3));
        assert_eq!(integer(literal("true")), Some(1));
        for raw in [number("3.5"), string("stream 7"), string(""), number("99999999999999999999")] {
            assert_eq!(integer(raw), None);
        }
    }

    /// Ids of 64 bits keep every bit.
    #[test]
    fn unsigned_keeps_all_bits() {
        assert_eq!(unsigned(number("18446744073709551615")), Some(u64::MAX));
        assert_eq!(unsigned(number("-1")), Some(u64::MAX));
        assert_eq!(unsigned(number("18446744073709551616")), None);
    }

    /// Stream 4294967295 is read as −1, and a hexadecimal string is read as a number.
    #[test]
    fn streams() {
        assert_eq!(stream(number("4294967295")), Some(-1));
        assert_eq!(stream(string("0x0")), Some(0));
        assert_eq!(stream(number("94276541234560")), Some(94_276_541_234_560));
    }

    /// The XPU plugin writes times in microseconds as text; older versions wrote them in nanoseconds as numbers.
    #[test]
    fn times_on_xpu() {
        assert_eq!(time_on_xpu(string("12.345")), Some(12_345));
        assert_eq!(time_on_xpu(string("-1.500")), Some(-1_500));
        assert_eq!(time_on_xpu(number("1725000000000000001")), Some(1_725_000_000_000_000_001));
    }

    /// A triple has exactly three whole numbers.
    #[test]
    fn triples() {
        assert_eq!(triple(Raw { bytes: b"[1, 2,3]", shape: Shape::Composite }), Some([1, 2, 3]));
        for raw in [&b"[1, 2]"[..], b"[1, 2, 3, 4]", b"[]", b"{1,2,3}"] {
            assert_eq!(triple(Raw { bytes: raw, shape: Shape::Composite }), None);
        }
    }

    /// Infinity and NaN are read as floats, both as literals and as strings; `N/A` is not a number.
    #[test]
    fn floats() {
        assert_eq!(float(literal("inf")), Some(f64::INFINITY));
        assert!(float(string("NaN")).is_some_and(f64::is_nan));
        assert_eq!(float(string("N/A")), None);
    }
}
