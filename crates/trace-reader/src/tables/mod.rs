//! The tables of a trace: their schema, their columns, and where their batches go.

pub(crate) mod columns;
pub(crate) mod interner;
pub(crate) mod pairs;
mod rebase;
pub(crate) mod schema;
pub(crate) mod sink;
pub(crate) mod tracks;
