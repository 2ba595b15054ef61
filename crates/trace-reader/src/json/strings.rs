//! Decodes JSON strings leniently.

use std::borrow::Cow;

/// The faults found in a text while it was decoded leniently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blemishes {
    pub(crate) bad_escape: bool,
    pub(crate) invalid_utf8: bool,
    pub(crate) control_character: bool,
    /// The text comes from a non-string value that is not valid JSON.
    pub(crate) broken_value: bool,
    /// The text comes from a non-string value that is nested too deeply for other JSON parsers.
    pub(crate) deep_value: bool,
}

impl Blemishes {
    pub(crate) fn any(self) -> bool {
        self != Self::default()
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            bad_escape: self.bad_escape || other.bad_escape,
            invalid_utf8: self.invalid_utf8 || other.invalid_utf8,
            control_character: self.control_character || other.control_character,
            broken_value: self.broken_value || other.broken_value,
            deep_value: self.deep_value || other.deep_value,
        }
    }
}

/// Decode a JSON string; return its text and its faults.
pub(crate) fn decoded(raw: &[u8]) -> (Cow<'_, str>, Blemishes) {
    let (lossy, mut blemishes) = without_unescaping(raw);
    if !raw.contains(&b'\\') {
        return (lossy, blemishes);
    }
    let bytes = unescaped(raw, &mut blemishes);
    (Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()), blemishes)
}

/// The raw bytes as text, with escapes left undecoded, and the faults of this text.
pub(crate) fn without_unescaping(raw: &[u8]) -> (Cow<'_, str>, Blemishes) {
    let blemishes = Blemishes {
        invalid_utf8: std::str::from_utf8(raw).is_err(),
        control_character: raw.iter().any(|&byte| byte < 0x20),
        ..Blemishes::default()
    };
    (String::from_utf8_lossy(raw), blemishes)
}

fn unescaped(raw: &[u8], blemishes: &mut Blemishes) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        rest = push_escape(rest, &mut out, blemishes);
    }
    out.extend_from_slice(rest);
    out
}

/// Decode the escape whose backslash was just read; returns the rest of the text.
fn push_escape<'a>(rest: &'a [u8], out: &mut Vec<u8>, blemishes: &mut Blemishes) -> &'a [u8] {
    let simple = match rest.first() {
        Some(&byte @ (b'"' | b'\\' | b'/')) => Some(byte),
        Some(b'n') => Some(b'\n'),
        Some(b't') => Some(b'\t'),
        Some(b'r') => Some(b'\r'),
        Some(b'b') => Some(8),
        Some(b'f') => Some(12),
        _ => None,
    };
    if let Some(byte) = simple {
        out.push(byte);
        return &rest[1..];
    }
    if let Some((character, after)) = unicode_escape(rest) {
        blemishes.bad_escape |= character == char::REPLACEMENT_CHARACTER;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        return after;
    }
    blemishes.bad_escape = true;
    out.push(b'\\');
    rest
}

/// Decode `uXXXX`, and the second half of a surrogate pair; a lone half becomes the replacement character.
fn unicode_escape(rest: &[u8]) -> Option<(char, &[u8])> {
    let (first, after) = code_unit(rest)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), after));
    }
    let second = after.strip_prefix(b"\\").and_then(code_unit);
    match second {
        Some((low, end)) if (0xDC00..0xE000).contains(&low) => {
            let code = 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00);
            Some((char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), end))
        }
        _ => Some((char::REPLACEMENT_CHARACTER, after)),
    }
}

fn code_unit(rest: &[u8]) -> Option<(u32, &[u8])> {
    let digits = rest.strip_prefix(b"u")?.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let code = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some((code, &rest[5..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(raw: &str) -> String {
        decoded(raw.as_bytes()).0.into_owned()
    }

    /// Valid escapes, including surrogate pairs, are decoded as JSON prescribes.
    #[test]
    fn legal_escapes() {
        assert_eq!(decode(r#"a\"b\\c\/d\n\t\r\b\f"#), "a\"b\\c/d\n\t\r\u{8}\u{c}");
        assert_eq!(decode(r"\u00e9\ud83d\ude00"), "é😀");
    }

    /// A backslash that does not begin a valid escape stays in the text, and is reported.
    #[test]
    fn illegal_escapes_stay() {
        let (text, blemishes) = decoded(br"C:\users\dir");
        assert_eq!(text, r"C:\users\dir");
        assert!(blemishes.bad_escape);
        assert_eq!(decode(r"\ud83d!"), "\u{fffd}!");
    }
}
