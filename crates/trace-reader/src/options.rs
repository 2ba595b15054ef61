//! Options of the reader: threads and limits on memory.

use std::num::NonZeroUsize;
use std::thread;

/// Number of bytes per chunk; a thread reads one chunk at a time.
const CHUNK_BYTES: usize = 4 << 20;
/// Limit on the bytes of all chunks in memory. To stay within this limit, a reader with many threads uses chunks
/// smaller than [`CHUNK_BYTES`].
const MOST_BYTES_UNDER_WAY: usize = 64 << 20;
/// Lower limit on the bytes per chunk. With very many threads, even chunks of this size may together
/// exceed the limit on the bytes of all chunks.
const LEAST_CHUNK_BYTES: usize = 1 << 17;
/// Limit on the bytes of one event.
const MOST_BYTES_OF_EVENT: usize = 16 << 20;

/// Options of the reader.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The number of threads that read chunks; by default, one per core.
    pub threads: Option<NonZeroUsize>,
    /// Number of bytes per chunk, for tests.
    pub chunk_bytes: Option<NonZeroUsize>,
    /// Limit on the bytes of one event, for tests.
    pub most_bytes_of_event: Option<NonZeroUsize>,
    /// Limit on the decompressed bytes of the file, because a small file can expand to any size.
    pub most_bytes: Option<u64>,
}

impl Options {
    pub(crate) fn thread_count(&self) -> usize {
        self.threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
    }

    pub(crate) fn chunk_bytes(&self, buffer_count: usize) -> usize {
        let shared = (MOST_BYTES_UNDER_WAY / buffer_count).clamp(LEAST_CHUNK_BYTES, CHUNK_BYTES);
        self.chunk_bytes.map_or(shared, NonZeroUsize::get)
    }

    pub(crate) fn most_bytes_of_event(&self) -> usize {
        self.most_bytes_of_event.map_or(MOST_BYTES_OF_EVENT, NonZeroUsize::get)
    }

    pub(crate) fn most_bytes(&self) -> u64 {
        self.most_bytes.unwrap_or(u64::MAX)
    }
}
