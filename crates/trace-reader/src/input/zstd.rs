//! Frames of a zstd file.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::streams::Stream;

/// A frame of a zstd file.
pub(crate) struct Frame<R> {
    raw: R,
    decoder: FrameDecoder,
    decoded_bytes: u64,
    is_begun: bool,
    is_checked: bool,
}

impl<R: BufRead> Frame<R> {
    /// Compare the size and the checksum that the frame states, if any, with the decoded data.
    fn check(&mut self) -> io::Result<usize> {
        if std::mem::replace(&mut self.is_checked, true) {
            return Ok(0);
        }
        let (size, checksum) = (self.decoder.content_size(), self.decoder.get_checksum_from_data());
        let is_whole = size == 0 || size == self.decoded_bytes;
        if is_whole && (checksum.is_none() || checksum == self.decoder.get_calculated_checksum()) {
            return Ok(0);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, MISMATCH))
    }
}

const MISMATCH: &str = "corrupt zstd frame: the data does not match its size or checksum";

impl<R: BufRead> Stream<R> for Frame<R> {
    fn begin(raw: R) -> Self {
        Self { raw, decoder: FrameDecoder::new(), decoded_bytes: 0, is_begun: false, is_checked: false }
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
        let count = self.decoder.read(buffer)?;
        self.decoded_bytes += count as u64;
        Ok(count)
    }

    /// The decoded data that the decoder has not returned yet, because later blocks may repeat parts of it. To get
    /// this data, give the decoder an empty last block with an empty checksum
    /// (<https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1.2>).
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
