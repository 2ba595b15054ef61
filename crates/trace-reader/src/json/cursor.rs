//! A cursor over JSON text that tolerates the mistakes of profilers.
//!
//! A value is a slice of the text; the cursor builds no tree. The cursor skips nested values without recursion, so deep
//! nesting cannot overflow the stack.

use memchr::memchr2;

use super::digits::leading_count;
use super::scan::begins_event;
use super::validity::is_valid;
use super::value::{Raw, Shape};

/// The reason why the text at the cursor cannot be read. Stored in 64 bits, like [`Shape`], so that a result that
/// contains it can be copied word by word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Broken {
    /// The text at the cursor is not JSON.
    Syntax,
    /// The text ends in the middle of a value.
    EndOfInput,
}

/// The rule that distinguishes a closing quote from a quote that should have been escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// A string ends at the first unescaped quote, as in JSON.
    Strict,
    /// A string ends at the first unescaped quote after which the object can continue.
    Guessed,
    /// A string ends at the first quote after which the object can continue, even if the quote is escaped: the string
    /// may be a path that ends in a backslash.
    GuessedEvenEscaped,
}

/// Reads values one after the other.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
    pub(crate) quotes: Quotes,
    /// Whether any string read so far ended at a different quote than it would with [`Quotes::Strict`].
    pub(crate) guessed: bool,
    open: Vec<u8>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, quotes: Quotes::Strict, guessed: false, open: Vec::new() }
    }

    /// The byte at the cursor, or 0 at the end.
    #[inline]
    pub(crate) fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    #[inline]
    pub(crate) fn skip_space(&mut self) {
        while self.peek() <= b' ' && matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    /// The error for an unexpected byte at the cursor.
    pub(crate) fn unexpected(&self) -> Broken {
        if self.is_at_end() {
            Broken::EndOfInput
        } else {
            Broken::Syntax
        }
    }

    #[inline]
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), Broken> {
        if self.peek() == byte && !self.is_at_end() {
            self.at += 1;
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    /// Read a key and its colon; leaves the cursor at the value.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<&'a [u8], Broken> {
        self.expect(b'"')?;
        let key = self.string_end()?;
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        Ok(key)
    }

    /// Read a value of any type.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Raw<'a>, Broken> {
        let (bytes, shape) = match self.peek() {
            b'"' => {
                self.at += 1;
                (self.string_value()?, Shape::Text)
            }
            b'{' | b'[' => (self.composite()?, Shape::Composite),
            b'-' | b'0'..=b'9' => {
                if let Some(number) = self.plain_number() {
                    return Ok(Raw { bytes: number, shape: Shape::Number });
                }
                let (word, oddity) = self.word()?;
                (word, if is_number(word, oddity) { Shape::Number } else { Shape::Literal })
            }
            _ => (self.word()?.0, Shape::Literal),
        };
        Ok(Raw { bytes, shape })
    }

    /// Read a number that consists only of digits and at most one decimal point, the form that profilers usually write.
    #[inline]
    fn plain_number(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let whole = leading_count(rest);
        let mut length = whole;
        if rest.get(whole) == Some(&b'.') {
            let places = leading_count(&rest[whole + 1..]);
            length = if places == 0 { return None } else { whole + 1 + places };
        }
        let has_leading_zero = rest[0] == b'0' && whole > 1;
        if whole == 0 || has_leading_zero || ROLES[usize::from(*rest.get(length)?)] & ENDS_WORD == 0 {
            return None;
        }
        self.at += length;
        Some(&rest[..length])
    }

    /// Read up to the next separator or space. Return the word, and the sum of the [`ODDITY`] values of its bytes.
    #[inline]
    fn word(&mut self) -> Result<(&'a [u8], usize), Broken> {
        let rest = &self.bytes[self.at..];
        let mut oddity = 0;
        let length = rest
            .iter()
            .position(|&byte| {
                let role = ROLES[byte as usize];
                oddity += usize::from(role & ODDITY);
                role & ENDS_WORD != 0
            })
            .ok_or(Broken::EndOfInput)?;
        if length == 0 {
            return Err(Broken::Syntax);
        }
        self.at += length;
        Ok((&rest[..length], oddity))
    }

    fn string_value(&mut self) -> Result<&'a [u8], Broken> {
        match self.quotes {
            Quotes::Strict => self.string_end(),
            Quotes::Guessed | Quotes::GuessedEvenEscaped => self.guessed_end(),
        }
    }

    /// Read a string whose opening quote is just before the cursor; leaves the cursor after its closing quote.
    #[inline]
    fn string_end(&mut self) -> Result<&'a [u8], Broken> {
        let start = self.at;
        let mut at = start + plain_count(self.bytes.get(start..).unwrap_or_default());
        loop {
            if !matches!(self.bytes.get(at), Some(b'"' | b'\\')) {
                let rest = self.bytes.get(at..).unwrap_or_default();
                at += memchr2(b'"', b'\\', rest).ok_or(Broken::EndOfInput)?;
            }
            if self.bytes[at] == b'"' {
                self.at = at + 1;
                return Ok(&self.bytes[start..at]);
            }
            at += 2;
        }
    }

    /// Like [`Self::string_end`], but a quote closes the string only if the object can continue after it.
    ///
    /// A guessed string never extends into the next event; otherwise, that event would be lost, and reading a broken
    /// file would take quadratic time.
    fn guessed_end(&mut self) -> Result<&'a [u8], Broken> {
        let start = self.at;
        let mut at = start;
        let mut passed_over = false;
        loop {
            let distance =
                memchr2(b'"', b'\\', self.bytes.get(at..).unwrap_or_default()).ok_or(Broken::EndOfInput)?;
            at += distance;
            let is_quote = self.bytes[at] == b'"';
            let candidate = if is_quote { at } else { at + 1 };
            let may_close = is_quote
                || (self.quotes == Quotes::GuessedEvenEscaped && self.bytes.get(candidate) == Some(&b'"'));
            if may_close && self.object_goes_on(candidate + 1) {
                self.guessed |= passed_over || !is_quote;
                self.at = candidate + 1;
                return Ok(&self.bytes[start..candidate]);
            }
            if is_quote && opens_event(self.bytes, at) {
                return Err(Broken::Syntax);
            }
            passed_over |= is_quote;
            at = candidate + 1;
        }
    }

    /// Whether the text at `at` can follow a value in an object, because it is a closing brace, or a comma and a key.
    fn object_goes_on(&self, at: usize) -> bool {
        let mut ahead = Cursor::new(self.bytes, at);
        ahead.skip_space();
        match ahead.peek() {
            b'}' => {
                ahead.at += 1;
                ahead.skip_space();
                ahead.is_at_end() || matches!(ahead.peek(), b',' | b'}' | b']')
            }
            b',' => {
                ahead.at += 1;
                ahead.skip_space();
                ahead.key().is_ok_and(|key| !key.contains(&b'\\') && !key.contains(&b'\n'))
            }
            _ => false,
        }
    }

    /// Read an array or object, bracket by bracket.
    fn composite(&mut self) -> Result<&'a [u8], Broken> {
        let start = self.at;
        self.open.clear();
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let skipped =
                rest.iter().position(|&byte| ROLES[byte as usize] & NESTS != 0).ok_or(Broken::EndOfInput)?;
            let byte = rest[skipped];
            self.at += skipped + 1;
            match byte {
                b'{' | b'[' => self.open.push(byte),
                b'"' => {
                    self.string_end()?;
                }
                _ => {
                    // In ASCII the codes of `[` and `]`, and of `{` and `}`, differ by 2.
                    if self.open.pop() != Some(byte - 2) {
                        return Err(Broken::Syntax);
                    }
                    if self.open.is_empty() {
                        return Ok(&self.bytes[start..self.at]);
                    }
                }
            }
        }
    }
}

/// Count leading bytes that are neither quotes nor backslashes; checks at most 24 bytes.
///
/// Most strings are short; for them, this is faster than calling `memchr2`.
#[inline]
fn plain_count(text: &[u8]) -> usize {
    let is_any = |block: u64, byte: u8| {
        let zeroed = block ^ (u64::MAX / 255 * u64::from(byte));
        zeroed.wrapping_sub(u64::MAX / 255) & !zeroed & ((u64::MAX / 255) << 7)
    };
    let blocks = text.as_chunks().0;
    for (count, block) in blocks.iter().take(3).enumerate() {
        let block = u64::from_le_bytes(*block);
        let marks = is_any(block, b'"') | is_any(block, b'\\');
        if marks != 0 {
            return 8 * count + (marks.trailing_zeros() / 8) as usize;
        }
    }
    8 * blocks.len().min(3)
}

/// Whether the quote at `at` opens the first key of an event.
fn opens_event(text: &[u8], at: usize) -> bool {
    let before = text[..at].trim_ascii_end();
    before.last() == Some(&b'{') && begins_event(text, before.len() - 1)
}

/// Whether a word that begins with a digit or a minus sign is a JSON number.
#[inline]
fn is_number(word: &[u8], oddity: usize) -> bool {
    let has_leading_zero = word[0] == b'0' && word.get(1).is_some_and(u8::is_ascii_digit);
    match oddity {
        0 => !has_leading_zero,
        POINT if !has_leading_zero => word[word.len() - 1] != b'.',
        _ => is_valid(word),
    }
}

/// Whether the text is a JSON number.
pub(crate) fn is_plain_number(text: &[u8]) -> bool {
    let oddity = text.iter().map(|&byte| usize::from(ROLES[byte as usize] & ODDITY)).sum();
    text.first().is_some_and(|&byte| byte == b'-' || byte.is_ascii_digit()) && is_number(text, oddity)
}

/// Bytes that end a number or a bare word.
const ENDS_WORD: u8 = 1;
/// Quotes and brackets, the only bytes that matter when an array or object is skipped.
const NESTS: u8 = 2;
/// The bits of a role that classify a byte of a word: 0 for a digit, 4 for a point and 8 for any other byte. The
/// values of a word's bytes add up to 0 or 4 only if the word consists of digits and at most one point.
const ODDITY: u8 = 4 | 8;
/// If the [`ODDITY`] values of a word's bytes add up to this number, the word consists of digits and one point.
const POINT: usize = 4;

/// The role of each byte. Looking it up in this table is faster than comparing the byte with many others.
const ROLES: [u8; 256] = {
    let mut roles = [8; 256];
    let mut digit = b'0';
    while digit <= b'9' {
        roles[digit as usize] = 0;
        digit += 1;
    }
    roles[b'.' as usize] = 4;
    let (separators, brackets) = (b", \n\r\t", b"{}[]\"");
    let mut at = 0;
    // Separators and brackets end a word and are not part of it.
    while at < separators.len() {
        roles[separators[at] as usize] = ENDS_WORD;
        roles[brackets[at] as usize] = ENDS_WORD | NESTS;
        at += 1;
    }
    roles
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The cursor skips whole nested values, ignores brackets inside strings, and never overflows the stack.
    #[test]
    fn composites_are_skipped() {
        let text = br#"{"a": ["]}", {"b": [1]}]}, "#;
        assert_eq!(Cursor::new(text, 0).value(), Ok(Raw { bytes: &text[..25], shape: Shape::Composite }));
        let deep = [vec![b'['; 1_000_000], vec![b']'; 1_000_000]].concat();
        assert_eq!(Cursor::new(&deep, 0).value(), Ok(Raw { bytes: &deep, shape: Shape::Composite }));
        assert_eq!(Cursor::new(b"[1}", 0).value(), Err(Broken::Syntax));
        assert_eq!(Cursor::new(b"[1, 2", 0).value(), Err(Broken::EndOfInput));
    }

    /// A string that contains unescaped quotes ends at the first quote after which the object can continue.
    #[test]
    fn guessed_quotes() {
        let mut cursor = Cursor::new(br#"my "q" name", "pid": 1}"#, 0);
        cursor.quotes = Quotes::Guessed;
        assert_eq!(cursor.string_value(), Ok(&br#"my "q" name"#[..]));
        assert!(cursor.guessed);
    }
}
