//! Counts and hashes the bytes of a file, and records errors and damage.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::Xxh3;

use crate::health::{Fault, Health, Lost};

/// Count and hash of the bytes read so far, and the errors found. The reading thread updates it, while another thread
/// reads the count to report progress.
#[derive(Default)]
pub(crate) struct Tally {
    byte_count: AtomicU64,
    hash: Mutex<Xxh3>,
    failure: Mutex<Option<io::Error>>,
    damages: Mutex<Vec<Damage>>,
}

/// Maximum number of entries for damaged parts of compressed streams.
const MOST_DAMAGES: usize = 100;

impl Tally {
    /// Bytes of the file read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.byte_count.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: &[u8]) {
        self.byte_count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.hash.lock().unwrap_or_else(PoisonError::into_inner).update(bytes);
    }

    /// Store the error that stopped the reading, and return a copy of it.
    fn fail(&self, error: io::Error) -> io::Error {
        let copy = io::Error::new(error.kind(), error.to_string());
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        copy
    }

    /// The error that stopped the reading before the end of the file; damage to a compressed stream does not stop the
    /// reading.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether reading the bytes of the file failed; errors of the decoder do not count.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Record a damaged part of a compressed stream. If the list is full, or its last part has the same fault and
    /// offset, only add the bytes to that last part.
    pub(crate) fn damaged(&self, fault: Fault, offset: u64, bytes: u64, what: &str) {
        let mut damages = self.damages.lock().unwrap_or_else(PoisonError::into_inner);
        let are_many = damages.len() >= MOST_DAMAGES;
        match damages.last_mut() {
            Some(last) if are_many || (last.fault == fault && last.offset == offset) => last.bytes += bytes,
            _ => damages.push(Damage { fault, offset, bytes, what: what.to_owned() }),
        }
    }

    /// The description of the first damage to a compressed stream; `None` if nothing is damaged.
    pub(super) fn first_damage(&self) -> Option<String> {
        let damages = self.damages.lock().unwrap_or_else(PoisonError::into_inner);
        damages.first().map(|damage| damage.what.clone())
    }

    /// Report the damaged parts of compressed streams as findings.
    pub(crate) fn report_damage(&self, health: &mut Health) {
        for damage in self.damages.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            health.add_loss(damage.fault, damage.offset, damage.what.as_bytes(), Lost::bytes(damage.bytes));
        }
    }

    /// Hash of the file's bytes, in hexadecimal.
    pub(crate) fn content_hash(&self) -> String {
        format!("{:032x}", self.hash.lock().unwrap_or_else(PoisonError::into_inner).digest128())
    }
}

pub(super) struct Tallied<R> {
    pub(super) inner: R,
    pub(super) tally: Arc<Tally>,
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

/// Damage to a compressed stream.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    pub(crate) fault: Fault,
    /// Offset of the damage in the decoded text.
    pub(crate) offset: u64,
    /// Number of compressed bytes that were not decoded.
    pub(crate) bytes: u64,
    pub(crate) what: String,
}
