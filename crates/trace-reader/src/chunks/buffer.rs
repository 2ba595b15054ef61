//! A byte buffer that does not zero its memory again when it is reused: zeroing would take time for each chunk.

use std::ops::Deref;

/// A vector of bytes that keeps its initialised memory when it is cleared.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// The content, which has `length` bytes, followed by initialised memory for more content.
    all: Vec<u8>,
    length: usize,
}

impl Buffer {
    /// Let `write` fill up to `count` more bytes; returns the number of bytes written.
    pub(crate) fn append_with<E>(
        &mut self,
        count: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let written = write(self.room(count))?;
        self.length += written.min(count);
        Ok(written)
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn room(&mut self, count: usize) -> &mut [u8] {
        let end = self.length + count;
        if self.all.len() < end {
            self.all.resize(end, 0);
        }
        &mut self.all[self.length..end]
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Remove all bytes; keep at most `most` bytes of memory for reuse.
    pub(crate) fn clear(&mut self, most: usize) {
        self.length = 0;
        self.all.truncate(most);
        self.all.shrink_to(most);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.all[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Truncated bytes never reappear, a failed append adds nothing, and `clear` releases memory.
    #[test]
    fn old_bytes_do_not_show() {
        let mut buffer = Buffer::default();
        buffer.append(b"abcdef");
        buffer.truncate(2);
        let written = buffer.append_with(3, |room| {
            room[0] = b'x';
            Ok::<_, ()>(1)
        });
        assert_eq!((written, &buffer[..]), (Ok(1), &b"abx"[..]));
        assert_eq!(buffer.append_with(9, |_| Err(())), Err(()));
        buffer.append(b"y");
        assert_eq!(&buffer[..], b"abxy");
        buffer.clear(2);
        assert_eq!((buffer.len(), buffer.all.capacity()), (0, 2));
    }
}
