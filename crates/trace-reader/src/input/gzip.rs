//! Members of a gzip file.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;
use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::streams::{Stream, SIGN_BYTES};

/// A member of a gzip file. If the member is damaged, returns the data before the damage; [`GzDecoder`] does not.
pub(crate) struct Member<R> {
    raw: R,
    damage_of_head: Option<io::Error>,
    body: Decompress,
    crc: Crc,
}

impl<R: BufRead> Member<R> {
    /// Compare the stored checksum and length with the decoded data.
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

    /// Checks the magic bytes, the method, the flags, the compression level and the operating system, because
    /// compressed data may contain the magic bytes by chance (<https://www.rfc-editor.org/rfc/rfc1952#page-5>).
    fn begins_with(bytes: &[u8]) -> bool {
        match bytes {
            [0x1F, 0x8B, 8, 0..=0x1F, _, _, _, _, 0 | 2 | 4, 0..=13 | 255] => true,
            // If fewer than [`SIGN_BYTES`] bytes are left, the file is cut off within the header.
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
