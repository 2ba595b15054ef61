//! A JSON value: its bytes in the text, and its kind.

/// The kind of a value. Stored in 64 bits, so that a [`Raw`] can be copied word by word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub(crate) enum Shape {
    /// A string, without its quotes but with its escapes.
    Text,
    /// A number.
    Number,
    /// `true`, `false`, `null`, or a bare word that is not JSON, such as `NaN` or `N/A`.
    Literal,
    /// An array or an object, with its brackets.
    Composite,
}

/// A JSON value: its bytes in the text, and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Raw<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) shape: Shape,
}

impl<'a> Raw<'a> {
    pub(crate) fn is_text(self) -> bool {
        self.shape == Shape::Text
    }

    pub(crate) fn is_composite(self) -> bool {
        self.shape == Shape::Composite
    }

    /// The text of a scalar, without quotes.
    #[inline]
    pub(crate) fn scalar(self) -> Option<&'a [u8]> {
        (!self.is_composite()).then_some(self.bytes)
    }

    pub(crate) fn is_null(self) -> bool {
        self.shape == Shape::Literal && self.bytes == b"null"
    }

    /// Whether the value is a bare word that is not JSON.
    #[inline]
    pub(crate) fn is_bare_word(self) -> bool {
        self.shape == Shape::Literal && !matches!(self.bytes, b"true" | b"false" | b"null")
    }
}
