//! Reads the traces of the PyTorch profiler, whatever their age and vendor, into Arrow tables.
//!
//! The way of the bytes: [`source`] undoes the compression of an input; [`cutter`] finds the events and cuts them
//! into chunks; [`event`] turns a chunk into [`columns`], on all cores; [`sequencer`] puts the chunks in order, gives
//! strings and tracks their final numbers and hands the batches to a [`sink`]; [`tail`] reads what follows the events.
//! What was repaired or dropped on the way is counted in [`health`]. [`edit`] goes over the same text to copy it with
//! some events changed.
//!
//! Time is linear in the size of the text, whatever it holds, and the memory for text under way is bounded, whatever
//! the number of threads.
//!
//! Nothing in a file makes the reader panic, and no bad event makes it lose the events around it.

mod args;
mod buffer;
mod coerce;
mod columns;
mod cutter;
mod digits;
mod edit;
mod error;
mod event;
mod header;
mod health;
mod interner;
mod json;
mod kind;
mod memory_events;
mod options;
mod pairs;
mod peek;
mod read;
mod rebase;
mod scan;
mod schema;
mod sequencer;
mod sink;
mod source;
mod streams;
mod tail;
mod team;
mod time;
mod tracks;

pub use edit::{EditedCopy, Fate};
pub use error::ReadError;
pub use health::{Fault, Finding, Health, Lost, Severity};
pub use memory_events::{memory_events, MemoryEvents};
pub use options::Options;
pub use peek::{peek, Peek};
pub use read::{read, Progress, Trace};
pub use schema::{columns_of, schema_of, ColumnType, Table};
pub use sink::{FolderSink, MemorySink, Sink};
pub use source::{content_hash, Input};
pub use time::nanoseconds_from_microseconds;
