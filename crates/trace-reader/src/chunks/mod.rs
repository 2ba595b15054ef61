//! Reads the events of a file in chunks on several threads, and puts the chunks in order.

mod buffer;
mod cutter;
mod sequencer;
mod team;

pub(crate) use sequencer::Sequencer;
pub(crate) use team::Team;
