//! Parses decimal digits, eight at a time: <https://lemire.me/blog/2022/01/21/swar-explained-parsing-eight-digits/>.

/// The largest number of digits that [`number`] accepts.
pub(crate) const MOST_DIGITS: usize = 16;

/// A digit 0 in every byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const HIGH_HALVES: u64 = 0xF0F0_F0F0_F0F0_F0F0;

/// Parse 1 to 16 digits; return `None` for any other text.
#[inline]
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    match text.len() {
        1..=8 => up_to_eight(text),
        9..=MOST_DIGITS => {
            let (head, tail) = text.split_last_chunk()?;
            Some(up_to_eight(head)? * 100_000_000 + eight(u64::from_le_bytes(*tail))?)
        }
        _ => None,
    }
}

/// Parse up to eight digits. A text of 4 to 8 digits is parsed at once: its first four and its last four digits, which
/// may overlap, are combined and padded with leading zeros.
#[inline]
fn up_to_eight(text: &[u8]) -> Option<u64> {
    if text.len() < 4 {
        return text
            .iter()
            .try_fold(0, |value, &byte| byte.is_ascii_digit().then(|| value * 10 + u64::from(byte - b'0')));
    }
    let first = u64::from(u32::from_le_bytes(*text.first_chunk()?));
    let last = u64::from(u32::from_le_bytes(*text.last_chunk()?));
    let missing_bits = 8 * (8 - text.len());
    eight(last << 32 | first << missing_bits | (ZEROS & ((1 << missing_bits) - 1)))
}

/// Parse the eight digits in `block`, whose lowest byte holds the first digit.
#[inline]
fn eight(block: u64) -> Option<u64> {
    let beyond_nine = block.wrapping_add(0x0606_0606_0606_0606) & HIGH_HALVES;
    if block & HIGH_HALVES != ZEROS || beyond_nine != ZEROS {
        return None;
    }
    let pairs = ((block & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(10 << 8 | 1)) >> 8;
    let fours = ((pairs & 0x00FF_00FF_00FF_00FF).wrapping_mul(100 << 16 | 1)) >> 16;
    Some(((fours & 0x0000_FFFF_0000_FFFF).wrapping_mul(10_000 << 32 | 1)) >> 32)
}

/// The number of digits at the beginning of the text.
#[inline]
pub(crate) fn leading_count(text: &[u8]) -> usize {
    let mut count = 0;
    while let Some(block) = text.get(count..).and_then(|rest| rest.first_chunk()) {
        let values = u64::from_le_bytes(*block) ^ ZEROS;
        // This sets the high bit of each byte that is not a digit. The addition may also carry from such a byte into
        // later bytes, so only the first high bit is reliable.
        let others = (values.wrapping_add(0x7676_7676_7676_7676) | values) & HIGH_BITS;
        if others != 0 {
            return count + (others.trailing_zeros() / 8) as usize;
        }
        count += 8;
    }
    count + text[count..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of 1 to 16 digits are parsed as `str::parse` parses them.
    #[test]
    fn every_length() {
        for length in 1..=MOST_DIGITS {
            for digits in ["1234567890123456", "9999999999999999", "0000000000000000", "9081726354453627"] {
                let text = &digits[..length];
                assert_eq!(number(text.as_bytes()), text.parse().ok(), "{text}");
            }
        }
        assert_eq!(number(b""), None);
        assert_eq!(number(b"12345678901234567"), None);
    }

    /// `leading_count` stops at the first byte that is not a digit, and `number` rejects a text with such a byte.
    #[test]
    fn every_other_byte() {
        for length in 1..=MOST_DIGITS + 4 {
            for at in 0..length {
                for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
                    let mut text = vec![b'7'; length];
                    text[at] = byte;
                    assert_eq!(number(&text), None, "{text:?}");
                    assert_eq!(leading_count(&text), at, "{text:?}");
                    text.extend_from_slice(&[byte; 9]);
                    assert_eq!(leading_count(&text), at, "{text:?}");
                }
            }
            assert_eq!(leading_count(&vec![b'7'; length]), length);
        }
    }
}
