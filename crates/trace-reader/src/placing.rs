//! Places the events of one rank in a timeline of several ranks: converts times to the timeline's clock, and
//! changes pids and ids so that they differ between ranks.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::edit::{read_entries, Event};
use crate::error::ReadError;
use crate::event::time::nanoseconds_from_microseconds;
use crate::json::{decoded, Cursor};

/// A rank's number is shifted left by this many bits and added to the rank's ids, so ids of different ranks differ.
const ID_BITS: u32 = 36;
/// Phases of events that are joined by their `id` across processes: flows and asynchronous events.
const JOINING_PHASES: &[u8] = b"stfbenSTpF";
const NAMES_OF_PROCESSES: [&[u8]; 2] = [b"\"process_name\"", b"\"process_sort_index\""];

/// How to correct the times of a clock: add `offset_ns`, and `drift_ppb` ns more for each second after `at_ns`.
#[derive(Clone, Copy, Debug)]
pub struct ClockLine {
    /// The time, on the uncorrected clock, at which the correction is exactly `offset_ns`.
    pub at_ns: i64,
    /// The value to add.
    pub offset_ns: i64,
    /// How much faster the reference clock runs than this clock, in parts per billion.
    pub drift_ppb: f64,
    /// The correction applies up to this time on the uncorrected clock.
    pub last_ns: i64,
}

impl ClockLine {
    fn corrected(&self, time_ns: i64) -> Option<i64> {
        let drift = (time_ns.checked_sub(self.at_ns)? as f64 * self.drift_ppb / 1e9).round_ties_even();
        time_ns.checked_add(self.offset_ns)?.checked_add(drift as i64)
    }
}

/// A pid as the file writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pid {
    /// A number, which the file may also write as a string.
    Number(i64),
    /// Any other string.
    Text(String),
}

impl Pid {
    fn of(value: &[u8]) -> Self {
        let (text, _) = decoded(unquoted(value));
        text.parse().map_or_else(|_| Self::Text(text.into_owned()), Self::Number)
    }
}

/// The times, pids and ids that a rank's events get in a timeline of several ranks.
#[derive(Debug)]
pub struct Placing {
    rank: u64,
    base_ns: i64,
    new_base_ns: i64,
    clock: Vec<ClockLine>,
    pids: Mutex<Pids>,
}

#[derive(Debug)]
struct Pids {
    new: HashMap<Pid, i64>,
    last: i64,
}

impl Placing {
    /// Place the events of `rank`, whose file counts times from `base_ns`, in a timeline that counts from
    /// `new_base_ns`.
    ///
    /// `clock` has the corrections of the rank's clock in time order; if it is empty, the times stay as recorded.
    /// `pids` maps pids of the file to pids of the timeline; every other pid becomes the
    /// largest pid so far plus 1.
    #[must_use]
    pub fn new(
        rank: u32,
        base_ns: i64,
        new_base_ns: i64,
        clock: Vec<ClockLine>,
        pids: HashMap<Pid, i64>,
    ) -> Self {
        let last = pids.values().copied().max().unwrap_or(0);
        let pids = Mutex::new(Pids { new: pids, last });
        Self { rank: rank.into(), base_ns, new_base_ns, clock, pids }
    }

    /// Convert events for the timeline. `text` contains JSON objects separated by commas; in the result, a comma
    /// precedes each event.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotATrace`]: the text is not valid JSON.
    pub fn placed(&self, text: &[u8]) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::with_capacity(text.len() + text.len() / 8);
        let mut entries = Vec::new();
        let mut cursor = Cursor::new(text, 0);
        loop {
            cursor.skip_space();
            if cursor.is_at_end() {
                return Ok(out);
            }
            let begin = cursor.at;
            if cursor.peek() == b',' {
                cursor.at += 1;
                continue;
            }
            if read_entries(&mut cursor, &mut entries).is_err() {
                let reason = format!("expected an event at byte {begin} of the text");
                return Err(ReadError::NotATrace { path: String::new(), reason });
            }
            let event = Event { text, span: begin..cursor.at, entries: &entries };
            if !self.leaves_out(&event) {
                out.extend_from_slice(b",\n");
                self.write(&event, &mut out);
            }
        }
    }

    /// Whether to leave out the event, because it names a process (the timeline has its own names) or describes a
    /// process without events.
    pub(crate) fn leaves_out(&self, event: &Event<'_>) -> bool {
        event.value(b"\"ph\"") == Some(b"\"M\"")
            && (event.value(b"\"name\"").is_some_and(|name| NAMES_OF_PROCESSES.contains(&name))
                || !event.value(b"\"pid\"").is_some_and(|pid| self.knows(pid)))
    }

    /// Write the event; changes only its times, its pid and its ids.
    pub(crate) fn write(&self, event: &Event<'_>, out: &mut Vec<u8>) {
        let (start, duration) = self.times(event);
        let is_joined = event
            .value(b"\"ph\"")
            .is_some_and(|phase| matches!(phase, [b'"', phase, b'"'] if JOINING_PHASES.contains(phase)));
        let mut copied = event.span.start;
        for entry in event.entries {
            let value = &event.text[entry.value.clone()];
            let new = match &event.text[entry.key.clone()] {
                b"\"ts\"" => start.map(New::Nanoseconds),
                b"\"dur\"" => duration.map(New::Nanoseconds),
                b"\"pid\"" => Some(New::Whole(self.new_pid(value))),
                b"\"id\"" if is_joined => self.new_id(value),
                b"\"bind_id\"" => self.new_id(value),
                _ => None,
            };
            if let Some(new) = new {
                out.extend_from_slice(&event.text[copied..entry.value.start]);
                new.write(out);
                copied = entry.value.end;
            }
        }
        out.extend_from_slice(&event.text[copied..event.span.end]);
    }

    /// The start and the duration of an event in the timeline; each is `None` if it is missing or does not fit into 64
    /// bits.
    fn times(&self, event: &Event<'_>) -> (Option<i64>, Option<i64>) {
        let time = |key| event.value(key).and_then(|value| nanoseconds_from_microseconds(unquoted(value)));
        let Some(recorded) = time(b"\"ts\"").and_then(|start| start.checked_add(self.base_ns)) else {
            return (None, None);
        };
        let Some(start) = self.corrected(recorded) else { return (None, None) };
        let duration = time(b"\"dur\"")
            .and_then(|duration| self.corrected(recorded.checked_add(duration)?)?.checked_sub(start));
        (start.checked_sub(self.new_base_ns), duration)
    }

    fn corrected(&self, time_ns: i64) -> Option<i64> {
        match self.clock.iter().find(|line| time_ns <= line.last_ns).or(self.clock.last()) {
            Some(line) => line.corrected(time_ns),
            None => Some(time_ns),
        }
    }

    fn knows(&self, pid: &[u8]) -> bool {
        self.pids.lock().unwrap_or_else(PoisonError::into_inner).new.contains_key(&Pid::of(pid))
    }

    fn new_pid(&self, pid: &[u8]) -> i64 {
        let mut pids = self.pids.lock().unwrap_or_else(PoisonError::into_inner);
        let following = pids.last + 1;
        let new = *pids.new.entry(Pid::of(pid)).or_insert(following);
        pids.last = pids.last.max(new);
        new
    }

    /// The new id of an event: a small number gets the rank as its upper bits, and any other id gets the rank as a
    /// prefix.
    fn new_id<'a>(&self, id: &'a [u8]) -> Option<New<'a>> {
        let number = std::str::from_utf8(id).ok().and_then(|text| text.parse::<u64>().ok());
        match number {
            Some(number) if number >> ID_BITS == 0 => {
                Some(New::Whole((self.rank << ID_BITS | number).cast_signed()))
            }
            _ if matches!(id.first(), Some(b'{' | b'[') | None) => None,
            _ => Some(New::OfRank(self.rank, unquoted(id))),
        }
    }
}

/// The new value of an event's id or time.
enum New<'a> {
    Whole(i64),
    /// A time, written in microseconds.
    Nanoseconds(i64),
    /// A rank, and an id without the quotes around it; both are written as one string, such as `"rank 2: id"`.
    OfRank(u64, &'a [u8]),
}

impl New<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let written = match *self {
            Self::Whole(number) => write!(out, "{number}"),
            Self::Nanoseconds(ns) if ns % 1_000 == 0 => write!(out, "{}", ns / 1_000),
            Self::Nanoseconds(ns) => {
                let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
                write!(out, "{sign}{}.{:03}", ns / 1_000, ns % 1_000)
            }
            Self::OfRank(rank, text) => {
                let begun = write!(out, "\"rank {rank}: ");
                out.extend_from_slice(text);
                out.push(b'"');
                begun
            }
        };
        debug_assert!(written.is_ok(), "writing to memory does not fail");
    }
}

/// Remove the quotes around a string; other values stay unchanged.
fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(value)
}
