//! Opens a file, tells its compression by its first bytes, and counts and hashes what is read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use xxhash_rust::xxh3::Xxh3;

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

/// What was read of the file itself so far; shared between the reading thread and the one that reports.
#[derive(Default)]
pub(crate) struct Tally {
    bytes: AtomicU64,
    hash: Mutex<Xxh3>,
}

impl Tally {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: &[u8]) {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.hash.lock().unwrap_or_else(PoisonError::into_inner).update(bytes);
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
        let count = self.inner.read(buffer)?;
        self.tally.add(&buffer[..count]);
        Ok(count)
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
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let total_bytes = file.metadata()?.len();
        let tally = Arc::new(Tally::default());
        let mut raw =
            BufReader::with_capacity(BUFFER_BYTES, Tallied { inner: file, tally: Arc::clone(&tally) });
        let format = Format::of(raw.fill_buf()?);
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
/// What the system says when the file cannot be read.
pub fn content_hash(path: &Path) -> io::Result<String> {
    let tally = Arc::new(Tally::default());
    let mut file = Tallied { inner: File::open(path)?, tally: Arc::clone(&tally) };
    let mut buffer = vec![0; BUFFER_BYTES];
    while file.read(&mut buffer)? > 0 {}
    Ok(tally.content_hash())
}
