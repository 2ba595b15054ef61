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

mod chunks;
mod document;
mod edit;
mod error;
mod event;
mod health;
mod input;
mod json;
mod memory_events;
mod options;
mod peek;
mod read;
mod tables;

pub use edit::{EditedCopy, Fate};
pub use error::ReadError;
pub use event::time::nanoseconds_from_microseconds;
pub use health::{Fault, Finding, Health, Lost, Severity};
pub use input::{content_hash, Input};
pub use memory_events::{memory_events, MemoryEvents};
pub use options::Options;
pub use peek::{peek, Peek};
pub use read::{read, Progress, Trace};
pub use tables::schema::{columns_of, schema_of, ColumnType, Table};
pub use tables::sink::{FolderSink, MemorySink, Sink};
