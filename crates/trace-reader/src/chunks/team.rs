//! The threads that read a file: one decompresses the file and cuts it into chunks, the others read chunks.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{bounded, unbounded, Receiver, RecvTimeoutError, Sender};

use crate::chunks::buffer::Buffer;
use crate::chunks::cutter::{cut, Channels, Ending, Job, Opening};
use crate::chunks::sequencer::Sequencer;
use crate::error::ReadError;
use crate::event::{read_chunk, ChunkRows};
use crate::input::{Input, Tally};
use crate::options::Options;

/// Interval at which to ask whether to continue while waiting for a thread.
const LOOK_UP_EVERY: Duration = Duration::from_millis(100);

/// The rows of a chunk, and its bytes, which the sequencer may need again.
struct Done {
    job: Job,
    rows: ChunkRows,
}

/// The threads that read a file. A thread exits when the other side of one of its channels is dropped.
pub(crate) struct Team {
    cutter: thread::JoinHandle<Ending>,
    opening: Receiver<Result<Opening, ReadError>>,
    done: Receiver<Done>,
    spare: Sender<Buffer>,
    chunk_bytes: usize,
}

impl Team {
    pub(crate) fn start(input: Input, tally: Arc<Tally>, options: Options) -> io::Result<Self> {
        let threads = options.thread_count();
        // All chunks share these buffers, so the number of buffers bounds the memory.
        let buffer_count = 2 * threads + 2;
        let chunk_bytes = options.chunk_bytes(buffer_count);
        let (spare, spare_out) = unbounded();
        (0..buffer_count).try_for_each(|_| spare.send(Buffer::default())).map_err(io::Error::other)?;
        let (jobs, job_out) = bounded::<Job>(threads);
        let (opening_in, opening) = bounded(1);
        let (done_in, done) = unbounded();
        let channels = Channels { opening: opening_in, jobs, spare: spare_out };
        let most_bytes = options.most_bytes();
        let cutter =
            thread::Builder::new().spawn(move || cut(input, tally, most_bytes, chunk_bytes, channels))?;
        for _ in 0..threads {
            let (jobs, done) = (job_out.clone(), done_in.clone());
            thread::Builder::new().spawn(move || read_chunks(&jobs, &done))?;
        }
        Ok(Self { cutter, opening, done, spare, chunk_bytes })
    }

    /// Wait for the part of the file before the events; `None` if the cutter ended without sending this part.
    pub(crate) fn opening(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Opening>, ReadError> {
        wait_for(&self.opening, go_on)?.transpose()
    }

    /// Pass the chunks to the sequencer in order; returns their number.
    pub(crate) fn put_in_order(
        &self,
        sequencer: &mut Sequencer<'_>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<usize, ReadError> {
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        while let Some(Done { job, rows }) = wait_for(&self.done, go_on)? {
            waiting.insert(job.number, (job, rows));
            while let Some((job, rows)) = waiting.remove(&next) {
                next += 1;
                sequencer.absorb(&job.bytes, job.chunk, rows)?;
                self.take_back(job.bytes);
            }
        }
        Ok(next)
    }

    /// Wait for the cutter to end; `None` if it panicked.
    pub(crate) fn ending(self) -> Option<Ending> {
        self.cutter.join().ok()
    }

    fn take_back(&self, mut bytes: Buffer) {
        bytes.clear(2 * self.chunk_bytes);
        // Sending fails only if the cutter has ended and needs no more buffers.
        let _ = self.spare.send(bytes);
    }
}

fn read_chunks(jobs: &Receiver<Job>, done: &Sender<Done>) {
    for job in jobs {
        let rows = read_chunk(&job.bytes, job.chunk);
        if done.send(Done { job, rows }).is_err() {
            return;
        }
    }
}

/// Wait for a message; `None` if its sender is closed.
fn wait_for<T>(messages: &Receiver<T>, go_on: &mut dyn FnMut() -> bool) -> Result<Option<T>, ReadError> {
    loop {
        let message = messages.recv_timeout(LOOK_UP_EVERY);
        if !go_on() {
            return Err(ReadError::Stopped);
        }
        match message {
            Ok(message) => return Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}
