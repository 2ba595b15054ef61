//! Decodes compressed streams even if they are damaged: returns all readable data and reports the damage.
//!
//! A file is a sequence of streams: gzip members or zstd frames. After a damaged stream, decoding continues at the next
//! bytes that look like the beginning of a stream.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use super::ahead::Ahead;
use super::tally::Tally;
use crate::health::Fault;

/// Bytes to decode per call. In each call, the gzip decoder copies the last 32 KiB that it decoded. With only
/// 32 KiB per call, it would therefore copy every byte.
const MOST_BYTES_A_CALL: usize = 1 << 18;
/// Number of bytes that identify the beginning of a stream.
pub(super) const SIGN_BYTES: usize = 10;

/// One stream of a file.
pub(crate) trait Stream<R>: Sized {
    /// Start decoding at the current position of `raw`.
    fn begin(raw: R) -> Self;

    /// Decode more bytes; 0 bytes mean the end of the stream.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// The bytes that had been decoded but not yet returned when decoding failed.
    fn left(&mut self) -> Vec<u8>;

    /// Whether an error means that all data was decoded but the checksum differs.
    fn is_mismatch(error: &io::Error) -> bool;

    /// Whether a stream begins with these bytes.
    fn begins_with(bytes: &[u8]) -> bool;

    /// Number of bytes to skip if these bytes begin a skippable frame, which contains no compressed data; parallel
    /// compressors write such frames.
    fn skipped(bytes: &[u8]) -> Option<u64>;

    /// The underlying reader, positioned after the bytes read so far.
    fn into_raw(self) -> R;
}

/// The streams of a file, one after the other.
pub(crate) struct Streams<R, S> {
    /// The underlying reader; `None` while `stream` owns it.
    raw: Option<Ahead<R>>,
    stream: Option<S>,
    /// Decoded bytes of a damaged stream that have not been returned yet.
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
                    if let Some(begin) = position_of_next::<R, S>(&raw.recent) {
                        raw.go_back(begin);
                    }
                }
                continue;
            }
            let Some(mut raw) = self.raw.take() else { return Ok(0) };
            let has_stream = self.find_stream(&mut raw);
            if has_stream? {
                raw.recent.clear();
                self.stream = Some(S::begin(raw));
            } else {
                self.raw = Some(raw);
                return Ok(0);
            }
        }
    }

    /// Skip to the beginning of the next stream; returns `false` at the end of the file.
    fn find_stream(&mut self, raw: &mut Ahead<R>) -> io::Result<bool> {
        let (mut skipped, mut is_blank) = (0_u64, true);
        loop {
            let next = raw.peek(SIGN_BYTES)?;
            let is_stream = S::begins_with(next);
            if is_stream || next.is_empty() {
                if !is_blank {
                    let what = "bytes outside any compressed stream";
                    self.tally.damaged(Fault::TruncatedCompression, self.decoded_bytes, skipped, what);
                }
                return Ok(is_stream);
            }
            if let Some(count) = S::skipped(next) {
                let whole = io::copy(&mut raw.by_ref().take(count), &mut io::sink())?;
                if whole < count {
                    let what = "a frame is cut off";
                    self.tally.damaged(Fault::TruncatedCompression, self.decoded_bytes, 0, what);
                }
                continue;
            }
            // Zero bytes between streams are not damage: files written in blocks are padded with zeros.
            is_blank &= next[0] == 0;
            skipped += 1;
            raw.consume(1);
        }
    }
}

/// The position in `recent` (the most recently read bytes) of the first stream that begins after the damaged one.
fn position_of_next<R: BufRead, S: Stream<Ahead<R>>>(recent: &[u8]) -> Option<usize> {
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
