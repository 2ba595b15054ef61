//! Readable forms of mangled C++ names.

use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};
use pyo3::prelude::*;

/// Names longer than this stay mangled, which bounds time and memory per name.
const MOST_MANGLED_BYTES: usize = 16 << 10;
/// Limit on the length of a demangled name: each part of a mangled name may repeat all previous parts, so a short mangled
/// name can expand enormously.
const MOST_DEMANGLED_BYTES: usize = 64 << 10;
/// Limit on the parser's recursion. Kernel templates nest about 20 levels deep; 192 levels fit on the stack of any
/// thread.
const MOST_LEVELS: u32 = 192;

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

/// Text that cannot grow beyond `MOST_DEMANGLED_BYTES`.
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
