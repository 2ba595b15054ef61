//! One chunk of events to rows: this file reads the JSON of an event, [`finish`] makes rows of it.

mod finish;

use crate::args::{Args, Target, GRID_TEXT, OF_METADATA, ON_DEVICE, ON_HOST};
use crate::coerce;
use crate::columns::{Rows, Values};
use crate::health::{Fault, Health};
use crate::interner::ChunkInterner;
use crate::json::{decoded, Blemishes, Broken, Cursor, Quotes, Raw, Shape};
use crate::kind::Kind;
use crate::scan;
use crate::schema::Table;
use crate::tracks::{ChunkTracks, Track};

/// How the reading of a chunk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything was read.
    AllRead,
    /// The array of events ended; what follows begins at this position.
    ArrayEnd(usize),
    /// The event at this position does not end within the chunk.
    Cut(usize),
}

/// What a chunk became; numbers of texts, tracks and events count within the chunk.
#[derive(Debug)]
pub(crate) struct ChunkRows {
    pub(crate) tables: Vec<Rows>,
    pub(crate) texts: Vec<String>,
    pub(crate) tracks: Vec<Track>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) event_count: u32,
    pub(crate) health: Health,
    pub(crate) outcome: Outcome,
}

/// One end of an event that is written as a beginning and an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) is_begin: bool,
    /// Ends of asynchronous events meet by id, those of others by track.
    pub(crate) id: Option<u32>,
    pub(crate) position: u32,
    pub(crate) offset: u64,
    pub(crate) at_ns: i64,
    pub(crate) kind: Kind,
    pub(crate) category: Option<u32>,
    pub(crate) name: u32,
    pub(crate) track: u32,
}

/// Where a chunk lies, and what is known about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Offset of its first byte in the uncompressed text.
    pub(crate) offset: u64,
    /// Added to every time.
    pub(crate) base_ns: i64,
    /// Whether nothing follows.
    pub(crate) is_last: bool,
}

/// Read the events of a chunk that begins between two events.
pub(crate) fn read_chunk(bytes: &[u8], place: Place) -> ChunkRows {
    let mut reader = Reader::new(bytes, place);
    let outcome = reader.all_events();
    ChunkRows {
        tables: reader.tables,
        texts: reader.strings.into_texts(),
        tracks: reader.tracks.into_tracks(),
        edges: reader.edges,
        event_count: reader.position,
        health: reader.health,
        outcome,
    }
}

/// Fields of the event being read.
#[derive(Clone, Copy, Debug, Default)]
struct Fields<'a> {
    phase: u8,
    category: Option<Raw<'a>>,
    kind: Kind,
    name: Option<Raw<'a>>,
    pid: Option<Raw<'a>>,
    tid: Option<Raw<'a>>,
    time: Option<Raw<'a>>,
    duration: Option<Raw<'a>>,
    id: Option<Raw<'a>>,
    /// Where the args are, if they came before what says how to read them.
    args_later: Option<usize>,
}

impl Fields<'_> {
    fn say_how_to_read_args(&self) -> bool {
        self.phase != 0 && (self.category.is_some() || matches!(self.phase, b'M' | b'C'))
    }

    fn args(&self) -> &'static Args {
        match (self.phase, self.kind.is_on_device()) {
            (b'M', _) => &OF_METADATA,
            (_, true) => &ON_DEVICE,
            (_, false) => &ON_HOST,
        }
    }

    /// Whether its numeric args are samples, of which an event may hold any number.
    fn holds_samples(&self) -> bool {
        self.phase == b'C' || self.kind == Kind::ProfilerRange
    }
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    place: Place,
    strings: ChunkInterner<'a>,
    tracks: ChunkTracks<'a>,
    tables: Vec<Rows>,
    edges: Vec<Edge>,
    health: Health,
    /// Position in the chunk of the event being read.
    position: u32,
    /// Offset of that event.
    start: usize,
    /// Tables in which it has an open row, a bit each.
    touched: u32,
    /// JSON of its args that no column holds.
    extra: String,
    /// Its samples.
    samples: Vec<(u32, f64)>,
    /// The category of the event before, which is most often that of the next.
    last_category: (&'a [u8], Kind),
    /// What was found in it so far.
    notes: Vec<(Fault, usize)>,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], place: Place) -> Self {
        Self {
            cursor: Cursor::new(bytes, 0),
            place,
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
        }
    }

    fn all_events(&mut self) -> Outcome {
        let mut after_comma = false;
        loop {
            self.cursor.skip_space();
            match self.cursor.peek() {
                b'{' => {
                    if let Some(outcome) = self.event_or_repair() {
                        return outcome;
                    }
                    after_comma = false;
                }
                b',' => {
                    if after_comma {
                        self.note(Fault::StrayComma, self.cursor.at);
                        self.commit_notes();
                    }
                    after_comma = true;
                    self.cursor.at += 1;
                }
                b']' => return Outcome::ArrayEnd(self.cursor.at + 1),
                _ if self.cursor.is_at_end() => return Outcome::AllRead,
                _ => {
                    self.note(Fault::Garbage, self.cursor.at);
                    self.commit_notes();
                    self.go_to_next_event(self.cursor.at);
                }
            }
        }
    }

    /// Read the event at the cursor, repairing it if need be; an outcome means that the chunk ends here.
    fn event_or_repair(&mut self) -> Option<Outcome> {
        self.start = self.cursor.at;
        match self.event_with(Quotes::Strict) {
            Ok(()) => return None,
            Err(Broken::EndOfInput) if !self.place.is_last => return Some(Outcome::Cut(self.start)),
            Err(_) => {}
        }
        for quotes in [Quotes::Guessed, Quotes::GuessedEvenEscaped] {
            if self.event_with(quotes).is_ok() {
                if self.cursor.guessed {
                    self.note(Fault::UnescapedQuote, self.start);
                    self.commit_notes();
                }
                return None;
            }
        }
        let next = scan::next_event(self.cursor.bytes, self.start + 1);
        let truncated = next.is_none() && self.place.is_last;
        self.note(if truncated { Fault::TruncatedJson } else { Fault::BrokenEvent }, self.start);
        self.commit_notes();
        self.position += 1;
        self.cursor.at = next.unwrap_or(self.cursor.bytes.len());
        None
    }

    fn go_to_next_event(&mut self, from: usize) {
        self.cursor.at = scan::next_event(self.cursor.bytes, from).unwrap_or(self.cursor.bytes.len());
    }

    /// Read the event at `start` and keep its rows, or leave no trace of it.
    fn event_with(&mut self, quotes: Quotes) -> Result<(), Broken> {
        self.cursor.at = self.start;
        self.cursor.quotes = quotes;
        self.cursor.guessed = false;
        let read = self.event();
        self.cursor.quotes = Quotes::Strict;
        match read {
            Ok(fields) => {
                if let Err(fault) = self.finish(&fields) {
                    if quotes != Quotes::Strict {
                        // A guess that leads to an event without a time was no good guess.
                        self.roll_back();
                        self.notes.clear();
                        return Err(Broken::Syntax);
                    }
                    self.note(fault, self.start);
                    self.roll_back();
                }
                self.position += 1;
                if !self.notes.is_empty() {
                    self.commit_notes();
                }
                Ok(())
            }
            Err(broken) => {
                self.roll_back();
                self.notes.clear();
                Err(broken)
            }
        }
    }

    fn event(&mut self) -> Result<Fields<'a>, Broken> {
        let mut fields = Fields::default();
        self.members(|reader, key| reader.field(key, &mut fields))?;
        if let Some(args) = fields.args_later {
            let end = std::mem::replace(&mut self.cursor.at, args);
            self.read_args(&fields)?;
            self.cursor.at = end;
        }
        Ok(fields)
    }

    /// Call `member` for each key of the object at the cursor, with the cursor at its value.
    #[inline]
    fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a [u8]) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        self.cursor.expect(b'{')?;
        let mut after_comma = false;
        loop {
            self.cursor.skip_space();
            match self.cursor.peek() {
                b'"' => {
                    let key = self.cursor.key()?;
                    member(self, key)?;
                    self.cursor.skip_space();
                    after_comma = self.cursor.peek() == b',';
                    if after_comma {
                        self.cursor.at += 1;
                    } else if self.cursor.peek() != b'}' {
                        return Err(self.cursor.unexpected());
                    }
                }
                b'}' => {
                    if after_comma {
                        self.note(Fault::StrayComma, self.cursor.at);
                    }
                    self.cursor.at += 1;
                    return Ok(());
                }
                b',' => {
                    self.note(Fault::StrayComma, self.cursor.at);
                    self.cursor.at += 1;
                }
                _ => return Err(self.cursor.unexpected()),
            }
        }
    }

    #[inline]
    fn field(&mut self, key: &'a [u8], fields: &mut Fields<'a>) -> Result<(), Broken> {
        let key = if key.contains(&b'\\') { unescaped_field(key) } else { key };
        if key == b"args" && self.cursor.peek() == b'{' {
            return self.args(fields);
        }
        let value = self.value()?;
        match key {
            b"ph" => fields.phase = phase(value),
            b"cat" => self.category(value, fields),
            b"name" => fields.name = Some(value),
            b"pid" => {
                fields.pid = Some(value);
                if value.is_text() && fields.category.is_none() {
                    fields.kind = Kind::of_legacy_process(value.bytes);
                }
            }
            b"tid" => fields.tid = Some(value),
            b"ts" => fields.time = Some(value),
            b"dur" => fields.duration = Some(value),
            b"id" => fields.id = Some(value),
            b"s" | b"bp" | b"args" => {}
            _ => self.keep(key, value),
        }
        Ok(())
    }

    #[inline]
    fn category(&mut self, value: Raw<'a>, fields: &mut Fields<'a>) {
        let Some(raw) = value.scalar().filter(|_| !value.is_null()) else { return };
        if self.last_category.0 != raw {
            self.last_category = (raw, Kind::of_category(raw));
        }
        fields.kind = self.last_category.1;
        fields.category = Some(value);
    }

    #[inline]
    fn value(&mut self) -> Result<Raw<'a>, Broken> {
        let at = self.cursor.at;
        let value = self.cursor.value()?;
        if value.is_text() {
            if self.cursor.guessed && scan::holds_event(value.bytes) {
                return Err(Broken::Syntax);
            }
        } else if value.is_bare_word() {
            self.note(Fault::BareLiteral, at);
        }
        Ok(value)
    }

    fn args(&mut self, fields: &mut Fields<'a>) -> Result<(), Broken> {
        if fields.say_how_to_read_args() {
            return self.read_args(fields);
        }
        fields.args_later = Some(self.cursor.at);
        if self.cursor.quotes == Quotes::Strict {
            self.cursor.value().map(|_| ())
        } else {
            self.members(|reader, _| reader.cursor.value().map(|_| ()))
        }
    }

    fn read_args(&mut self, fields: &Fields<'a>) -> Result<(), Broken> {
        let targets = fields.args();
        let samples = fields.holds_samples();
        self.members(|reader, key| {
            let value = reader.value()?;
            if value.is_null() {
                return Ok(());
            }
            match targets.target(key).or_else(|| targets.escaped_target(key)) {
                _ if samples && reader.sample(key, value) => {}
                Some(target) => {
                    if !reader.put(target, value) {
                        reader.note(Fault::UnexpectedValue, reader.start);
                        reader.keep(key, value);
                    }
                }
                None => reader.keep(key, value),
            }
            Ok(())
        })
    }

    fn sample(&mut self, key: &'a [u8], value: Raw<'a>) -> bool {
        let number = coerce::float(value).filter(|_| value.shape == Shape::Number);
        let Some(number) = number else { return false };
        let key = self.intern(text(key));
        self.samples.push((key, number));
        true
    }

    /// Put a value where it belongs; false if it does not fit there.
    #[inline]
    fn put(&mut self, target: Target, value: Raw<'a>) -> bool {
        match target {
            Target::Column { table, column } => self.put_column(table, column, value),
            Target::Stream { table, column } => self.put_integer(table, column, coerce::stream(value)),
            Target::Time { table, column } => self.put_integer(table, column, coerce::nanoseconds(value)),
            Target::Triple { table, column } => match coerce::triple(value) {
                Some(numbers) => {
                    (column..).zip(numbers).all(|(at, number)| self.put_integer(table, at, Some(number)))
                }
                None if value.is_text() => self.put(*GRID_TEXT, value),
                None => false,
            },
        }
    }

    #[inline]
    fn put_integer(&mut self, table: Table, column: usize, number: Option<i64>) -> bool {
        let Some(number) = number else { return false };
        self.touch(table);
        let (values, row) = self.tables[table as usize].column(column);
        if let Values::Int64(values) = values {
            values.set(row, number);
        }
        true
    }

    fn put_column(&mut self, table: Table, column: usize, value: Raw<'a>) -> bool {
        let text = match self.tables[table as usize].column(column).0 {
            Values::String(_) => Some(self.intern(value)),
            _ => None,
        };
        let (values, row) = self.tables[table as usize].column(column);
        let fits = match values {
            Values::Int64(values) => coerce::integer(value).map(|number| values.set(row, number)),
            Values::Int32(values) => coerce::integer(value)
                .and_then(|number| number.try_into().ok())
                .map(|number| values.set(row, number)),
            Values::UInt64(values) => coerce::unsigned(value).map(|number| values.set(row, number)),
            Values::Float64(values) => coerce::float(value).map(|number| values.set(row, number)),
            Values::Bool(values) => coerce::boolean(value).map(|number| values.set(row, number)),
            Values::String(values) => text.map(|id| values.set(row, id)),
            Values::UInt8(_) | Values::Track(_) | Values::Event(_) | Values::InPlace(_) => None,
        };
        if fits.is_some() {
            self.touch(table);
        }
        fits.is_some()
    }

    /// Keep what no column holds.
    #[cold]
    fn keep(&mut self, key: &'a [u8], value: Raw<'a>) {
        self.extra.push(if self.extra.is_empty() { '{' } else { ',' });
        self.extra.push_str(&json_string(key));
        self.extra.push(':');
        self.extra.push_str(&json_value(value));
    }

    #[inline]
    fn touch(&mut self, table: Table) {
        self.touched |= 1 << table as u32;
    }

    #[inline]
    fn intern(&mut self, text: Raw<'a>) -> u32 {
        let (id, blemishes) = self.strings.intern(text);
        if blemishes.any() {
            self.note_blemishes(blemishes);
        }
        id
    }

    #[cold]
    fn note_blemishes(&mut self, blemishes: Blemishes) {
        for (seen, fault) in [
            (blemishes.bad_escape, Fault::BadEscape),
            (blemishes.invalid_utf8, Fault::InvalidUtf8),
            (blemishes.control_character, Fault::ControlCharacter),
        ] {
            if seen {
                self.note(fault, self.start);
            }
        }
    }

    /// Remember a finding in the event being read; it counts only if this reading of the event is the one kept.
    #[cold]
    fn note(&mut self, fault: Fault, at: usize) {
        self.notes.push((fault, at));
    }

    fn commit_notes(&mut self) {
        let bytes = self.cursor.bytes;
        for (fault, at) in self.notes.drain(..) {
            self.health.add(fault, self.place.offset + at as u64, &bytes[at.min(bytes.len())..]);
        }
    }

    /// Keep the open rows of all tables.
    #[inline]
    fn commit(&mut self) {
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
    fn commit_extra(&mut self) {
        self.extra.push('}');
        let json = std::mem::take(&mut self.extra);
        if let (Values::InPlace(values), _) = self.tables[Table::ExtraArgs as usize].column(1) {
            values.push(json);
        }
        self.touch(Table::ExtraArgs);
    }

    #[cold]
    fn roll_back(&mut self) {
        self.tables.iter_mut().for_each(Rows::roll_back);
        self.touched = 0;
        self.extra.clear();
        self.samples.clear();
    }
}

/// Fields of an event.
const FIELDS: [&[u8]; 11] =
    [b"ph", b"cat", b"name", b"pid", b"tid", b"ts", b"dur", b"id", b"s", b"bp", b"args"];

/// The field that a key with escapes means, or the key as it is.
#[cold]
fn unescaped_field(key: &[u8]) -> &[u8] {
    let meant = decoded(key).0;
    FIELDS.into_iter().find(|field| *field == meant.as_bytes()).unwrap_or(key)
}

/// The letter of a phase; 0 where there is none, a blank where it is no single letter.
fn phase(value: Raw<'_>) -> u8 {
    match value.bytes {
        [letter] if value.is_text() => *letter,
        _ if value.is_null() => 0,
        _ => b' ',
    }
}

/// A string of our own.
fn text(bytes: &[u8]) -> Raw<'_> {
    Raw { bytes, shape: Shape::Text }
}

fn json_string(raw: &[u8]) -> String {
    serde_json::Value::from(decoded(raw).0.as_ref()).to_string()
}

/// The value as valid JSON; what is none becomes a string of its text.
fn json_value(value: Raw<'_>) -> String {
    if !value.is_text() && serde_json::from_slice::<serde::de::IgnoredAny>(value.bytes).is_ok() {
        return String::from_utf8_lossy(value.bytes).into_owned();
    }
    json_string(value.bytes)
}
