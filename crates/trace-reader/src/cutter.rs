//! Reads a file and cuts it into chunks that begin and end between events, as far as that can be told.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use crate::buffer::Buffer;
use crate::error::ReadError;
use crate::event::{Begin, End, Place};
use crate::header::{find_events, Beginning, Head, Header};
use crate::health::Health;
use crate::scan;
use crate::source::{is_too_long, Input, Source, Tally};
use crate::tail::MOST_METADATA_BYTES;

/// Bytes to look for the events in at first.
const FIRST_LOOK_BYTES: usize = 1 << 16;

/// A chunk on its way to be read.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) number: usize,
    pub(crate) bytes: Buffer,
    pub(crate) place: Place,
}

/// What the beginning of a file says.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) format: &'static str,
    pub(crate) header: Header,
    pub(crate) health: Health,
    pub(crate) in_object: bool,
    pub(crate) base_ns: i64,
}

/// How the cutting ended.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    pub(crate) decoded_bytes: u64,
    pub(crate) chunk_count: usize,
    /// Why reading stopped before the end of the file.
    pub(crate) failure: Option<std::io::Error>,
}

/// Text already read, whose events begin at `events_at`.
pub(crate) struct Begun {
    pub(crate) text: Vec<u8>,
    pub(crate) events_at: usize,
    pub(crate) in_object: bool,
    pub(crate) at_end: bool,
}

pub(crate) enum Failure {
    Io(std::io::Error),
    NotATrace(String),
}

impl Failure {
    /// The error for the file of this name.
    pub(crate) fn of(self, path: String, most_bytes: u64) -> ReadError {
        match self {
            Self::Io(error) if is_too_long(&error) => ReadError::Expands { path, most_bytes },
            Self::Io(source) => ReadError::Io { path, source },
            Self::NotATrace(found) => ReadError::NotATrace { path, found },
        }
    }
}

/// Read as much as it takes to find the events.
pub(crate) fn begin(source: &mut Source, header: &mut Header, health: &mut Health) -> Result<Begun, Failure> {
    let mut text = Vec::new();
    let mut wanted = FIRST_LOOK_BYTES;
    loop {
        let count = source.append(&mut text, wanted).map_err(Failure::Io)?;
        let at_end = count < wanted;
        let is_all = at_end || text.len() > MOST_METADATA_BYTES;
        *header = Header::default();
        let mut found = Health::default();
        let beginning = find_events(Head { text: &text, offset: 0, is_all }, header, &mut found);
        if let Beginning::Events { at, in_object } = beginning {
            *health = found;
            return Ok(Begun { text, events_at: at, in_object, at_end });
        }
        if let Some(found) = refusal(&beginning, &text, header, at_end) {
            return Err(Failure::NotATrace(found + source.damage()));
        }
        wanted = text.len();
    }
}

fn refusal(beginning: &Beginning, text: &[u8], header: &Header, at_end: bool) -> Option<String> {
    let keys = || header.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    match beginning {
        Beginning::SomethingElse(found) => Some(found.clone()),
        Beginning::NoEvents(_) if header.get("traceEvents").is_some() => {
            Some("its traceEvents is not a list".to_owned())
        }
        Beginning::NoEvents(_) => {
            Some(format!("a JSON object without traceEvents; its keys are: {}", keys()))
        }
        Beginning::NeedMore if text.trim_ascii().is_empty() && at_end => Some("the file is empty".to_owned()),
        Beginning::NeedMore if at_end => {
            Some(format!("it ends before any traceEvents; keys until there: {}", keys()))
        }
        Beginning::NeedMore if text.len() > MOST_METADATA_BYTES => {
            Some(format!("no traceEvents within its first {} MiB", MOST_METADATA_BYTES >> 20))
        }
        Beginning::NeedMore | Beginning::Events { .. } => None,
    }
}

/// Where the cutter sends what it finds, and the empty buffers it gets.
pub(crate) struct Ways {
    pub(crate) opening: Sender<Result<Opening, ReadError>>,
    pub(crate) jobs: Sender<Job>,
    pub(crate) spare: Receiver<Buffer>,
}

/// Read a whole file, and send it on in chunks of about `chunk_bytes`.
pub(crate) fn cut(
    input: Input,
    tally: Arc<Tally>,
    most_bytes: u64,
    chunk_bytes: usize,
    ways: Ways,
) -> Ending {
    let path = input.name.clone();
    match open(input, tally, most_bytes) {
        Ok((source, begun, opening)) => {
            let base_ns = opening.base_ns;
            if ways.opening.send(Ok(opening)).is_err() {
                return Ending::default();
            }
            Cutter::new(source, begun, base_ns, chunk_bytes).run(&ways)
        }
        Err(failure) => {
            // Nobody listens where the reading was stopped.
            let _ = ways.opening.send(Err(failure.of(path, most_bytes)));
            Ending::default()
        }
    }
}

fn open(input: Input, tally: Arc<Tally>, most_bytes: u64) -> Result<(Source, Begun, Opening), Failure> {
    let mut source = Source::new(input, tally, most_bytes).map_err(Failure::Io)?;
    let (mut header, mut health) = (Header::default(), Health::default());
    let begun = begin(&mut source, &mut header, &mut health)?;
    let base_ns = header.usable_base_ns(&mut health);
    let format = source.format.name();
    let opening = Opening { format, header, health, in_object: begun.in_object, base_ns };
    Ok((source, begun, opening))
}

struct Cutter {
    source: Source,
    chunk_bytes: usize,
    /// Text that belongs to the next chunk.
    carried: Buffer,
    /// Offset of its first byte.
    offset: u64,
    base_ns: i64,
    begin: Begin,
    at_end: bool,
    failure: Option<std::io::Error>,
}

impl Cutter {
    fn new(source: Source, begun: Begun, base_ns: i64, chunk_bytes: usize) -> Self {
        let mut carried = Buffer::default();
        carried.append(&begun.text[begun.events_at..]);
        let is_list = begun.text[..begun.events_at].last() == Some(&b'[');
        Self {
            source,
            chunk_bytes,
            carried,
            offset: begun.events_at as u64,
            base_ns,
            begin: if is_list { Begin::OfList } else { Begin::Anywhere },
            at_end: begun.at_end,
            failure: None,
        }
    }

    fn run(mut self, ways: &Ways) -> Ending {
        let mut chunk_count = 0;
        while let Ok(mut bytes) = ways.spare.recv() {
            std::mem::swap(&mut bytes, &mut self.carried);
            self.carried.truncate(0);
            let begin = self.begin;
            self.fill(&mut bytes);
            let end = if self.at_end { End::OfFile } else { End::Open };
            let place = Place { offset: self.offset, base_ns: self.base_ns, begin, end };
            self.offset += bytes.len() as u64;
            if ways.jobs.send(Job { number: chunk_count, bytes, place }).is_err() {
                break;
            }
            chunk_count += 1;
            if self.at_end {
                break;
            }
        }
        Ending { decoded_bytes: self.offset, chunk_count, failure: self.failure }
    }

    /// Read on until there is a place to cut, and carry over what lies behind it. Where there is none within twice the
    /// size of a chunk, the cut falls anywhere: memory has to be bounded.
    fn fill(&mut self, bytes: &mut Buffer) {
        let mut searched = 0_usize;
        while !self.at_end {
            let wanted = if searched == 0 { self.chunk_bytes.saturating_sub(bytes.len()) } else { 0 };
            self.read_on(bytes, wanted.max(self.chunk_bytes / 2).max(1));
            if self.at_end {
                return;
            }
            // A beginning that straddles the end of the last search is found by looking a little further back.
            let from = searched.saturating_sub(256);
            if let Some(cut) = scan::last_cut(&bytes[from..]).map(|at| from + at).filter(|&cut| cut > 0) {
                self.carried.append(&bytes[cut..]);
                bytes.truncate(cut);
                self.begin = Begin::OfEvent;
                return;
            }
            if bytes.len() >= 2 * self.chunk_bytes {
                self.begin = Begin::Anywhere;
                return;
            }
            searched = bytes.len();
        }
    }

    fn read_on(&mut self, bytes: &mut Buffer, wanted: usize) {
        match bytes.append_with(wanted, |room| self.source.fill(room)) {
            Ok(count) => self.at_end = count < wanted,
            Err(error) => {
                self.at_end = true;
                self.failure = Some(error);
            }
        }
    }
}
