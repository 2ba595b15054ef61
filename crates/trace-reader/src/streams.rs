//! Compressed streams, read on behind damage: what can be decoded is, and what cannot is reported.
//!
//! A file is a sequence of gzip members or zstd frames, of which each is a stream of its own. Where one is damaged, the
//! next one is looked for by its first bytes.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use flate2::bufread::GzDecoder;
use flate2::{Crc, Decompress, FlushDecompress, Status};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::health::Fault;
use crate::source::Tally;

/// The decoder of gzip keeps the last 32 KiB of each call for the next one: in short calls it copies all it decodes.
const MOST_BYTES_A_CALL: usize = 1 << 18;
/// Bytes behind the beginning of a stream that are kept: a stream that is cut off swallows the beginning of the next one
/// before that shows.
const RECENT_BYTES: usize = 1 << 18;
/// Bytes by which the beginning of a stream is recognised.
const SIGN_BYTES: usize = 10;

/// A reader that lets one look at the bytes that come next, and go back.
pub(crate) struct Ahead<R> {
    front: Vec<u8>,
    at: usize,
    /// What was read last.
    recent: Vec<u8>,
    inner: R,
}

impl<R: BufRead> Ahead<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { front: Vec::new(), at: 0, recent: Vec::new(), inner }
    }

    /// Go back to what was read last from this position on.
    fn go_back(&mut self, position: usize) {
        let mut front = self.recent.split_off(position);
        front.extend_from_slice(&self.front[self.at..]);
        (self.front, self.at) = (front, 0);
    }

    fn remember(&mut self, from_front: bool, count: usize) {
        if self.recent.len() > 2 * RECENT_BYTES {
            self.recent.drain(..self.recent.len() - RECENT_BYTES);
        }
        if from_front {
            self.recent.extend_from_slice(&self.front[self.at..self.at + count]);
        } else if let Ok(bytes) = self.inner.fill_buf() {
            self.recent.extend_from_slice(&bytes[..count.min(bytes.len())]);
        }
    }

    /// The next bytes, fewer than `count` only at the end.
    fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        self.front.drain(..self.at);
        self.at = 0;
        while self.front.len() < count {
            let wanted = count - self.front.len();
            let more = self.inner.fill_buf()?;
            if more.is_empty() {
                break;
            }
            let taken = more.len().min(wanted);
            self.front.extend_from_slice(&more[..taken]);
            self.inner.consume(taken);
        }
        Ok(&self.front[..self.front.len().min(count)])
    }
}

impl<R: BufRead> Read for Ahead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Ahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at < self.front.len() {
            return Ok(&self.front[self.at..]);
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let from_front = self.at < self.front.len();
        self.remember(from_front, count);
        if from_front {
            self.at += count;
        } else {
            self.inner.consume(count);
        }
    }
}

/// One stream of a file.
pub(crate) trait Stream<R>: Sized {
    /// Begin to decode where `raw` is.
    fn begin(raw: R) -> Self;

    /// Decode on; no bytes mean that the stream ends.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// What is decoded but was not handed over, once the stream cannot be decoded any further.
    fn left(&mut self) -> Vec<u8>;

    /// Whether an error of this kind says that all is decoded, but that it is not what was written.
    fn is_mismatch(error: &io::Error) -> bool;

    /// Whether a stream begins with these bytes.
    fn begins_with(bytes: &[u8]) -> bool;

    /// How many of the bytes that begin with these belong to no stream; parallel compressors write such.
    fn skipped(bytes: &[u8]) -> Option<u64>;

    /// The reader, behind what was read of it.
    fn into_raw(self) -> R;
}

/// The streams of a file, one after the other.
pub(crate) struct Streams<R, S> {
    /// Between two streams.
    raw: Option<Ahead<R>>,
    stream: Option<S>,
    /// Decoded bytes of a stream that is damaged.
    left: io::Cursor<Vec<u8>>,
    decoded_bytes: u64,
    tally: Arc<Tally>,
}

impl<R: BufRead, S: Stream<Ahead<R>>> Streams<R, S> {
    pub(crate) fn new(raw: R, tally: Arc<Tally>) -> Self {
        let left = io::Cursor::new(Vec::new());
        Self { raw: Some(Ahead::new(raw)), stream: None, left, decoded_bytes: 0, tally }
    }

    fn decode(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.left.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            let mut is_damaged = false;
            if let Some(stream) = &mut self.stream {
                match stream.read(buffer) {
                    Ok(0) => {}
                    Ok(count) => return Ok(count),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                    Err(error) => {
                        if self.tally.has_failed() {
                            return Err(error);
                        }
                        self.left = io::Cursor::new(stream.left());
                        let fault = if S::is_mismatch(&error) {
                            Fault::ChecksumMismatch
                        } else {
                            Fault::TruncatedCompression
                        };
                        self.tally.damaged(fault, self.decoded_bytes, 0, &error.to_string());
                        is_damaged = fault == Fault::TruncatedCompression;
                    }
                }
                self.raw = self.stream.take().map(S::into_raw);
                if let (Some(raw), true) = (&mut self.raw, is_damaged) {
                    if let Some(begin) = swallowed::<R, S>(&raw.recent) {
                        raw.go_back(begin);
                    }
                }
                continue;
            }
            let Some(mut raw) = self.raw.take() else { return Ok(0) };
            let found = self.find_stream(&mut raw);
            if found? {
                raw.recent.clear();
                self.stream = Some(S::begin(raw));
            } else {
                self.raw = Some(raw);
                return Ok(0);
            }
        }
    }

    /// Go to the beginning of the next stream; false at the end of the file.
    fn find_stream(&mut self, raw: &mut Ahead<R>) -> io::Result<bool> {
        let (mut skipped, mut is_blank) = (0_u64, true);
        loop {
            let next = raw.peek(SIGN_BYTES)?;
            let found = S::begins_with(next);
            if found || next.is_empty() {
                if !is_blank {
                    let what = "bytes that belong to no compressed stream";
                    self.tally.damaged(Fault::TruncatedCompression, self.decoded_bytes, skipped, what);
                }
                return Ok(found);
            }
            if let Some(count) = S::skipped(next) {
                let whole = io::copy(&mut raw.by_ref().take(count), &mut io::sink())?;
                if whole < count {
                    let what = "a frame is cut off";
                    self.tally.damaged(Fault::TruncatedCompression, self.decoded_bytes, 0, what);
                }
                continue;
            }
            // Files written in blocks are padded with zeros.
            is_blank &= next[0] == 0;
            skipped += 1;
            raw.consume(1);
        }
    }
}

/// Where in what was read of a damaged stream the next one begins.
fn swallowed<R: BufRead, S: Stream<Ahead<R>>>(recent: &[u8]) -> Option<usize> {
    (1..recent.len())
        .find(|&at| recent.len() - at >= SIGN_BYTES && S::begins_with(&recent[at..at + SIGN_BYTES]))
}

impl<R: BufRead, S: Stream<Ahead<R>>> Read for Streams<R, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let wanted = buffer.len().min(MOST_BYTES_A_CALL);
        let count = self.decode(&mut buffer[..wanted])?;
        self.decoded_bytes += count as u64;
        Ok(count)
    }
}

/// A member of a gzip file. Where its data is damaged, it hands over what it decoded before, unlike [`GzDecoder`].
pub(crate) struct Member<R> {
    raw: R,
    damage_of_head: Option<io::Error>,
    body: Decompress,
    crc: Crc,
}

impl<R: BufRead> Member<R> {
    /// Compare the checksum and the length behind the data with those of what was decoded.
    fn check(&mut self) -> io::Result<usize> {
        let mut written = [0; 8];
        self.raw.read_exact(&mut written).map_err(|error| io::Error::from(error.kind()))?;
        let calculated = [self.crc.sum().to_le_bytes(), self.crc.amount().to_le_bytes()];
        if written == *calculated.as_flattened() {
            return Ok(0);
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, GZIP_MISMATCH))
    }
}

const GZIP_MISMATCH: &str = "corrupt gzip stream does not have a matching checksum";

impl<R: BufRead> Stream<R> for Member<R> {
    fn begin(raw: R) -> Self {
        let mut head = GzDecoder::new(raw);
        let damage_of_head = head.header().is_none().then(|| head.read(&mut [0]).err()).flatten();
        Self { raw: head.into_inner(), damage_of_head, body: Decompress::new(false), crc: Crc::new() }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(damage) = &mut self.damage_of_head {
            return Err(std::mem::replace(damage, io::ErrorKind::InvalidInput.into()));
        }
        loop {
            let input = self.raw.fill_buf()?;
            let is_end = input.is_empty();
            let flush = if is_end { FlushDecompress::Finish } else { FlushDecompress::None };
            let (taken, decoded) = (self.body.total_in(), self.body.total_out());
            let status = self.body.decompress(input, buffer, flush);
            let (taken, decoded) = (self.body.total_in() - taken, self.body.total_out() - decoded);
            self.raw.consume(taken as usize);
            self.crc.update(&buffer[..decoded as usize]);
            match status {
                _ if decoded > 0 => return Ok(decoded as usize),
                Ok(Status::StreamEnd) => return self.check(),
                Ok(_) if is_end => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete deflate stream"))
                }
                Ok(_) => {}
                Err(_) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "corrupt deflate stream")),
            }
        }
    }

    fn left(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn is_mismatch(error: &io::Error) -> bool {
        error.to_string() == GZIP_MISMATCH
    }

    /// By its two signs, its method, its flags, and what compressors write as their effort and system, so that compressed
    /// data hardly ever looks like it (<https://www.rfc-editor.org/rfc/rfc1952#page-5>).
    fn begins_with(bytes: &[u8]) -> bool {
        match bytes {
            [0x1F, 0x8B, 8, 0..=0x1F, _, _, _, _, 0 | 2 | 4, 0..=13 | 255] => true,
            // The file is cut off within the head.
            [0x1F, 0x8B, ..] => bytes.len() < SIGN_BYTES,
            _ => false,
        }
    }

    fn skipped(_: &[u8]) -> Option<u64> {
        None
    }

    fn into_raw(self) -> R {
        self.raw
    }
}

/// A frame of a zstd file.
pub(crate) struct Frame<R> {
    raw: R,
    decoder: FrameDecoder,
    is_begun: bool,
    is_checked: bool,
}

impl<R: BufRead> Frame<R> {
    /// Compare the checksum of the frame with that of what was decoded.
    fn check(&mut self) -> io::Result<usize> {
        let is_checked = std::mem::replace(&mut self.is_checked, true);
        let written = self.decoder.get_checksum_from_data();
        if is_checked || written.is_none() || written == self.decoder.get_calculated_checksum() {
            return Ok(0);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, MISMATCH))
    }
}

const MISMATCH: &str = "corrupt zstd frame does not have a matching checksum";

impl<R: BufRead> Stream<R> for Frame<R> {
    fn begin(raw: R) -> Self {
        Self { raw, decoder: FrameDecoder::new(), is_begun: false, is_checked: false }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        if !self.is_begun {
            self.decoder.init(&mut self.raw).map_err(invalid)?;
            self.is_begun = true;
        }
        while self.decoder.can_collect() == 0 {
            if self.decoder.is_finished() {
                return self.check();
            }
            self.decoder
                .decode_blocks(&mut self.raw, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(invalid)?;
        }
        self.decoder.read(buffer)
    }

    /// The decoder keeps as much as later blocks may refer to, until it meets the last one: so it gets one, empty, with an
    /// empty checksum (<https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1.2>).
    fn left(&mut self) -> Vec<u8> {
        if !self.is_begun || self.decoder.is_finished() {
            return Vec::new();
        }
        let last_block = [1, 0, 0, 0, 0, 0, 0];
        match self.decoder.decode_blocks(&last_block[..], BlockDecodingStrategy::UptoBlocks(1)) {
            Ok(_) => self.decoder.collect().unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    fn is_mismatch(error: &io::Error) -> bool {
        error.to_string() == MISMATCH
    }

    fn begins_with(bytes: &[u8]) -> bool {
        bytes.starts_with(&[0x28, 0xB5, 0x2F, 0xFD])
    }

    fn skipped(bytes: &[u8]) -> Option<u64> {
        match bytes {
            [0x50..=0x5F, 0x2A, 0x4D, 0x18, a, b, c, d, ..] => {
                Some(8 + u64::from(u32::from_le_bytes([*a, *b, *c, *d])))
            }
            _ => None,
        }
    }

    fn into_raw(self) -> R {
        self.raw
    }
}

/// Damage of a compressed stream.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    pub(crate) fault: Fault,
    /// Where in the decoded text.
    pub(crate) offset: u64,
    /// Compressed bytes that were not decoded.
    pub(crate) bytes: u64,
    pub(crate) what: String,
}
