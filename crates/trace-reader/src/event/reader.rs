//! The state of reading a chunk: the event being read, its open rows, and its findings.

use super::fields::Meaning;
use super::layout::Layout;
use super::ChunkInfo;
use super::Edge;
use crate::event::kind::Kind;
use crate::health::{Fault, Health, Lost};
use crate::json::{decoded, Blemishes, Cursor, Raw};
use crate::tables::columns::{Rows, Values};
use crate::tables::interner::ChunkInterner;
use crate::tables::schema::Table;
use crate::tables::tracks::ChunkTracks;

/// A finding in the current event: its kind, its position, and the lost text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remark {
    pub(super) fault: Fault,
    pub(super) at: usize,
    pub(super) lost: Lost,
}

/// Limit on the bytes spent on failed attempts to read events, as a multiple of the chunk's size; beyond it, the rest
/// of the chunk is skipped. If an event has no end, the attempt to read it goes on to the end of the chunk; without
/// this limit, a file full of such events would take quadratic time.
const MOST_FAILED_READS: usize = 16;

pub(super) struct Reader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) layout: Layout<'a, Meaning>,
    pub(super) chunk: ChunkInfo,
    pub(super) strings: ChunkInterner<'a>,
    pub(super) tracks: ChunkTracks<'a>,
    pub(super) tables: Vec<Rows>,
    pub(super) edges: Vec<Edge>,
    pub(super) health: Health,
    /// Number of events in the chunk before the current event.
    pub(super) position: u32,
    /// Byte offset of the current event in the chunk.
    pub(super) start: usize,
    /// Tables in which the current event has an open row, one bit per table.
    pub(super) touched: u32,
    /// JSON of the current event's args that have no column.
    pub(super) extra: String,
    /// Samples of the current event.
    pub(super) samples: Vec<(u32, f64)>,
    /// The category of the previous event, which the next event usually shares.
    pub(super) last_category: (&'a [u8], Kind),
    /// Findings in the current event so far.
    pub(super) notes: Vec<Remark>,
    /// Number of bytes that may still be spent on failed attempts to read events of this chunk.
    pub(super) patience: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], chunk: ChunkInfo) -> Self {
        Self {
            cursor: Cursor::new(bytes, 0),
            layout: Layout::new(Meaning::End),
            chunk,
            strings: ChunkInterner::default(),
            tracks: ChunkTracks::default(),
            tables: Table::ALL.iter().map(|&table| Rows::new(table)).collect(),
            edges: Vec::new(),
            health: Health::default(),
            position: 0,
            start: 0,
            touched: 0,
            extra: String::new(),
            samples: Vec::new(),
            last_category: (b"", Kind::Other),
            notes: Vec::new(),
            patience: bytes.len().saturating_mul(MOST_FAILED_READS).saturating_add(1 << 16),
        }
    }

    /// Decode a text only to note its faults; the text itself is not kept.
    #[inline]
    pub(super) fn check_text(&mut self, value: Raw<'a>) {
        if !matches!(value.bytes, [b'a'..=b'z']) {
            let (_, blemishes) = decoded(value.bytes);
            self.note_blemishes(blemishes, value.bytes);
        }
    }

    #[inline]
    pub(super) fn touch(&mut self, table: Table) {
        self.touched |= 1 << table as u32;
    }

    #[inline]
    pub(super) fn intern(&mut self, text: Raw<'a>) -> u32 {
        let (id, blemishes) = self.strings.intern(text);
        if blemishes.any() {
            self.note_blemishes(blemishes, text.bytes);
        }
        id
    }

    /// Record the faults in a text, such as invalid UTF-8. Events inside a text that is not valid JSON count as lost.
    #[cold]
    pub(super) fn note_blemishes(&mut self, blemishes: Blemishes, text: &[u8]) {
        for (seen, fault) in [
            (blemishes.bad_escape, Fault::BadEscape),
            (blemishes.invalid_utf8, Fault::InvalidUtf8),
            (blemishes.control_character, Fault::ControlCharacter),
            (blemishes.broken_value, Fault::BrokenValue),
            (blemishes.deep_value, Fault::DeepValue),
        ] {
            if seen {
                let swallowed = if fault == Fault::BrokenValue { Lost::text(text).events } else { 0 };
                self.remark_loss(fault, self.start, Lost { events: swallowed, bytes: 0 });
            }
        }
    }

    /// Record a fault of the current event. It is reported only if this attempt to read the event is kept.
    #[cold]
    pub(super) fn note(&mut self, fault: Fault, at: usize) {
        self.remark_loss(fault, at, Lost::default());
    }

    #[cold]
    pub(super) fn remark_loss(&mut self, fault: Fault, at: usize, lost: Lost) {
        self.notes.push(Remark { fault, at, lost });
    }

    /// Count a finding at once, so that a later failed attempt to read an event does not discard it.
    #[cold]
    pub(super) fn remark_now(&mut self, fault: Fault, at: usize) {
        self.note(fault, at);
        self.commit_notes();
    }

    pub(super) fn commit_notes(&mut self) {
        let bytes = self.cursor.bytes;
        for Remark { fault, at, lost } in self.notes.drain(..) {
            let text = &bytes[at.min(bytes.len())..];
            self.health.add_loss(fault, self.chunk.offset + at as u64, text, lost);
        }
    }

    /// Keep the rows of the current event, in all tables.
    #[inline]
    pub(super) fn commit(&mut self) {
        if !self.extra.is_empty() {
            self.commit_extra();
        }
        while self.touched != 0 {
            let table = self.touched.trailing_zeros() as usize;
            self.touched &= self.touched - 1;
            self.tables[table].commit(self.position);
        }
    }

    #[cold]
    pub(super) fn commit_extra(&mut self) {
        self.extra.push('}');
        let json = std::mem::take(&mut self.extra);
        if let (Values::InPlace(values), _) = self.tables[Table::ExtraArgs as usize].column(1) {
            values.push(json);
        }
        self.touch(Table::ExtraArgs);
    }

    /// Discard everything read from the current event.
    #[cold]
    pub(super) fn forget_event(&mut self) {
        self.roll_back();
        self.notes.clear();
    }

    #[cold]
    pub(super) fn roll_back(&mut self) {
        self.tables.iter_mut().for_each(Rows::roll_back);
        self.touched = 0;
        self.extra.clear();
        self.samples.clear();
    }
}
