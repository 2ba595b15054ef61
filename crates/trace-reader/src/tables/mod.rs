//! The tables of a trace: their schema, their columns, and the sinks for their batches.

pub(crate) mod columns;
pub(crate) mod interner;
pub(crate) mod pairs;
mod rebase;
pub(crate) mod schema;
pub(crate) mod sink;
pub(crate) mod tracks;
