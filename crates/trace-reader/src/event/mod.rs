//! Turns a chunk of events into rows: `list` finds the events, `object` reads the JSON of an event, `finish` makes
//! rows.

pub(crate) mod args;
pub(crate) mod coerce;
mod fields;
mod finish;
pub(crate) mod kind;
mod layout;
mod list;
mod object;
mod reader;
pub(crate) mod time;
mod values;

use crate::event::kind::Kind;
use crate::health::Health;
use crate::tables::columns::Rows;
use crate::tables::tracks::Track;
use reader::Reader;

/// Where the reading of a chunk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// At the end of the chunk.
    AllRead,
    /// At this position, just after the bracket that closes the list of events.
    ArrayEnd(usize),
    /// At this position, the start of an event whose end is not in the chunk.
    Cut(usize),
}

/// The rows of a chunk; strings, tracks and events are numbered within the chunk.
#[derive(Debug)]
pub(crate) struct ChunkRows {
    pub(crate) tables: Vec<Rows>,
    pub(crate) texts: Vec<String>,
    pub(crate) tracks: Vec<Track>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) event_count: u32,
    pub(crate) health: Health,
    pub(crate) outcome: Outcome,
}

/// A begin or end record: one of the two records of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) is_begin: bool,
    /// The id by which the two records of an asynchronous event are paired; the records of all other events are paired
    /// by track.
    pub(crate) id: Option<u32>,
    pub(crate) position: u32,
    pub(crate) offset: u64,
    pub(crate) at_ns: i64,
    pub(crate) kind: Kind,
    pub(crate) category: Option<u32>,
    pub(crate) name: u32,
    pub(crate) track: u32,
}

/// The position and base time of a chunk, the text before it, and where it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkInfo {
    /// Offset of the chunk's first byte in the decompressed text.
    pub(crate) offset: u64,
    /// The base time to add to every time.
    pub(crate) base_ns: i64,
    pub(crate) begin: Begin,
    pub(crate) end: End,
}

/// The text before a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The bracket that opens the list of events.
    OfList,
    /// A comma between two events.
    OfEvent,
    /// Unknown text.
    Anywhere,
}

/// Where a chunk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The middle of the file; an event may continue in the next chunk.
    Open,
    /// The middle of an event that is longer than allowed.
    OfPatience,
    /// The end of the file.
    OfFile,
}

/// Read the events of a chunk.
pub(crate) fn read_chunk(bytes: &[u8], chunk: ChunkInfo) -> ChunkRows {
    let mut reader = Reader::new(bytes, chunk);
    let outcome = reader.all_events();
    ChunkRows {
        tables: reader.tables,
        texts: reader.strings.into_texts(),
        tracks: reader.tracks.into_tracks(),
        edges: reader.edges,
        event_count: reader.position,
        health: reader.health,
        outcome,
    }
}
