//! A whole file: one thread undoes the compression and cuts, others read chunks, the caller's puts them in order.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{bounded, unbounded, Receiver, RecvTimeoutError, Sender};

use crate::buffer::Buffer;
use crate::cutter::{cut, Ending, Job, Opening, Ways};
use crate::error::ReadError;
use crate::event::{read_chunk, ChunkRows};
use crate::sequencer::Sequencer;
use crate::sink::Sink;
use crate::source::{is_too_long, Input, Tally};

/// Bytes a thread reads at a time.
const CHUNK_BYTES: usize = 4 << 20;
/// Bytes that may be under way between the threads, however many these are.
const MOST_BYTES_UNDER_WAY: usize = 64 << 20;
/// Bytes a thread reads at a time at least, where there are very many threads.
const LEAST_CHUNK_BYTES: usize = 1 << 17;
/// Bytes that one event may have.
pub(crate) const MOST_BYTES_OF_EVENT: usize = 16 << 20;
/// How long to wait for bytes before asking again whether to go on.
const LOOK_UP_EVERY: Duration = Duration::from_millis(100);

/// How to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Threads that read chunks; as many as the machine has cores by default.
    pub threads: Option<NonZeroUsize>,
    /// Bytes a thread reads at a time; for tests.
    pub chunk_bytes: Option<NonZeroUsize>,
    /// Bytes that one event may have; for tests.
    pub most_bytes_of_event: Option<NonZeroUsize>,
    /// Uncompressed bytes that the file may yield: a small file can expand without end.
    pub most_bytes: Option<u64>,
}

impl Options {
    fn thread_count(&self) -> usize {
        self.threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
    }

    fn chunk_bytes(&self, buffer_count: usize) -> usize {
        let shared = (MOST_BYTES_UNDER_WAY / buffer_count).clamp(LEAST_CHUNK_BYTES, CHUNK_BYTES);
        self.chunk_bytes.map_or(shared, NonZeroUsize::get)
    }

    fn most_bytes_of_event(&self) -> usize {
        self.most_bytes_of_event.map_or(MOST_BYTES_OF_EVENT, NonZeroUsize::get)
    }
}

/// Called now and then with the bytes of the file read and their total; `false` stops the reading.
pub type Progress<'a> = dyn FnMut(u64, u64) -> bool + 'a;

/// What is known of a file besides its tables.
#[derive(Clone, Debug)]
pub struct Trace {
    /// JSON object of the top-level keys other than `traceEvents`.
    pub header: String,
    /// JSON object: format, sizes, counts and findings.
    pub health: String,
}

/// Read a trace into `sink`.
///
/// Where the caller stops the reading, threads that wait for bytes are left to themselves.
///
/// # Errors
///
/// [`ReadError`]: the file cannot be read, is no trace, or the sink fails. A bad event is no error: it is counted in
/// the trace's health.
pub fn read(
    input: Input,
    sink: &mut dyn Sink,
    options: Options,
    progress: &mut Progress<'_>,
) -> Result<Trace, ReadError> {
    let path = input.name.clone();
    let total_bytes = input.total_bytes;
    let tally = Arc::new(Tally::default());
    let most_bytes = options.most_bytes.unwrap_or(u64::MAX);
    let mut go_on = || progress(tally.bytes(), total_bytes);
    let team = Team::start(input, Arc::clone(&tally), most_bytes, options)
        .map_err(|source| ReadError::Io { path: path.clone(), source })?;
    let failed = || ReadError::Failed { path: path.clone() };
    let opening = waited_for(&team.opening, &mut go_on)?.ok_or_else(failed)??;
    let format = opening.format;
    let mut sequencer = Sequencer::new(sink, opening, options.most_bytes_of_event());
    let chunk_count = team.put_in_order(&mut sequencer, &mut go_on)?;
    let ending = team.cutter.join().map_err(|_| failed())?;
    match ending.failure {
        Some(error) if is_too_long(&error) => return Err(ReadError::Expands { path, most_bytes }),
        Some(source) => return Err(ReadError::Io { path, source }),
        None if chunk_count != ending.chunk_count => return Err(failed()),
        None => {}
    }
    sequencer.finish(ending.decoded_bytes, &tally)?;
    if sequencer.holds_no_event() {
        let found = "none of its elements is an event".to_owned();
        return Err(ReadError::NotATrace { path, found });
    }
    Ok(sequencer.trace(format, ending.decoded_bytes, &tally))
}

/// Wait for a message; nothing where its sender is gone.
fn waited_for<T>(messages: &Receiver<T>, go_on: &mut dyn FnMut() -> bool) -> Result<Option<T>, ReadError> {
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

/// A chunk that was read, with its bytes, which may be needed again.
struct Done {
    job: Job,
    rows: ChunkRows,
}

/// The threads that read a file. They end when they find no one to send to or receive from.
struct Team {
    cutter: thread::JoinHandle<Ending>,
    opening: Receiver<Result<Opening, ReadError>>,
    done: Receiver<Done>,
    spare: Sender<Buffer>,
    chunk_bytes: usize,
}

impl Team {
    fn start(input: Input, tally: Arc<Tally>, most_bytes: u64, options: Options) -> io::Result<Self> {
        let threads = options.thread_count();
        // Every chunk's bytes live in one of these buffers, which bounds the memory whatever the threads do.
        let buffer_count = 2 * threads + 2;
        let chunk_bytes = options.chunk_bytes(buffer_count);
        let (spare, spare_out) = unbounded();
        (0..buffer_count).try_for_each(|_| spare.send(Buffer::default())).map_err(io::Error::other)?;
        let (jobs, job_out) = bounded::<Job>(threads);
        let (opening_in, opening) = bounded(1);
        let (done_in, done) = unbounded();
        let ways = Ways { opening: opening_in, jobs, spare: spare_out };
        let cutter =
            thread::Builder::new().spawn(move || cut(input, tally, most_bytes, chunk_bytes, ways))?;
        for _ in 0..threads {
            let (jobs, done) = (job_out.clone(), done_in.clone());
            thread::Builder::new().spawn(move || read_chunks(&jobs, &done))?;
        }
        Ok(Self { cutter, opening, done, spare, chunk_bytes })
    }

    /// Hand on the chunks in their order; returns how many there were.
    fn put_in_order(
        &self,
        sequencer: &mut Sequencer<'_>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<usize, ReadError> {
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        while let Some(Done { job, rows }) = waited_for(&self.done, go_on)? {
            waiting.insert(job.number, (job, rows));
            while let Some((job, rows)) = waiting.remove(&next) {
                next += 1;
                sequencer.absorb(&job.bytes, job.place, rows)?;
                self.take_back(job.bytes);
            }
        }
        Ok(next)
    }

    fn take_back(&self, mut bytes: Buffer) {
        bytes.clear(2 * self.chunk_bytes);
        // The cutter may be done and gone; then nobody needs the buffer.
        let _ = self.spare.send(bytes);
    }
}

fn read_chunks(jobs: &Receiver<Job>, done: &Sender<Done>) {
    for job in jobs {
        let rows = read_chunk(&job.bytes, job.place);
        if done.send(Done { job, rows }).is_err() {
            return;
        }
    }
}
