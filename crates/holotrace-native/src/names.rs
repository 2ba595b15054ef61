//! Names that C++ compilers mangle.

use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};
use pyo3::prelude::*;

/// Longer names are left alone: the time and memory that a name takes stay bounded.
const MOST_MANGLED_BYTES: usize = 16 << 10;
/// A short mangled name can stand for a text of any length, since each part may repeat all parts before it.
const MOST_DEMANGLED_BYTES: usize = 64 << 10;
/// The parser is recursive; templates of kernels are some twenty deep, and a thread's stack holds far more than this.
const MOST_LEVELS: u32 = 192;

/// See `_native.pyi`.
#[pyfunction]
pub(crate) fn demangled(py: Python<'_>, name: &str) -> Option<String> {
    (name.len() <= MOST_MANGLED_BYTES && name.starts_with("_Z")).then(|| py.detach(|| readable(name)))?
}

fn readable(name: &str) -> Option<String> {
    let parsing = ParseOptions::default().recursion_limit(MOST_LEVELS);
    let writing = DemangleOptions::default().recursion_limit(MOST_LEVELS);
    let (symbol, rest) = BorrowedSymbol::with_tail_and_options(name.as_bytes(), &parsing).ok()?;
    if !rest.is_empty() {
        return None;
    }
    let mut text = BoundedText(String::new());
    symbol.structured_demangle(&mut text, &writing).ok()?;
    Some(text.0)
}

/// A text that refuses to grow beyond `MOST_DEMANGLED_BYTES`.
struct BoundedText(String);

impl Write for BoundedText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > MOST_DEMANGLED_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}
