//! Checks whether a text is JSON that other readers accept.

use memchr::memchr2;

/// Whether the text is JSON.
#[cold]
pub(crate) fn is_valid(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// The reason why a value cannot be kept as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// The value is not JSON.
    Broken,
    /// The value is nested too deeply for recursive parsers such as Python's.
    Deep,
}

/// Check that other parsers can read the text as JSON.
#[cold]
pub(crate) fn expect_json(text: &[u8]) -> Result<(), Unfit> {
    if !is_valid(text) {
        return Err(Unfit::Broken);
    }
    if is_deep(text) {
        return Err(Unfit::Deep);
    }
    Ok(())
}

/// Limit on the nesting of values.
const MOST_DEPTH: usize = 100;

/// Whether a valid text is nested deeper than recursive parsers support.
fn is_deep(text: &[u8]) -> bool {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                at += 1;
                while let Some(offset) = memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
                    at += offset;
                    if text[at] == b'"' {
                        break;
                    }
                    at += 2;
                }
            }
            _ => {}
        }
        if depth > MOST_DEPTH {
            return true;
        }
        at += 1;
    }
    false
}
