//! A whole file: one thread undoes the compression and cuts, the others read chunks, the caller's puts them in order.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::coalesce::BatchCoalescer;
use crossbeam_channel::{bounded, unbounded, Receiver, RecvTimeoutError, Sender};
use serde_json::{json, Value};

use crate::columns::Renumbering;
use crate::error::ReadError;
use crate::event::{read_chunk, ChunkRows, Outcome, Place};
use crate::header::{read_beginning, read_end, Beginning, Header};
use crate::health::{Fault, Health};
use crate::interner::FileInterner;
use crate::pairs::Pairs;
use crate::scan;
use crate::schema::{schema_of, Table};
use crate::sink::Sink;
use crate::source::{is_too_long, Input, Source, Tally};
use crate::tracks::FileTracks;

/// Bytes a thread reads at a time.
const CHUNK_BYTES: usize = 4 << 20;
/// Bytes that one event, or the keys before or after the events, may have.
pub(crate) const MOST_BYTES_IN_ONE_PIECE: usize = 256 << 20;
/// Rows a batch handed to the sink holds; a column read from many small batches has to be pieced together first.
const ROWS_A_BATCH: usize = 1 << 16;
/// How long to wait for bytes before asking again whether to go on.
const LOOK_UP_EVERY: Duration = Duration::from_millis(100);
/// Rows of `strings` written at a time.
const STRINGS_A_BATCH: usize = 1 << 16;

/// How to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Threads that read chunks; as many as the machine has cores by default.
    pub threads: Option<NonZeroUsize>,
    /// Bytes a thread reads at a time; for tests.
    pub chunk_bytes: Option<NonZeroUsize>,
    /// Uncompressed bytes that the file may yield: a small file can expand without end.
    pub most_bytes: Option<u64>,
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
    let shown = input.name.clone();
    let io = |source| ReadError::Io { path: shown.clone(), source };
    let mut source = Source::new(input).map_err(io)?;
    let (format, total_bytes, tally) = (source.format, source.total_bytes, Arc::clone(&source.tally));
    let (mut header, mut health) = (Header::default(), Health::default());
    let most_bytes = options.most_bytes.unwrap_or(u64::MAX);
    let expands = || ReadError::Expands { path: shown.clone(), most_bytes };
    source.most_bytes = most_bytes;
    let beginning = begin(&mut source, &mut header, &mut health).map_err(|failure| match failure {
        Failure::Io(error) if is_too_long(&error) => expands(),
        Failure::Io(error) => io(error),
        Failure::NotATrace(found) => ReadError::NotATrace { path: shown.clone(), found },
    })?;
    let mut sequencer = Sequencer::new(sink, header, health, beginning.in_object, beginning.base_ns);
    run(source, beginning, options, &mut sequencer, &mut || progress(tally.bytes(), total_bytes))?;
    if sequencer.end.is_too_long {
        return Err(expands());
    }
    if let Some(error) = tally.failure() {
        return Err(io(error));
    }
    let decoded = sequencer.finish()?;
    if sequencer.holds_no_event() {
        return Err(ReadError::NotATrace {
            path: shown,
            found: "none of its elements is an event".to_owned(),
        });
    }
    Ok(sequencer.trace(format.name(), decoded, &tally))
}

pub(crate) enum Failure {
    Io(std::io::Error),
    NotATrace(String),
}

/// Text already read, whose events begin at `events_at`.
pub(crate) struct Begun {
    pub(crate) text: Vec<u8>,
    pub(crate) events_at: usize,
    in_object: bool,
    base_ns: i64,
    /// Why the compressed stream broke off, if it did.
    broken_off: Option<String>,
    pub(crate) at_end: bool,
}

/// Read as much as it takes to find the events.
pub(crate) fn begin(source: &mut Source, header: &mut Header, health: &mut Health) -> Result<Begun, Failure> {
    let mut text = Vec::new();
    let mut wanted = 1 << 16;
    loop {
        let before = text.len();
        let result = source.fill(&mut text, wanted);
        if let Some(error) = source.tally.failure() {
            return Err(Failure::Io(error));
        }
        if let Err(error) = &result {
            if text.is_empty() || is_too_long(error) {
                return Err(Failure::Io(std::io::Error::new(error.kind(), error.to_string())));
            }
        }
        let broken_off = result.err().map(|error| error.to_string());
        let at_end = broken_off.is_some() || text.len() < before + wanted;
        *header = Header::default();
        let mut found = Health::default();
        let beginning = read_beginning(&text, header, &mut found);
        if let Beginning::Events(events_at) = beginning {
            *health = found;
            let in_object = text[..events_at].trim_ascii_start().first() != Some(&b'[');
            let base_ns = header.base_ns().unwrap_or(0);
            return Ok(Begun { text, events_at, in_object, base_ns, broken_off, at_end });
        }
        if let Some(found) = refusal(&beginning, &text, header, at_end) {
            return Err(Failure::NotATrace(found));
        }
        wanted = text.len();
    }
}

fn refusal(beginning: &Beginning, text: &[u8], header: &Header, at_end: bool) -> Option<String> {
    let keys = || header.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    match beginning {
        Beginning::SomethingElse(found) => Some(found.clone()),
        Beginning::NoEvents if header.get("traceEvents").is_some() => {
            Some("its traceEvents are no list".to_owned())
        }
        Beginning::NoEvents => Some(format!("a JSON object without traceEvents; its keys are: {}", keys())),
        Beginning::NeedMore if text.trim_ascii().is_empty() && at_end => Some("the file is empty".to_owned()),
        Beginning::NeedMore if at_end => {
            Some(format!("it ends before any traceEvents; keys until there: {}", keys()))
        }
        Beginning::NeedMore if text.len() > MOST_BYTES_IN_ONE_PIECE => {
            Some(format!("no traceEvents within its first {} MiB", MOST_BYTES_IN_ONE_PIECE >> 20))
        }
        Beginning::NeedMore | Beginning::Events(_) => None,
    }
}

/// A chunk on its way to be read.
struct Job {
    number: usize,
    bytes: Vec<u8>,
    place: Place,
}

/// A chunk that was read, with its bytes, which may be needed again.
struct Done {
    job: Job,
    rows: ChunkRows,
}

fn run(
    source: Source,
    begun: Begun,
    options: Options,
    sequencer: &mut Sequencer<'_>,
    progress: &mut dyn FnMut() -> bool,
) -> Result<(), ReadError> {
    let threads =
        options.threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let chunk_bytes = options.chunk_bytes.map_or(CHUNK_BYTES, NonZeroUsize::get);
    // Every chunk's bytes live in one of these buffers, which bounds the memory whatever the threads do.
    let (spare_in, spare_out) = unbounded::<Vec<u8>>();
    (0..2 * threads + 2).try_for_each(|_| spare_in.send(Vec::new())).map_err(|_| ReadError::Stopped)?;
    let (job_in, job_out) = bounded::<Job>(threads);
    let (done_in, done_out) = unbounded::<Done>();
    thread::scope(|scope| {
        let cutter = scope.spawn(move || Cutter::new(source, begun, chunk_bytes, spare_out).run(&job_in));
        for _ in 0..threads {
            let (jobs, done) = (job_out.clone(), done_in.clone());
            scope.spawn(move || {
                for job in jobs {
                    let rows = read_chunk(&job.bytes, job.place);
                    if done.send(Done { job, rows }).is_err() {
                        return;
                    }
                }
            });
        }
        drop((job_out, done_in));
        let result = put_in_order(sequencer, &done_out, &spare_in, progress);
        // On an error the threads stop when they find no one to send to or receive from.
        drop((done_out, spare_in));
        match (result, cutter.join()) {
            (Ok(()), Ok(end)) => {
                sequencer.note_end(end);
                Ok(())
            }
            (Ok(()), Err(_)) => Err(ReadError::Stopped),
            (Err(error), _) => Err(error),
        }
    })
}

fn put_in_order(
    sequencer: &mut Sequencer<'_>,
    done: &Receiver<Done>,
    spare: &Sender<Vec<u8>>,
    progress: &mut dyn FnMut() -> bool,
) -> Result<(), ReadError> {
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    loop {
        match done.recv_timeout(LOOK_UP_EVERY) {
            Ok(Done { job, rows }) => {
                waiting.insert(job.number, (job, rows));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        while let Some((job, rows)) = waiting.remove(&next) {
            next += 1;
            let mut bytes = sequencer.absorb(job.bytes, job.place, rows)?;
            bytes.clear();
            // The cutter may be done and gone; then nobody needs the buffer.
            let _ = spare.send(bytes);
        }
        if !progress() {
            return Err(ReadError::Stopped);
        }
    }
}

/// How the file ended.
struct End {
    decoded_bytes: u64,
    broken_off: Option<String>,
    is_too_long: bool,
}

/// Reads the file and cuts it into chunks that begin and end between events.
struct Cutter {
    source: Source,
    chunk_bytes: usize,
    spare: Receiver<Vec<u8>>,
    /// Text that belongs to the next chunk.
    carried: Vec<u8>,
    /// Offset of its first byte.
    offset: u64,
    base_ns: i64,
    at_end: bool,
    broken_off: Option<String>,
    is_too_long: bool,
}

impl Cutter {
    fn new(source: Source, begun: Begun, chunk_bytes: usize, spare: Receiver<Vec<u8>>) -> Self {
        Self {
            source,
            chunk_bytes,
            spare,
            carried: begun.text[begun.events_at..].to_vec(),
            offset: begun.events_at as u64,
            base_ns: begun.base_ns,
            at_end: begun.at_end,
            broken_off: begun.broken_off,
            is_too_long: false,
        }
    }

    fn run(mut self, jobs: &Sender<Job>) -> End {
        for number in 0.. {
            let Ok(mut bytes) = self.spare.recv() else {
                break;
            };
            std::mem::swap(&mut bytes, &mut self.carried);
            self.carried.clear();
            self.fill(&mut bytes);
            let place = Place { offset: self.offset, base_ns: self.base_ns, is_last: self.at_end };
            self.offset += bytes.len() as u64;
            if jobs.send(Job { number, bytes, place }).is_err() || place.is_last {
                break;
            }
        }
        End { decoded_bytes: self.offset, broken_off: self.broken_off, is_too_long: self.is_too_long }
    }

    /// Read on until there is a place to cut, and carry over what lies behind it.
    fn fill(&mut self, bytes: &mut Vec<u8>) {
        let mut searched = 0_usize;
        while !self.at_end {
            let wanted =
                self.chunk_bytes.max(bytes.len()).saturating_sub(if searched == 0 { bytes.len() } else { 0 });
            self.read_on(bytes, wanted.max(self.chunk_bytes / 2).max(1));
            if self.at_end {
                return;
            }
            // A beginning that straddles the end of the last search is found by looking a little further back.
            let from = searched.saturating_sub(256);
            if let Some(cut) = scan::last_cut(&bytes[from..]).map(|at| from + at).filter(|&cut| cut > 0) {
                self.carried.extend_from_slice(&bytes[cut..]);
                bytes.truncate(cut);
                return;
            }
            if bytes.len() > MOST_BYTES_IN_ONE_PIECE {
                return;
            }
            searched = bytes.len();
        }
    }

    fn read_on(&mut self, bytes: &mut Vec<u8>, wanted: usize) {
        match self.source.fill(bytes, wanted) {
            Ok(count) => self.at_end = count < wanted,
            Err(error) => {
                self.at_end = true;
                self.is_too_long = is_too_long(&error);
                self.broken_off = Some(error.to_string());
            }
        }
    }
}

/// Where in the file the sequencer is.
enum Stage {
    /// Among the events; these bytes, from this offset on, belong to an event that goes on in the next chunk.
    Events { spilled: Vec<u8>, offset: u64 },
    /// Behind the events, of which these are the bytes from this offset on.
    Behind { bytes: Vec<u8>, offset: u64 },
}

/// Takes chunks in order and gives their rows the numbers of the file.
struct Sequencer<'a> {
    sink: &'a mut dyn Sink,
    header: Header,
    health: Health,
    in_object: bool,
    base_ns: i64,
    stage: Stage,
    strings: FileInterner,
    tracks: FileTracks,
    pairs: Pairs,
    event_count: u32,
    row_counts: Vec<u64>,
    coalescers: Vec<BatchCoalescer>,
    end: End,
}

impl<'a> Sequencer<'a> {
    fn new(sink: &'a mut dyn Sink, header: Header, health: Health, in_object: bool, base_ns: i64) -> Self {
        Self {
            sink,
            header,
            health,
            in_object,
            base_ns,
            stage: Stage::Events { spilled: Vec::new(), offset: 0 },
            strings: FileInterner::default(),
            tracks: FileTracks::default(),
            pairs: Pairs::default(),
            event_count: 0,
            row_counts: vec![0; Table::ALL.len()],
            coalescers: Table::ALL
                .iter()
                .map(|&table| BatchCoalescer::new(schema_of(table), ROWS_A_BATCH))
                .collect(),
            end: End { decoded_bytes: 0, broken_off: None, is_too_long: false },
        }
    }

    /// Take the next chunk; gives its buffer back where it is no longer needed.
    fn absorb(&mut self, bytes: Vec<u8>, place: Place, rows: ChunkRows) -> Result<Vec<u8>, ReadError> {
        match &mut self.stage {
            Stage::Behind { bytes: behind, .. } => {
                if behind.len() < MOST_BYTES_IN_ONE_PIECE {
                    behind.extend_from_slice(&bytes);
                }
                Ok(bytes)
            }
            Stage::Events { spilled, .. } if spilled.is_empty() => self.absorb_events(bytes, place, rows),
            Stage::Events { spilled, offset } => {
                let mut joined = std::mem::take(spilled);
                let offset = *offset;
                joined.extend_from_slice(&bytes);
                let is_last = place.is_last || joined.len() > MOST_BYTES_IN_ONE_PIECE;
                let place = Place { offset, is_last, ..place };
                let rows = read_chunk(&joined, place);
                self.absorb_events(joined, place, rows)?;
                Ok(bytes)
            }
        }
    }

    fn absorb_events(&mut self, bytes: Vec<u8>, place: Place, rows: ChunkRows) -> Result<Vec<u8>, ReadError> {
        match rows.outcome {
            Outcome::AllRead => self.stage = Stage::Events { spilled: Vec::new(), offset: 0 },
            Outcome::Cut(at) => {
                self.stage =
                    Stage::Events { spilled: bytes[at..].to_vec(), offset: place.offset + at as u64 };
            }
            Outcome::ArrayEnd(at) => {
                self.stage = Stage::Behind { bytes: bytes[at..].to_vec(), offset: place.offset + at as u64 };
            }
        }
        self.store(rows)?;
        Ok(bytes)
    }

    fn store(&mut self, rows: ChunkRows) -> Result<(), ReadError> {
        let strings = self.strings.map(&rows.texts);
        let tracks = self.tracks.map(&rows.tracks, &strings);
        let numbers = Renumbering { first_event: self.event_count, strings, tracks };
        self.event_count = self.event_count.checked_add(rows.event_count).ok_or_else(|| {
            ArrowError::ComputeError("the trace has more than 4,294,967,295 events".to_owned())
        })?;
        for (&table, rows) in Table::ALL.iter().zip(rows.tables) {
            if let Some(batch) = rows.finish(&numbers)? {
                self.write(table, batch)?;
            }
        }
        self.health.merge(rows.health);
        self.pairs.absorb(rows.edges, &numbers, &mut self.health);
        self.write_pairs()
    }

    fn write_pairs(&mut self) -> Result<(), ReadError> {
        match self.pairs.batch()? {
            Some(batch) => self.write(Table::Events, batch),
            None => Ok(()),
        }
    }

    fn write(&mut self, table: Table, batch: RecordBatch) -> Result<(), ReadError> {
        self.row_counts[table as usize] += batch.num_rows() as u64;
        self.coalescers[table as usize].push_batch(batch)?;
        self.hand_on(table)
    }

    /// Give the sink the batches of a table that are full.
    fn hand_on(&mut self, table: Table) -> Result<(), ReadError> {
        while let Some(batch) = self.coalescers[table as usize].next_completed_batch() {
            self.sink.write(table, batch)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ReadError> {
        for &table in Table::ALL {
            self.coalescers[table as usize].finish_buffered_batch()?;
            self.hand_on(table)?;
        }
        Ok(())
    }

    fn note_end(&mut self, end: End) {
        self.end = end;
    }

    /// Read the keys behind the events and complete the tables; returns the number of uncompressed bytes.
    fn finish(&mut self) -> Result<u64, ReadError> {
        let decoded = self.end.decoded_bytes;
        if let Some(reason) = &self.end.broken_off {
            self.health.add(Fault::TruncatedCompression, decoded, reason.as_bytes());
        }
        match &self.stage {
            Stage::Events { .. } => self.health.add(Fault::MissingEnd, decoded, b""),
            Stage::Behind { bytes, offset } => {
                read_end(bytes, *offset, self.in_object, &mut self.header, &mut self.health);
            }
        }
        self.pairs.give_up(&mut self.health);
        self.write_pairs()?;
        self.write_tracks()?;
        self.write_strings()?;
        self.flush()?;
        let late_base_ns = self.header.base_ns().unwrap_or(0).saturating_sub(self.base_ns);
        self.sink.finish(late_base_ns)?;
        Ok(decoded)
    }

    fn write_tracks(&mut self) -> Result<(), ReadError> {
        let tracks: Vec<_> = self.tracks.tracks().collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new((0..tracks.len() as u32).map(Some).collect::<UInt32Array>()),
            Arc::new(tracks.iter().map(|(process, _)| process.number()).collect::<Int64Array>()),
            Arc::new(tracks.iter().map(|(process, _)| process.text()).collect::<UInt32Array>()),
            Arc::new(tracks.iter().map(|(_, thread)| thread.number()).collect::<Int64Array>()),
            Arc::new(tracks.iter().map(|(_, thread)| thread.text()).collect::<UInt32Array>()),
        ];
        let batch = RecordBatch::try_new(schema_of(Table::Tracks), columns)?;
        self.write(Table::Tracks, batch)
    }

    fn write_strings(&mut self) -> Result<(), ReadError> {
        let strings = std::mem::take(&mut self.strings);
        let mut texts = strings.texts().peekable();
        while texts.peek().is_some() {
            let mut builder = LargeStringBuilder::new();
            texts.by_ref().take(STRINGS_A_BATCH).for_each(|text| builder.append_value(text));
            let column: ArrayRef = Arc::new(builder.finish());
            self.write(Table::Strings, RecordBatch::try_new(schema_of(Table::Strings), vec![column])?)?;
        }
        Ok(())
    }

    /// Offset behind the bracket that closes the events, in the uncompressed text; nothing where it is missing.
    fn events_end(&self) -> Option<u64> {
        match &self.stage {
            Stage::Behind { offset, .. } => Some(*offset),
            Stage::Events { .. } => None,
        }
    }

    /// Whether it is a list with elements, but nothing in them that a profiler writes.
    fn holds_no_event(&self) -> bool {
        let broken = self.health.count(Fault::BrokenEvent);
        !self.in_object && self.event_count > 0 && broken == u64::from(self.event_count)
    }

    fn trace(&self, format: &str, bytes_decoded: u64, tally: &Tally) -> Trace {
        let row_counts: serde_json::Map<String, Value> = Table::ALL
            .iter()
            .map(|&table| (table.name().to_owned(), Value::from(self.row_counts[table as usize])))
            .collect();
        let health = json!({
            "format": format,
            "bytes_read": tally.bytes(),
            "bytes_decoded": bytes_decoded,
            "event_count": self.event_count,
            "events_end": self.events_end(),
            "content_hash": tally.content_hash(),
            "row_counts": row_counts,
            "findings": self.health.to_json(),
        });
        Trace { header: self.header.to_json(), health: health.to_string() }
    }
}
