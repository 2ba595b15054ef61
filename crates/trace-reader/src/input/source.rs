//! Reads the decompressed bytes of a file; the first bytes of the file show how it is compressed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use super::ahead::Ahead;
use super::gzip::Member;
use super::streams::Streams;
use super::tally::{Tallied, Tally};
use super::zstd::Frame;
use crate::error::ReadError;

const BUFFER_BYTES: usize = 1 << 18;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Plain,
    Gzip,
    Zstd,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    fn of(first_bytes: &[u8]) -> Self {
        match first_bytes {
            [0x1F, 0x8B, ..] => Self::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// The bytes of a trace, and the name of the trace in messages.
pub struct Input {
    pub(crate) name: String,
    bytes: Box<dyn Read + Send>,
    pub(crate) total_bytes: u64,
}

impl Input {
    /// Take the bytes from any reader. `total_bytes` is used only to report progress; pass 0 if it is unknown.
    pub fn new(name: String, bytes: Box<dyn Read + Send>, total_bytes: u64) -> Self {
        Self { name, bytes, total_bytes }
    }

    /// A local file.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`]: the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((total_bytes, file)) => Ok(Self::new(name, Box::new(file), total_bytes)),
            Err(source) => Err(ReadError::Io { path: name, source }),
        }
    }
}

/// A source of the decompressed bytes of a file.
pub(crate) struct Source {
    pub(crate) format: Format,
    tally: Arc<Tally>,
    /// Limit on the decompressed bytes; reading fails beyond this limit.
    most_bytes: u64,
    yielded_bytes: u64,
    reader: Box<dyn Read + Send>,
}

impl Source {
    /// Detect how the input is compressed; `tally` counts the bytes read.
    pub(crate) fn new(input: Input, tally: Arc<Tally>, most_bytes: u64) -> io::Result<Self> {
        let tallied = Tallied { inner: input.bytes, tally: Arc::clone(&tally) };
        let mut raw = BufReader::with_capacity(BUFFER_BYTES, tallied);
        let first_bytes = raw.fill_buf().map_err(|error| tally.failure().unwrap_or(error))?;
        let format = Format::of(first_bytes);
        let reader: Box<dyn Read + Send> = match format {
            Format::Plain => Box::new(raw),
            Format::Gzip => Box::new(Streams::<_, Member<Ahead<_>>>::new(raw, Arc::clone(&tally))),
            Format::Zstd => Box::new(Streams::<_, Frame<Ahead<_>>>::new(raw, Arc::clone(&tally))),
        };
        Ok(Self { format, tally, most_bytes, yielded_bytes: 0, reader })
    }

    /// Append `count` bytes to `buffer`, or fewer at the end of the input; returns the number of appended bytes.
    pub(crate) fn append(&mut self, buffer: &mut Vec<u8>, count: usize) -> io::Result<usize> {
        let start = buffer.len();
        buffer.resize(start + count, 0);
        let result = self.fill(&mut buffer[start..]);
        buffer.truncate(start + *result.as_ref().unwrap_or(&0));
        result
    }

    /// Fill `buffer`, or only part of it if the file ends first; return the number of bytes read.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        let result = loop {
            if filled == buffer.len() {
                break Ok(());
            }
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break Ok(()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(self.tally.failure().unwrap_or(error)),
            }
        };
        self.yielded_bytes += filled as u64;
        if self.yielded_bytes > self.most_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if self.yielded_bytes == 0 {
            self.expect_no_damage()?;
        }
        result.map(|()| filled)
    }

    /// Fail if a compressed stream was damaged.
    fn expect_no_damage(&self) -> io::Result<()> {
        match self.tally.first_damage() {
            Some(damage) => Err(io::Error::new(io::ErrorKind::InvalidData, damage)),
            None => Ok(()),
        }
    }

    /// The part of an error message that mentions damage to the compressed data; empty if nothing is damaged.
    pub(crate) fn damage(&self) -> &'static str {
        match self.tally.first_damage() {
            Some(_) => ", and its compressed data is damaged or cut off",
            None => "",
        }
    }

    /// Append all remaining bytes to `buffer`; a damaged compressed stream is an error.
    pub(crate) fn fill_to_the_end(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let count = self.reader.read_to_end(buffer)?;
        self.expect_no_damage().map(|()| count)
    }
}

/// Whether reading failed because a file decompresses to more than allowed.
pub(crate) fn is_too_long(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

/// The hash of a file's bytes, equal to the hash in the health of the trace.
///
/// # Errors
///
/// [`ReadError::Io`]: the file cannot be read. [`ReadError::Stopped`]: `go_on`, which is called before each buffer is
/// read, returned `false`.
pub fn content_hash(input: Input, go_on: &mut dyn FnMut() -> bool) -> Result<String, ReadError> {
    let tally = Arc::new(Tally::default());
    let mut bytes = Tallied { inner: input.bytes, tally: Arc::clone(&tally) };
    let mut buffer = vec![0; BUFFER_BYTES];
    while go_on() {
        match bytes.read(&mut buffer) {
            Ok(0) => return Ok(tally.content_hash()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(ReadError::Io { path: input.name, source: tally.failure().unwrap_or(error) });
            }
        }
    }
    Err(ReadError::Stopped)
}
