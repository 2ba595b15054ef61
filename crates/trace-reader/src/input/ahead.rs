//! A reader that can peek at the next bytes and go back.

use std::io::{self, BufRead, Read};

/// Number of recent bytes to keep, so that the reader can go back: when a decoder notices that its stream is cut off,
/// it has already read part of the next stream.
const RECENT_BYTES: usize = 1 << 18;

/// Wraps a reader, to peek at its next bytes and to go back.
pub(crate) struct Ahead<R> {
    front: Vec<u8>,
    at: usize,
    /// The most recent bytes.
    pub(super) recent: Vec<u8>,
    inner: R,
}

impl<R: BufRead> Ahead<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { front: Vec::new(), at: 0, recent: Vec::new(), inner }
    }

    /// Go back to a position in `recent`.
    pub(super) fn go_back(&mut self, position: usize) {
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

    /// The next `count` bytes, or fewer at the end of the input.
    pub(super) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
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
