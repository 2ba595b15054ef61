//! One chunk of events to rows: this file reads the JSON of an event, [`finish`] makes rows of it.

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

/// How the reading of a chunk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything was read.
    AllRead,
    /// The array of events ended; what follows begins at this position.
    ArrayEnd(usize),
    /// The event at this position does not end within the chunk.
    Cut(usize),
}

/// What a chunk became; numbers of texts, tracks and events count within the chunk.
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

/// One end of an event that is written as a beginning and an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) is_begin: bool,
    /// Ends of asynchronous events meet by id, those of others by track.
    pub(crate) id: Option<u32>,
    pub(crate) position: u32,
    pub(crate) offset: u64,
    pub(crate) at_ns: i64,
    pub(crate) kind: Kind,
    pub(crate) category: Option<u32>,
    pub(crate) name: u32,
    pub(crate) track: u32,
}

/// Where a chunk lies, and what is known about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Offset of its first byte in the uncompressed text.
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
    /// Anywhere: nothing is known.
    Anywhere,
}

/// Where a chunk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In the middle of the file; an event may go on behind it.
    Open,
    /// In the middle of an event that is too long to be read.
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
