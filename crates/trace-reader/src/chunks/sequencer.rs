//! Puts the chunks of a file in order, assigns final numbers to strings and tracks, and passes batches to a sink.

use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, LargeStringBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::coalesce::BatchCoalescer;
use serde_json::{json, Value};

use crate::chunks::cutter::Opening;
use crate::document::Header;
use crate::document::{GoesOn, Tail, MOST_METADATA_BYTES};
use crate::error::ReadError;
use crate::event::{read_chunk, Begin, ChunkInfo, ChunkRows, End, Outcome};
use crate::health::{Fault, Health};
use crate::input::Tally;
use crate::read::Trace;
use crate::tables::columns::Renumbering;
use crate::tables::interner::FileInterner;
use crate::tables::pairs::Pairs;
use crate::tables::schema::{schema_of, Table};
use crate::tables::sink::Sink;
use crate::tables::tracks::FileTracks;

/// Rows per batch for the sink; if batches were smaller, readers of the tables would have to concatenate more of them.
const ROWS_A_BATCH: usize = 1 << 16;
/// Rows of `strings` written at a time.
const STRINGS_A_BATCH: usize = 1 << 16;
/// Bytes of `strings` written at a time.
const STRING_BYTES_A_BATCH: usize = 16 << 20;

/// The part of the file that the sequencer reads.
#[derive(Debug)]
enum Stage {
    /// Inside a list of events.
    Events,
    /// After a list of events.
    After(Tail),
}

/// Text that continues in the next chunk, so it cannot be read yet.
#[derive(Debug, Default)]
struct Carried {
    text: Vec<u8>,
    offset: u64,
    /// The length at which to try to parse the text again: trying after every chunk would take quadratic time.
    worth_trying_at: usize,
}

/// Receives the chunks of a file in order, and passes their rows to a sink.
pub(crate) struct Sequencer<'a> {
    sink: &'a mut dyn Sink,
    /// The header of the first document.
    header: Header,
    /// The header of the current document, if it is not the first.
    later: Option<Header>,
    health: Health,
    in_object: bool,
    /// The base time added to the times of the current document.
    base_ns: i64,
    /// The base time added to the times of the first document while that document was read.
    first_base_ns: i64,
    /// A correction that the sink adds to all start times once the file has been read. It is None until the first
    /// document ends. Then it is 0, unless that document states its base time only after its events.
    late_base_ns: Option<i64>,
    stage: Stage,
    begin: Begin,
    carried: Carried,
    most_bytes_of_event: usize,
    events_end: Option<u64>,
    strings: FileInterner,
    tracks: FileTracks,
    pairs: Pairs,
    event_count: u32,
    row_counts: Vec<u64>,
    coalescers: Vec<BatchCoalescer>,
}

impl<'a> Sequencer<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink, opening: Opening, most_bytes_of_event: usize) -> Self {
        Self {
            sink,
            header: opening.header,
            later: None,
            health: opening.health,
            in_object: opening.in_object,
            base_ns: opening.base_ns,
            first_base_ns: opening.base_ns,
            late_base_ns: None,
            stage: Stage::Events,
            begin: Begin::Anywhere,
            carried: Carried::default(),
            most_bytes_of_event,
            events_end: None,
            strings: FileInterner::default(),
            tracks: FileTracks::default(),
            pairs: Pairs::default(),
            event_count: 0,
            row_counts: vec![0; Table::ALL.len()],
            coalescers: Table::ALL
                .iter()
                .map(|&table| BatchCoalescer::new(schema_of(table), ROWS_A_BATCH))
                .collect(),
        }
    }

    /// Take the next chunk. If the chunk begins between two events and was read with the right base time, as most
    /// chunks are, keep its rows; otherwise parse its text again.
    pub(crate) fn absorb(&mut self, text: &[u8], chunk: ChunkInfo, rows: ChunkRows) -> Result<(), ReadError> {
        let is_all = chunk.end == End::OfFile;
        if !self.carried.text.is_empty() {
            self.carried.text.extend_from_slice(text);
            if is_all || self.carried.text.len() >= self.carried.worth_trying_at {
                let Carried { text, offset, .. } = std::mem::take(&mut self.carried);
                return self.read(&text, 0, offset, is_all);
            }
            return Ok(());
        }
        if !matches!(self.stage, Stage::Events) {
            return self.read(text, 0, chunk.offset, is_all);
        }
        if chunk.base_ns != self.base_ns {
            self.begin = chunk.begin;
            return self.read(text, 0, chunk.offset, is_all);
        }
        let outcome = rows.outcome;
        self.store(rows)?;
        match self.after(outcome, text, 0, chunk.offset) {
            Some(at) => self.read(text, at, chunk.offset, is_all),
            None => Ok(()),
        }
    }

    /// Read the text from position `from`.
    fn read(&mut self, text: &[u8], from: usize, offset: u64, is_all: bool) -> Result<(), ReadError> {
        let open = if is_all { End::OfFile } else { End::Open };
        let (mut at, mut end) = (from, open);
        loop {
            let next = match &mut self.stage {
                Stage::Events => {
                    let begin = std::mem::replace(&mut self.begin, Begin::Anywhere);
                    let chunk = ChunkInfo { offset: offset + at as u64, base_ns: self.base_ns, begin, end };
                    let rows = read_chunk(&text[at..], chunk);
                    let outcome = rows.outcome;
                    self.store(rows)?;
                    // If the event is longer than allowed, leave it out instead of waiting for its end.
                    end = if matches!(outcome, Outcome::Cut(_)) { End::OfPatience } else { open };
                    self.after(outcome, text, at, offset)
                }
                Stage::After(tail) => {
                    let header = self.later.as_mut().unwrap_or(&mut self.header);
                    match tail.read(&text[at..], offset + at as u64, is_all, header, &mut self.health) {
                        GoesOn::ByMore(done) => {
                            self.carry(text, at + done, offset, MOST_METADATA_BYTES);
                            None
                        }
                        GoesOn::WithEvents(next_event) => {
                            self.go_on_with_events(text[..at + next_event].last() == Some(&b'['));
                            Some(at + next_event)
                        }
                    }
                }
            };
            match next {
                Some(next) => at = next,
                None => return Ok(()),
            }
        }
    }

    /// Handle the outcome of reading from `at`; returns the position at which to continue, if any text is left.
    fn after(&mut self, outcome: Outcome, text: &[u8], at: usize, offset: u64) -> Option<usize> {
        match outcome {
            Outcome::AllRead => None,
            Outcome::ArrayEnd(length) => {
                self.events_end = Some(offset + (at + length) as u64);
                self.stage = Stage::After(Tail::new(self.in_object));
                Some(at + length)
            }
            Outcome::Cut(length) if text.len() - at - length > self.most_bytes_of_event => Some(at + length),
            Outcome::Cut(length) => {
                self.carry(text, at + length, offset, self.most_bytes_of_event);
                None
            }
        }
    }

    /// Keep the text from `at` on. It is parsed again when it has doubled in length, when it is longer than `most`
    /// bytes, or when the file ends.
    fn carry(&mut self, text: &[u8], at: usize, offset: u64, most: usize) {
        let text = text[at..].to_vec();
        let worth_trying_at = (2 * text.len()).min(most.max(text.len()) + 1);
        self.carried = Carried { text, offset: offset + at as u64, worth_trying_at };
    }

    /// Read the further events that were found after the end of a list of events.
    fn go_on_with_events(&mut self, in_list: bool) {
        let stage = std::mem::replace(&mut self.stage, Stage::Events);
        let Stage::After(mut tail) = stage else { return };
        self.in_object = tail.is_in_object();
        self.events_end = None;
        self.begin = if in_list { Begin::OfList } else { Begin::Anywhere };
        if let Some(later) = tail.later.take() {
            self.end_document();
            // If the document has not stated its base time yet, it may do so after its events; until then, assume 0.
            self.base_ns = match later.base_ns() {
                Some(_) => {
                    later.usable_base_ns(&mut self.health).saturating_sub(self.late_base_ns.unwrap_or(0))
                }
                None => 0,
            };
            self.later = Some(later);
        }
    }

    /// End a document. The document's base time is known now, even if it comes after the events.
    fn end_document(&mut self) {
        let late_base_ns = match self.late_base_ns {
            Some(late_base_ns) => late_base_ns,
            None => self.header.usable_base_ns(&mut self.health).saturating_sub(self.first_base_ns),
        };
        self.late_base_ns = Some(late_base_ns);
        if let Some(later) = self.later.take() {
            if later.base_ns().is_some_and(|base_ns| base_ns != self.base_ns.saturating_add(late_base_ns)) {
                self.health.add(Fault::UnusableBaseTime, self.events_end.unwrap_or(0), b"");
            }
            self.header.join(later);
        }
    }

    fn store(&mut self, rows: ChunkRows) -> Result<(), ReadError> {
        let strings = self.strings.map(&rows.texts);
        let tracks = self.tracks.map(&rows.tracks, &strings);
        let numbers = Renumbering { first_event: self.event_count, strings, tracks };
        self.event_count = self.event_count.checked_add(rows.event_count).ok_or_else(|| {
            ArrowError::ComputeError(
                "the trace has more than 4,294,967,295 events, the most that a table can hold".to_owned(),
            )
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

    /// Pass the full batches of a table to the sink.
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

    /// Complete the tables at the end of the file.
    pub(crate) fn finish(&mut self, decoded_bytes: u64, tally: &Tally) -> Result<(), ReadError> {
        tally.report_damage(&mut self.health);
        if matches!(self.stage, Stage::Events) {
            self.health.add(Fault::MissingEnd, decoded_bytes, b"");
        }
        self.end_document();
        self.pairs.give_up(&mut self.health);
        self.write_pairs()?;
        self.write_tracks()?;
        self.write_strings()?;
        self.flush()?;
        self.sink.finish(self.late_base_ns.unwrap_or(0))?;
        Ok(())
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
            while let Some(text) = texts.next_if(|_| is_room_in(&builder)) {
                builder.append_value(text);
            }
            let column: ArrayRef = Arc::new(builder.finish());
            self.write(Table::Strings, RecordBatch::try_new(schema_of(Table::Strings), vec![column])?)?;
        }
        Ok(())
    }

    /// Whether the file is a list without any event among its elements.
    pub(crate) fn holds_no_event(&self) -> bool {
        let broken = self.health.count(Fault::BrokenEvent) + self.health.count(Fault::NotAnEvent);
        !self.in_object && self.event_count > 0 && broken == u64::from(self.event_count)
    }

    pub(crate) fn trace(&self, format: &str, bytes_decoded: u64, tally: &Tally) -> Trace {
        let row_counts: serde_json::Map<String, Value> = Table::ALL
            .iter()
            .map(|&table| (table.name().to_owned(), Value::from(self.row_counts[table as usize])))
            .collect();
        let health = json!({
            "format": format,
            "bytes_read": tally.bytes(),
            "bytes_decoded": bytes_decoded,
            "event_count": self.event_count,
            "events_end": self.events_end,
            "content_hash": tally.content_hash(),
            "row_counts": row_counts,
            "findings": self.health.to_json(),
        });
        Trace { header: self.header.to_json(), health: health.to_string() }
    }
}

/// Whether another string fits into a batch of strings.
fn is_room_in(builder: &LargeStringBuilder) -> bool {
    builder.len() < STRINGS_A_BATCH && builder.values_slice().len() < STRING_BYTES_A_BATCH
}
