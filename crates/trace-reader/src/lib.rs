//! Reads PyTorch profiler traces of any age and vendor into Arrow tables.
//!
//! From bytes to tables: [`source`] decompresses the input; [`cutter`] finds the events and cuts the text into chunks;
//! [`event`] turns a chunk into [`columns`]; [`sequencer`] puts the chunks in order, gives strings and tracks their
//! final numbers, and passes the batches to a [`sink`]; [`tail`] reads what follows the events. A [`team`] of threads
//! does this on all cores. [`health`] counts what was repaired or dropped. [`edit`] copies the same text with some
//! events changed.
//!
//! Time is linear in the size of the text, and the memory for text in progress is bounded for any number of threads.
//! No file makes the reader panic, and a bad event does not lose the events around it.

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
