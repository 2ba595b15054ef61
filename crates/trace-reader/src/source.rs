//! Where the bytes come from: tells their compression by the first ones, and counts and hashes what is read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use xxhash_rust::xxh3::Xxh3;

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

/// The bytes of a trace, in order, and the name by which messages call it.
pub struct Input {
    pub(crate) name: String,
    bytes: Box<dyn Read + Send>,
    total_bytes: u64,
}

impl Input {
    /// Bytes that come from anywhere; `total_bytes` only tells how far the reading is, 0 where it is not known.
    pub fn new(name: String, bytes: Box<dyn Read + Send>, total_bytes: u64) -> Self {
        Self { name, bytes, total_bytes }
    }

    /// A file of this machine.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`] when it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((total_bytes, file)) => Ok(Self::new(name, Box::new(file), total_bytes)),
            Err(source) => Err(ReadError::Io { path: name, source }),
        }
    }
}

/// What was read of the file itself so far; shared between the reading thread and the one that reports.
#[derive(Default)]
pub(crate) struct Tally {
    bytes: AtomicU64,
    hash: Mutex<Xxh3>,
    failure: Mutex<Option<io::Error>>,
}

impl Tally {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: &[u8]) {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.hash.lock().unwrap_or_else(PoisonError::into_inner).update(bytes);
    }

    /// Keep the error that ended the reading; returns another one that says the same.
    fn fail(&self, error: io::Error) -> io::Error {
        let told = io::Error::new(error.kind(), error.to_string());
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        told
    }

    /// Why no more bytes came although there are more. A damaged compressed stream is no failure: its bytes came.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Hash of the file's bytes, in hexadecimal.
    pub(crate) fn content_hash(&self) -> String {
        format!("{:032x}", self.hash.lock().unwrap_or_else(PoisonError::into_inner).digest128())
    }
}

struct Tallied<R> {
    inner: R,
    tally: Arc<Tally>,
}

impl<R: Read> Read for Tallied<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(count) => {
                self.tally.add(&buffer[..count]);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(self.tally.fail(error)),
        }
    }
}

/// A file that yields uncompressed bytes.
pub(crate) struct Source {
    pub(crate) format: Format,
    pub(crate) total_bytes: u64,
    pub(crate) tally: Arc<Tally>,
    /// Uncompressed bytes that it may yield; then reading fails.
    pub(crate) most_bytes: u64,
    yielded_bytes: u64,
    reader: Box<dyn Read + Send>,
}

impl Source {
    pub(crate) fn new(input: Input) -> io::Result<Self> {
        let total_bytes = input.total_bytes;
        let tally = Arc::new(Tally::default());
        let mut raw =
            BufReader::with_capacity(BUFFER_BYTES, Tallied { inner: input.bytes, tally: Arc::clone(&tally) });
        let first_bytes = raw.fill_buf().map_err(|error| tally.failure().unwrap_or(error))?;
        let format = Format::of(first_bytes);
        let reader: Box<dyn Read + Send> = match format {
            Format::Plain => Box::new(raw),
            Format::Gzip => Box::new(MultiGzDecoder::new(raw)),
            Format::Zstd => Box::new(ZstdFrames { raw: Some(raw), frame: None }),
        };
        Ok(Self { format, total_bytes, tally, most_bytes: u64::MAX, yielded_bytes: 0, reader })
    }

    /// Append up to `count` bytes to `buffer`; fewer only at the end.
    pub(crate) fn fill(&mut self, buffer: &mut Vec<u8>, count: usize) -> io::Result<usize> {
        let start = buffer.len();
        buffer.resize(start + count, 0);
        let mut filled = start;
        let result = loop {
            if filled == buffer.len() {
                break Ok(());
            }
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break Ok(()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        buffer.truncate(filled);
        self.yielded_bytes += (filled - start) as u64;
        if self.yielded_bytes > self.most_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        result.map(|()| filled - start)
    }

    /// Append all that is left to `buffer`.
    pub(crate) fn fill_to_the_end(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.reader.read_to_end(buffer)
    }
}

/// Whether reading failed because a file yields more than it may.
pub(crate) fn is_too_long(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

/// The frames of a zstd file, one after the other.
struct ZstdFrames<R: BufRead> {
    raw: Option<R>,
    frame: Option<Box<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>>,
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let count = frame.read(buffer)?;
                if count > 0 || buffer.is_empty() {
                    return Ok(count);
                }
            }
            if let Some(frame) = self.frame.take() {
                self.raw = Some(frame.into_inner());
            }
            let Some(mut raw) = self.raw.take() else {
                return Ok(0);
            };
            if raw.fill_buf()?.is_empty() {
                self.raw = Some(raw);
                return Ok(0);
            }
            if is_skippable(raw.fill_buf()?) {
                skip_frame(&mut raw)?;
                self.raw = Some(raw);
                continue;
            }
            let frame = StreamingDecoder::new(raw)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.frame = Some(Box::new(frame));
        }
    }
}

/// Whether a frame begins here that holds something else than text; parallel compressors write such.
fn is_skippable(bytes: &[u8]) -> bool {
    matches!(bytes, [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..])
}

fn skip_frame(raw: &mut impl Read) -> io::Result<()> {
    let mut head = [0; 8];
    raw.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    io::copy(&mut raw.take(length.into()), &mut io::sink()).map(|_| ())
}

/// Hash of a file's bytes, as a trace read from it carries.
///
/// # Errors
///
/// [`ReadError::Io`] when they cannot be read.
pub fn content_hash(input: Input) -> Result<String, ReadError> {
    let tally = Arc::new(Tally::default());
    let mut bytes = Tallied { inner: input.bytes, tally: Arc::clone(&tally) };
    let copied = io::copy(&mut bytes, &mut io::sink());
    copied.map_err(|error| ReadError::Io { path: input.name, source: tally.failure().unwrap_or(error) })?;
    Ok(tally.content_hash())
}
