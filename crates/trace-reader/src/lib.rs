//! Reads PyTorch profiler traces of any age and vendor into Arrow tables.
//!
//! From bytes to tables:
//!
//! - `input` decompresses the file,
//! - `document` finds the events, and reads the keys before and after them,
//! - `chunks` cuts the text into chunks, reads them on all cores, and puts them in order,
//! - `event` turns a chunk into rows, using `json`,
//! - `tables` collects the rows and passes batches to a [`Sink`].
//!
//! [`Health`] counts what was repaired or dropped. [`EditedCopy`] copies a trace and changes some of its events;
//! [`Placing`] gives events new times and ids for a timeline of several ranks.
//!
//! The reading time grows linearly with the size of the text. The reader holds only a bounded part of the text in
//! memory. No file makes the reader panic, and a damaged event does not affect the events around it.

mod chunks;
mod document;
mod edit;
mod error;
mod event;
mod gzip_writer;
mod health;
mod input;
mod json;
mod memory_events;
mod options;
mod peek;
mod placing;
mod read;
mod tables;

pub use edit::{EditedCopy, Fate};
pub use error::ReadError;
pub use event::time::nanoseconds_from_microseconds;
pub use gzip_writer::GzipWriter;
pub use health::{Fault, Finding, Health, Lost, Severity};
pub use input::{content_hash, Input};
pub use memory_events::{memory_events, MemoryEvents};
pub use options::Options;
pub use peek::{peek, FileKind, Peek};
pub use placing::{ClockLine, Pid, Placing};
pub use read::{read, Progress, Trace};
pub use tables::schema::{columns_of, schema_of, ColumnType, Table};
pub use tables::sink::{FolderSink, MemorySink, Sink};
