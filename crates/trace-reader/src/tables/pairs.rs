//! Combines each begin event and its end event (`B`/`E`, `b`/`e`) into a single event.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, UInt32Array, UInt8Array};
use arrow_schema::ArrowError;
use rustc_hash::FxHashMap;

use crate::event::time::is_possible_duration;
use crate::event::Edge;
use crate::health::{Fault, Health, Lost};
use crate::tables::columns::Renumbering;
use crate::tables::schema::{schema_of, Table};

/// The key that the begin and end records of an event share: the track or, for events with an id, the category, name
/// and id.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Meeting {
    Track(u32),
    Id(Option<u32>, u32, u32),
}

/// Begin events whose end has not been read yet, and completed events.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    open: FxHashMap<Meeting, Vec<Edge>>,
    complete: Vec<(Edge, i64)>,
}

impl Pairs {
    /// Match the begin and end records of a chunk, in order.
    pub(crate) fn absorb(&mut self, edges: Vec<Edge>, numbers: &Renumbering, health: &mut Health) {
        for edge in edges {
            self.take(renumbered(edge, numbers), health);
        }
    }

    fn take(&mut self, edge: Edge, health: &mut Health) {
        let meeting = match edge.id {
            Some(id) => Meeting::Id(edge.category, edge.name, id),
            None => Meeting::Track(edge.track),
        };
        if edge.is_begin {
            self.open.entry(meeting).or_default().push(edge);
        } else if let Some(begin) = self.open.get_mut(&meeting).and_then(Vec::pop) {
            let duration_ns = edge.at_ns.saturating_sub(begin.at_ns).max(0);
            if is_possible_duration(duration_ns) {
                self.complete.push((begin, duration_ns));
            } else {
                health.add_loss(Fault::TimeOverflow, begin.offset, b"", Lost { events: 2, bytes: 0 });
            }
        } else {
            health.add(Fault::UnmatchedEnd, edge.offset, b"");
        }
    }

    /// Turn each begin event whose end was never read into an event of duration 0.
    pub(crate) fn give_up(&mut self, health: &mut Health) {
        let mut unfinished: Vec<Edge> = self.open.drain().flat_map(|(_, edges)| edges).collect();
        unfinished.sort_by_key(|edge| edge.position);
        for edge in unfinished {
            health.add(Fault::UnmatchedBegin, edge.offset, b"");
            self.complete.push((edge, 0));
        }
    }

    /// The events completed since the last call, as rows of `events`; `None` if there are none.
    pub(crate) fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let complete = std::mem::take(&mut self.complete);
        if complete.is_empty() {
            return Ok(None);
        }
        let begins = || complete.iter().map(|(begin, _)| begin);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(begins().map(|begin| Some(begin.position)).collect::<UInt32Array>()),
            Arc::new(begins().map(|begin| Some(begin.at_ns)).collect::<Int64Array>()),
            Arc::new(complete.iter().map(|(_, duration)| Some(*duration)).collect::<Int64Array>()),
            Arc::new(begins().map(|begin| Some(begin.kind as u8)).collect::<UInt8Array>()),
            Arc::new(begins().map(|begin| begin.category).collect::<UInt32Array>()),
            Arc::new(begins().map(|begin| Some(begin.name)).collect::<UInt32Array>()),
            Arc::new(begins().map(|begin| Some(begin.track)).collect::<UInt32Array>()),
            Arc::new(Int32Array::new_null(complete.len())),
            Arc::new(Int64Array::new_null(complete.len())),
            Arc::new(Int64Array::new_null(complete.len())),
            Arc::new(Int64Array::new_null(complete.len())),
        ];
        RecordBatch::try_new(schema_of(Table::Events), columns).map(Some)
    }
}

fn renumbered(edge: Edge, numbers: &Renumbering) -> Edge {
    let string = |id: u32| numbers.strings[id as usize];
    Edge {
        id: edge.id.map(string),
        position: numbers.first_event + edge.position,
        category: edge.category.map(string),
        name: string(edge.name),
        track: numbers.tracks[edge.track as usize],
        ..edge
    }
}
