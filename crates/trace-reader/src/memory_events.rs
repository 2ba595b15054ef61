//! Reads raw memory timelines: JSON lists of `[time, action, bytes, category]`, as `export_memory_timeline` writes
//! them.

use std::sync::Arc;

use crate::error::ReadError;
use crate::input::{Input, Source};

/// The columns of a raw memory timeline, except the actions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryEvents {
    /// Times in nanoseconds; negative for memory allocated before the recording.
    pub times: Vec<i64>,
    /// Changes in bytes; negative if memory is freed.
    pub sizes: Vec<i64>,
    /// The number of each event's memory category.
    pub categories: Vec<i64>,
}

/// Read a raw memory timeline, which may be compressed with gzip or zstd.
///
/// # Errors
///
/// [`ReadError::Io`]: the file cannot be read, or its compressed data is damaged. [`ReadError::NotATrace`]: the file is
/// not a list of lists of four whole numbers.
pub fn memory_events(input: Input) -> Result<MemoryEvents, ReadError> {
    let name = input.name.clone();
    let mut text = Vec::new();
    Source::new(input, Arc::default(), u64::MAX)
        .and_then(|mut source| source.fill_to_the_end(&mut text))
        .map_err(|source| ReadError::Io { path: name.clone(), source })?;
    parsed(&text).map_err(|at| {
        let reason = format!(
            "expected a list of [time, action, bytes, category] in whole numbers; byte {at} does not fit"
        );
        ReadError::NotATrace { path: name, reason }
    })
}

fn parsed(text: &[u8]) -> Result<MemoryEvents, usize> {
    let mut reader = Reader { text, at: 0 };
    let mut events = MemoryEvents::default();
    reader.expect(b'[')?;
    let mut is_open = !reader.passes(b']');
    while is_open {
        let [time, _, size, category] = reader.row()?;
        events.times.push(time);
        events.sizes.push(size);
        events.categories.push(category);
        is_open = reader.passes(b',');
        if !is_open {
            reader.expect(b']')?;
        }
    }
    reader.skip_space();
    if reader.at == text.len() {
        Ok(events)
    } else {
        Err(reader.at)
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn row(&mut self) -> Result<[i64; 4], usize> {
        let mut row = [0; 4];
        self.expect(b'[')?;
        for (column, value) in row.iter_mut().enumerate() {
            if column > 0 {
                self.expect(b',')?;
            }
            *value = self.number()?;
        }
        self.expect(b']')?;
        Ok(row)
    }

    fn number(&mut self) -> Result<i64, usize> {
        self.skip_space();
        let begin = self.at;
        let sign = if self.peek() == b'-' { -1 } else { 1 };
        self.at += usize::from(sign < 0);
        let first = self.at;
        let mut value = 0_i64;
        while self.peek().is_ascii_digit() {
            let digit = i64::from(self.peek() - b'0');
            value = value.checked_mul(10).and_then(|tens| tens.checked_add(sign * digit)).ok_or(begin)?;
            self.at += 1;
        }
        if self.at == first {
            Err(begin)
        } else {
            Ok(value)
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), usize> {
        if self.passes(byte) {
            Ok(())
        } else {
            Err(self.at)
        }
    }

    /// Skip white space; if the next byte is then `byte`, skip it too and return true.
    fn passes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_there = self.peek() == byte;
        self.at += usize::from(is_there);
        is_there
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// The next byte, or 0 at the end.
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field except the action is read into a column; white space does not matter.
    #[test]
    fn rows_are_read() {
        let expected = MemoryEvents {
            times: vec![-1, 20],
            sizes: vec![512, -9_223_372_036_854_775_808],
            categories: vec![0, 7],
        };
        assert_eq!(parsed(b" [[-1,0,512,0],\n[ 20 , 3, -9223372036854775808, 7 ]] "), Ok(expected));
        assert_eq!(parsed(b"[ ]"), Ok(MemoryEvents::default()));
    }

    /// Any other text causes an error that gives the position of the first wrong byte; the reader never guesses
    /// numbers.
    #[test]
    fn anything_else_is_an_error() {
        for (text, at) in [
            ("", 0),
            ("{}", 0),
            ("[[1,2,3]]", 7),
            ("[[1,2,3,4,5]]", 9),
            ("[[1,2,3,4],]", 11),
            ("[[1,2,3,4]", 10),
            ("[[1,2,3,4]] 5", 12),
            ("[[1,2,3.5,4]]", 7),
            ("[[1,2,3 4,5]]", 8),
            ("[[1,2,-,4]]", 6),
            ("[[9223372036854775808,2,3,4]]", 2),
        ] {
            assert_eq!(parsed(text.as_bytes()), Err(at), "{text}");
        }
    }
}
