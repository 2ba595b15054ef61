//! Copies the text of a trace and changes some of its events, in bounded memory.
//!
//! All other text is copied byte for byte. The reader's cursor finds the events and their keys without decoding values.

use std::ops::Range;
use std::sync::Arc;

use crate::document::{begin, Header};
use crate::error::ReadError;
use crate::health::Health;
use crate::input::{Input, Source};
use crate::json::{Broken, Cursor};
use crate::placing::Placing;

const PIECE_BYTES: usize = 2 << 20;
/// Limit on the bytes to keep while searching for the end of an event.
const MOST_BYTES_OF_PIECE: usize = 64 << 20;

/// What the copy does with an event.
#[derive(Clone, Copy, Debug)]
pub enum Fate<'a> {
    /// The event is copied unchanged.
    Kept,
    /// The event is omitted.
    LeftOut,
    /// This text is added at the end of the event's args.
    Marked(&'a [u8]),
    /// In a complete event (`ph` is X), this number replaces the name, and the args become empty.
    Numbered(u32),
    /// For a timeline of several ranks, the event gets new times, a new pid and new ids, or is left out.
    Placed(&'a Placing),
}

impl Fate<'_> {
    fn leaves_out(&self, event: &Event<'_>) -> bool {
        match self {
            Self::LeftOut => true,
            Self::Placed(placing) => placing.leaves_out(event),
            _ => false,
        }
    }
}

/// Copies a file piece by piece.
pub struct EditedCopy {
    path: String,
    source: Source,
    /// Text not yet copied; `offset` is the position of its first byte in the decompressed file.
    text: Vec<u8>,
    offset: u64,
    /// The position in `text` of the next event, or of the text after the events.
    at: usize,
    source_is_read: bool,
    events_end: Option<u64>,
    event_count: usize,
    holds_event: bool,
    /// Whether to leave out the text before the events.
    skips_head: bool,
    /// Whether the text just before `at` was copied unchanged. If the next event is copied unchanged, too, the comma
    /// and the spaces between them are kept.
    follows_kept: bool,
    entries: Vec<Entry>,
}

/// The positions of a key of an event, including its quotes, and of its value.
pub(crate) struct Entry {
    pub(crate) key: Range<usize>,
    pub(crate) value: Range<usize>,
}

impl EditedCopy {
    /// Find the events of a file.
    ///
    /// # Errors
    ///
    /// [`ReadError`]: the file cannot be read, or is not a trace.
    pub fn new(input: Input) -> Result<Self, ReadError> {
        let shown = input.name.clone();
        let mut source = Source::new(input, Arc::default(), u64::MAX)
            .map_err(|source| ReadError::Io { path: shown.clone(), source })?;
        let begun = begin(&mut source, &mut Header::default(), &mut Health::default())
            .map_err(|failure| failure.of(shown.clone(), u64::MAX))?;
        Ok(Self {
            path: shown,
            source,
            source_is_read: begun.at_end,
            at: begun.events_at,
            text: begun.text,
            offset: 0,
            events_end: None,
            event_count: 0,
            holds_event: false,
            skips_head: false,
            follows_kept: true,
            entries: Vec::new(),
        })
    }

    /// Leave out the text before the events, and write a comma before every changed event, even the first.
    #[must_use]
    pub fn of_events(mut self) -> Self {
        (self.skips_head, self.holds_event) = (true, true);
        self
    }

    /// The number of events read so far.
    pub fn event_count(&self) -> usize {
        self.event_count
    }

    /// The offset just after the bracket that closes the list of events, in the decompressed text; `None` until the
    /// bracket is read.
    pub fn events_end(&self) -> Option<u64> {
        self.events_end
    }

    /// Whether the copy already contains an event.
    pub fn holds_event(&self) -> bool {
        self.holds_event
    }

    /// The next piece of the copy, up to the bracket that closes the events; `None` after that bracket.
    ///
    /// # Errors
    ///
    /// [`ReadError`]: the file cannot be read, its events are not valid JSON, or their list is not closed.
    pub fn events<'a>(&mut self, fate: &impl Fn(usize) -> Fate<'a>) -> Result<Option<Vec<u8>>, ReadError> {
        if self.events_end.is_some() {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(self.text.len() + PIECE_BYTES / 4);
        if self.offset == 0 && self.event_count == 0 && !self.skips_head {
            out.extend_from_slice(&self.text[..self.at]);
        }
        loop {
            match self.events_in_text(fate, &mut out) {
                Ok(()) => return Ok(Some(out)),
                Err(Broken::EndOfInput) if !self.source_is_read && self.text.len() < MOST_BYTES_OF_PIECE => {
                    self.read_on()?;
                    if !out.is_empty() {
                        return Ok(Some(out));
                    }
                }
                Err(_) => return Err(self.not_a_trace()),
            }
        }
    }

    /// The next piece of the text after the events; `None` at the end of the file. This text begins with the bracket
    /// that closes the list of events.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`]: the file cannot be read.
    pub fn rest(&mut self) -> Result<Option<Vec<u8>>, ReadError> {
        if self.at == self.text.len() && !self.source_is_read {
            self.read_on()?;
        }
        let piece = self.text.split_off(self.at);
        Ok((!piece.is_empty()).then_some(piece))
    }

    /// Copy the events that are completely in memory; fails if the text ends before the bracket that closes the list.
    fn events_in_text<'a>(
        &mut self,
        fate: &impl Fn(usize) -> Fate<'a>,
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let mut cursor = Cursor::new(&self.text, self.at);
        loop {
            cursor.skip_space();
            match cursor.peek() {
                b',' => cursor.at += 1,
                b']' => {
                    self.at = cursor.at;
                    self.events_end = Some(self.offset + cursor.at as u64 + 1);
                    return Ok(());
                }
                _ => {
                    let begin = cursor.at;
                    read_entries(&mut cursor, &mut self.entries)?;
                    let event = Event { text: &self.text, span: begin..cursor.at, entries: &self.entries };
                    let fate = fate(self.event_count);
                    let is_kept = matches!(fate, Fate::Kept);
                    if !fate.leaves_out(&event) {
                        out.extend_from_slice(match (self.follows_kept && is_kept, self.holds_event) {
                            (true, _) => &self.text[self.at..begin],
                            (false, true) => b",\n",
                            (false, false) => b"\n",
                        });
                        event.write(fate, out);
                        self.holds_event = true;
                    }
                    self.follows_kept = is_kept;
                    self.event_count += 1;
                    self.at = cursor.at;
                }
            }
        }
    }

    /// Drop the copied text and read another piece.
    fn read_on(&mut self) -> Result<(), ReadError> {
        self.text.drain(..self.at);
        self.offset += self.at as u64;
        self.at = 0;
        let wanted = PIECE_BYTES.max(self.text.len());
        let count = self
            .source
            .append(&mut self.text, wanted)
            .map_err(|source| ReadError::Io { path: self.path.clone(), source })?;
        self.source_is_read = count < wanted;
        Ok(())
    }

    fn not_a_trace(&self) -> ReadError {
        let reason = format!("expected an event at byte {} of its text", self.offset + self.at as u64);
        ReadError::NotATrace { path: self.path.clone(), reason }
    }
}

/// Move the cursor past an object, and record the object's keys and values.
pub(crate) fn read_entries(cursor: &mut Cursor<'_>, entries: &mut Vec<Entry>) -> Result<(), Broken> {
    entries.clear();
    cursor.expect(b'{')?;
    loop {
        cursor.skip_space();
        match cursor.peek() {
            b',' => cursor.at += 1,
            b'}' => {
                cursor.at += 1;
                return Ok(());
            }
            _ => {
                let begin = cursor.at;
                let length = cursor.key()?.len() + 2;
                let value = cursor.at;
                cursor.value()?;
                entries.push(Entry { key: begin..begin + length, value: value..cursor.at });
            }
        }
    }
}

/// The positions of an event and its entries in the text.
pub(crate) struct Event<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) span: Range<usize>,
    pub(crate) entries: &'a [Entry],
}

impl Event<'_> {
    /// Write the event, changed according to `fate`.
    fn write(&self, fate: Fate<'_>, out: &mut Vec<u8>) {
        match fate {
            Fate::LeftOut => {}
            Fate::Placed(placing) => placing.write(self, out),
            Fate::Marked(added) => self.write_marked(added, out),
            Fate::Numbered(number) if self.is_complete() => self.write_numbered(number, out),
            Fate::Kept | Fate::Numbered(_) => out.extend_from_slice(&self.text[self.span.clone()]),
        }
    }

    fn is_complete(&self) -> bool {
        self.value(b"\"ph\"") == Some(b"\"X\"")
    }

    /// The value of this key; if the key is repeated, its last value.
    pub(crate) fn value(&self, key: &[u8]) -> Option<&[u8]> {
        self.last(key).map(|entry| &self.text[entry.value.clone()])
    }

    /// The entry with this key; if the key is repeated, its last entry.
    fn last(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| &self.text[entry.key.clone()] == key)
    }

    fn write_marked(&self, added: &[u8], out: &mut Vec<u8>) {
        let Some(Entry { value, .. }) = self.last(b"\"args\"") else {
            let args = [b"\"args\":{", added, b"}"].concat();
            return self.write_object(self.span.clone(), self.entries.is_empty(), &args, out);
        };
        out.extend_from_slice(&self.text[self.span.start..value.start]);
        if self.text[value.start] == b'{' {
            let is_empty = self.text[value.start + 1..value.end - 1].trim_ascii().is_empty();
            self.write_object(value.clone(), is_empty, added, out);
        } else {
            out.extend_from_slice(&[b"{", added, b"}"].concat());
        }
        out.extend_from_slice(&self.text[value.end..self.span.end]);
    }

    /// Write an object with one more entry.
    fn write_object(&self, span: Range<usize>, is_empty: bool, added: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(self.text[span.start..span.end - 1].trim_ascii_end());
        out.extend_from_slice(if is_empty { b"" } else { b"," });
        out.extend_from_slice(added);
        out.push(b'}');
    }

    /// Write the event without spaces between its entries.
    fn write_numbered(&self, number: u32, out: &mut Vec<u8>) {
        let mut separator = b'{';
        for Entry { key, value } in self.entries {
            let (key, value) = (&self.text[key.clone()], &self.text[value.clone()]);
            if key == b"\"args\"" {
                continue;
            }
            out.push(separator);
            out.extend_from_slice(key);
            out.push(b':');
            match key {
                b"\"name\"" => out.extend_from_slice(format!("\"{number}\"").as_bytes()),
                _ => out.extend_from_slice(value),
            }
            separator = b',';
        }
        out.extend_from_slice(b",\"args\":{}}");
    }
}
