//! Reads a file and cuts it into chunks, between events if possible.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use crate::chunks::buffer::Buffer;
use crate::document::{begin, Begun, Failure, Header};
use crate::error::ReadError;
use crate::event::{Begin, ChunkInfo, End};
use crate::health::Health;
use crate::input::{Input, Source, Tally};
use crate::json::scan;

/// A chunk waiting to be read.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) number: usize,
    pub(crate) bytes: Buffer,
    pub(crate) chunk: ChunkInfo,
}

/// The part of a file before its events.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) format: &'static str,
    pub(crate) header: Header,
    pub(crate) health: Health,
    pub(crate) in_object: bool,
    pub(crate) base_ns: i64,
}

/// The result of cutting a file.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    pub(crate) decoded_bytes: u64,
    pub(crate) chunk_count: usize,
    /// The error that stopped the reading before the end of the file.
    pub(crate) failure: Option<std::io::Error>,
}

/// The channels of the cutter: what it sends, and the empty buffers it receives.
pub(crate) struct Channels {
    pub(crate) opening: Sender<Result<Opening, ReadError>>,
    pub(crate) jobs: Sender<Job>,
    pub(crate) spare: Receiver<Buffer>,
}

/// Read a whole file and send it in chunks of about `chunk_bytes`.
pub(crate) fn cut(
    input: Input,
    tally: Arc<Tally>,
    most_bytes: u64,
    chunk_bytes: usize,
    channels: Channels,
) -> Ending {
    let path = input.name.clone();
    match open(input, tally, most_bytes) {
        Ok((source, begun, opening)) => {
            let base_ns = opening.base_ns;
            if channels.opening.send(Ok(opening)).is_err() {
                return Ending::default();
            }
            Cutter::new(source, begun, base_ns, chunk_bytes).run(&channels)
        }
        Err(failure) => {
            // Sending fails only if the caller has stopped reading and no longer needs this error.
            let _ = channels.opening.send(Err(failure.of(path, most_bytes)));
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
    /// Offset of the first byte of `carried`.
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

    fn run(mut self, channels: &Channels) -> Ending {
        let mut chunk_count = 0;
        while let Ok(mut bytes) = channels.spare.recv() {
            std::mem::swap(&mut bytes, &mut self.carried);
            self.carried.truncate(0);
            let begin = self.begin;
            self.fill(&mut bytes);
            let end = if self.at_end { End::OfFile } else { End::Open };
            let chunk = ChunkInfo { offset: self.offset, base_ns: self.base_ns, begin, end };
            self.offset += bytes.len() as u64;
            if channels.jobs.send(Job { number: chunk_count, bytes, chunk }).is_err() {
                break;
            }
            chunk_count += 1;
            if self.at_end {
                break;
            }
        }
        Ending { decoded_bytes: self.offset, chunk_count, failure: self.failure }
    }

    /// Read until the text can be cut between two events, and carry the rest over to the next chunk. If the
    /// text has grown to twice the size of a chunk and still has no such place, cut anywhere, to bound the memory.
    fn fill(&mut self, bytes: &mut Buffer) {
        let mut searched = 0_usize;
        while !self.at_end {
            let wanted = if searched == 0 { self.chunk_bytes.saturating_sub(bytes.len()) } else { 0 };
            self.read_on(bytes, wanted.max(self.chunk_bytes / 2).max(1));
            if self.at_end {
                return;
            }
            // The beginning of an event may straddle the end of the last search, so search the last bytes again.
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
