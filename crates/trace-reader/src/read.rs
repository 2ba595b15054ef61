//! Reads a whole file: a team of threads reads chunks, and the calling thread puts them in order.

use std::sync::Arc;

use crate::chunks::{Sequencer, Team};
use crate::error::ReadError;
use crate::input::{is_too_long, Input, Tally};
use crate::options::Options;
use crate::tables::sink::Sink;

/// Receives the number of bytes read so far and the file's size, several times a second; returns `false` to stop.
pub type Progress<'a> = dyn FnMut(u64, u64) -> bool + 'a;

/// The header and the health of a file.
#[derive(Clone, Debug)]
pub struct Trace {
    /// A JSON object with the top-level keys other than `traceEvents`.
    pub header: String,
    /// A JSON object with format, sizes, counts and findings.
    pub health: String,
}

/// Read a trace into `sink`.
///
/// If `progress` stops the reading, this function returns at once; a thread that is still waiting for bytes ends when
/// the bytes arrive.
///
/// # Errors
///
/// [`ReadError`]: the file cannot be read or is not a trace, or the sink fails. Damaged events are not errors; the health
/// of the trace counts them.
pub fn read(
    input: Input,
    sink: &mut dyn Sink,
    options: Options,
    progress: &mut Progress<'_>,
) -> Result<Trace, ReadError> {
    let path = input.name.clone();
    let total_bytes = input.total_bytes;
    let tally = Arc::new(Tally::default());
    let mut go_on = || progress(tally.bytes(), total_bytes);
    let team = Team::start(input, Arc::clone(&tally), options)
        .map_err(|source| ReadError::Io { path: path.clone(), source })?;
    let failed = || ReadError::Failed { path: path.clone() };
    let opening = team.opening(&mut go_on)?.ok_or_else(failed)?;
    let format = opening.format;
    let mut sequencer = Sequencer::new(sink, opening, options.most_bytes_of_event());
    let chunk_count = team.put_in_order(&mut sequencer, &mut go_on)?;
    let ending = team.ending().ok_or_else(failed)?;
    match ending.failure {
        Some(error) if is_too_long(&error) => {
            return Err(ReadError::Expands { path, most_bytes: options.most_bytes() });
        }
        Some(source) => return Err(ReadError::Io { path, source }),
        None if chunk_count != ending.chunk_count => return Err(failed()),
        None => {}
    }
    sequencer.finish(ending.decoded_bytes, &tally)?;
    if sequencer.holds_no_event() {
        let reason = "none of its elements is an event".to_owned();
        return Err(ReadError::NotATrace { path, reason });
    }
    Ok(sequencer.trace(format, ending.decoded_bytes, &tally))
}
