//! Turns a chunk of events into rows: `list` finds the events, `object` reads the JSON of an event, `finish` makes rows.

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

/// How reading a chunk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything was read.
    AllRead,
    /// The list of events ended before this position.
    ArrayEnd(usize),
    /// The event at this position does not end within the chunk.
    Cut(usize),
}

/// The rows of a chunk; texts, tracks and events are numbered within the chunk.
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

/// The begin or the end of an event that is written as two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) is_begin: bool,
    /// Asynchronous events are paired by id, others by track.
    pub(crate) id: Option<u32>,
    pub(crate) position: u32,
    pub(crate) offset: u64,
    pub(crate) at_ns: i64,
    pub(crate) kind: Kind,
    pub(crate) category: Option<u32>,
    pub(crate) name: u32,
    pub(crate) track: u32,
}

/// The position of a chunk, and what is known about its ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Offset of its first byte in the decompressed text.
    pub(crate) offset: u64,
    /// Added to every time.
    pub(crate) base_ns: i64,
    pub(crate) begin: Begin,
    pub(crate) end: End,
}

/// Where a chunk begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Behind the bracket that opens the list of events.
    OfList,
    /// Behind a comma.
    OfEvent,
    /// Unknown.
    Anywhere,
}

/// Where a chunk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In the middle of the file; an event may continue behind it.
    Open,
    /// In the middle of an event longer than allowed.
    OfPatience,
    /// At the end of the file.
    OfFile,
}

/// Read the events of a chunk that begins between two events.
pub(crate) fn read_chunk(bytes: &[u8], place: Place) -> ChunkRows {
    let mut reader = Reader::new(bytes, place);
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
