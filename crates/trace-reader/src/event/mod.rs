//! One chunk of events to rows: this file reads the JSON of an event, [`finish`] makes rows of it.

mod finish;
mod layout;

use crate::args::{Args, Target, GRID_TEXT, OF_METADATA, ON_DEVICE, ON_HOST};
use crate::coerce;
use crate::columns::{Rows, Values};
use crate::health::{Fault, Health, Lost};
use crate::interner::ChunkInterner;
use crate::json::{as_it_stands, decoded, expect_json, Blemishes, Broken, Cursor, Quotes, Raw, Shape, Unfit};
use crate::kind::Kind;
use crate::scan;
use crate::schema::Table;
use crate::tracks::{ChunkTracks, Track};
use layout::{Layout, Member};

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
    pub(crate) begin: Begin,
    pub(crate) end: End,
}

/// Where a chunk begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Behind the bracket that opens the list of events.
    OfList,
    /// Behind a comma.
    OfEvent,
    /// Anywhere: nothing is known.
    Anywhere,
}

/// Where a chunk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In the middle of the file; an event may go on behind it.
    Open,
    /// In the middle of an event that is too long to be read.
    OfPatience,
    /// At the end of the file.
    OfFile,
}

/// What may come next between the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// An event, or the end of the list.
    EventOrEnd,
    /// An event: a comma was read.
    Event,
    /// A comma or the end of the list: an event was read.
    CommaOrEnd,
    /// Anything: what came before is not known.
    Anything,
}

impl Begin {
    fn next(self) -> Next {
        match self {
            Self::OfList => Next::EventOrEnd,
            Self::OfEvent => Next::Event,
            Self::Anywhere => Next::Anything,
        }
    }
}

/// A finding in the event being read: what, where, and what is lost by it.
#[derive(Clone, Copy, Debug)]
struct Remark {
    fault: Fault,
    at: usize,
    lost: Lost,
}

/// How many times its size may be read in vain in a chunk before the rest of it is given up. Each event that has no end
/// is read to the end of the chunk before that shows: without a limit, a file of such events takes quadratic time.
const MOST_READ_IN_VAIN: usize = 16;

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
    /// Whether args were read.
    has_read_args: bool,
}

impl Fields<'_> {
    fn say_how_to_read_args(&self) -> bool {
        self.phase != 0 && (self.category.is_some() || matches!(self.phase, b'M' | b'C'))
    }

    fn rows_of_args(&self) -> RowsOfArgs {
        match (self.phase, self.kind.is_on_device()) {
            (b'M', _) => RowsOfArgs::Metadata,
            (_, true) => RowsOfArgs::Device,
            (_, false) => RowsOfArgs::Host,
        }
    }

    /// Whether its numeric args are samples, of which an event may hold any number.
    fn holds_samples(&self) -> bool {
        self.phase == b'C' || (self.kind == Kind::ProfilerRange && self.is_row_of_events())
    }

    /// Whether it becomes a row of `events`, so that columns of that table can take args.
    fn is_row_of_events(&self) -> bool {
        matches!(self.phase, 0 | b'X' | b'i' | b'I' | b'R' | b'n')
    }
}

/// The rows that args belong to, on which it depends what they mean.
#[derive(Clone, Copy, Debug)]
enum RowsOfArgs {
    Host,
    Device,
    Metadata,
}

impl RowsOfArgs {
    fn args(self) -> &'static Args {
        match self {
            Self::Host => &ON_HOST,
            Self::Device => &ON_DEVICE,
            Self::Metadata => &OF_METADATA,
        }
    }
}

/// What a key of an event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Phase,
    Category,
    Name,
    Process,
    Thread,
    Time,
    Duration,
    Id,
    /// What is known not to matter.
    Passed,
    Args,
    Unknown,
}

impl Field {
    fn of(key: &[u8]) -> Self {
        match key {
            b"ph" => Self::Phase,
            b"cat" => Self::Category,
            b"name" => Self::Name,
            b"pid" => Self::Process,
            b"tid" => Self::Thread,
            b"ts" => Self::Time,
            b"dur" => Self::Duration,
            b"id" => Self::Id,
            b"s" | b"bp" => Self::Passed,
            b"args" => Self::Args,
            _ => Self::Unknown,
        }
    }
}

/// What a member of an event, or of its args, means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Field(Field),
    Arg(Option<Target>),
    /// The end of the object.
    End,
}

impl Meaning {
    fn of_field(key: &[u8]) -> Self {
        Self::Field(Field::of(meant(key)))
    }

    /// Whether its values are few and short, and tell which other members there are.
    fn is_telling(self) -> bool {
        matches!(self, Self::Field(Field::Phase | Field::Category))
    }
}

/// Why an event cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unread {
    Broken(Broken),
    /// A key came again that says how to read the args, which are read already: they have to be read last.
    ArgsLast,
}

impl From<Broken> for Unread {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    layout: Layout<'a, Meaning>,
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
    notes: Vec<Remark>,
    /// Bytes that may still be read in vain.
    patience: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], place: Place) -> Self {
        Self {
            cursor: Cursor::new(bytes, 0),
            layout: Layout::new(Meaning::End),
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
            patience: bytes.len().saturating_mul(MOST_READ_IN_VAIN).saturating_add(1 << 16),
        }
    }

    fn all_events(&mut self) -> Outcome {
        let mut next = self.place.begin.next();
        loop {
            self.cursor.skip_space();
            let at = self.cursor.at;
            match self.cursor.peek() {
                b'{' => {
                    if next == Next::CommaOrEnd {
                        self.remark_now(Fault::MissingComma, at);
                    }
                    match self.event_or_repair() {
                        Ok(follows) => next = follows,
                        Err(outcome) => return outcome,
                    }
                }
                b',' => {
                    if matches!(next, Next::Event | Next::EventOrEnd) {
                        self.remark_now(Fault::StrayComma, at);
                    }
                    next = Next::Event;
                    self.cursor.at += 1;
                }
                b']' => {
                    if next == Next::Event {
                        self.remark_now(Fault::StrayComma, at);
                    }
                    self.cursor.at += 1;
                    if !self.goes_on_with_event() {
                        return Outcome::ArrayEnd(at + 1);
                    }
                    self.remark_now(Fault::StrayBracket, at);
                    next = Next::Anything;
                }
                _ if self.cursor.is_at_end() => return Outcome::AllRead,
                0 => self.zeros(),
                _ => match self.other_element(next) {
                    Ok(follows) => next = follows,
                    Err(outcome) => return outcome,
                },
            }
        }
    }

    /// Whether an event follows the bracket before the cursor, so that it does not close the list.
    fn goes_on_with_event(&self) -> bool {
        let mut ahead = Cursor::new(self.cursor.bytes, self.cursor.at);
        ahead.skip_space();
        if ahead.peek() == b',' {
            ahead.at += 1;
            ahead.skip_space();
        }
        scan::is_event(ahead.bytes, ahead.at)
    }

    /// Pass over zero bytes.
    fn zeros(&mut self) {
        let (bytes, at) = (self.cursor.bytes, self.cursor.at);
        let end = bytes[at..].iter().position(|&byte| byte != 0).map_or(bytes.len(), |length| at + length);
        self.cursor.at = end;
        self.remark_loss(Fault::ZeroBytes, at, Lost::bytes((end - at) as u64));
        self.commit_notes();
    }

    /// Skip an element of the list that is not an object, or text that is not an element.
    fn other_element(&mut self, next: Next) -> Result<Next, Outcome> {
        let at = self.cursor.at;
        self.start = at;
        let value = if self.patience > 0 { self.cursor.value() } else { Err(Broken::Syntax) };
        match value {
            Err(Broken::EndOfInput) if self.place.end == End::Open => return Err(Outcome::Cut(at)),
            Err(broken) => self.lose_patience(broken),
            Ok(_) => {}
        }
        let behind = self.cursor.at;
        self.cursor.skip_space();
        let is_element = next != Next::CommaOrEnd && matches!(self.cursor.peek(), b',' | b']');
        let text = self.cursor.bytes;
        if value.is_ok() && is_element {
            self.remark_loss(Fault::NotAnEvent, at, Lost::event(&text[at..behind]));
            self.commit_notes();
            self.position += 1;
            return Ok(Next::CommaOrEnd);
        }
        self.cursor.at = at;
        self.pass_over(Fault::Garbage, at, scan::next_event(text, at));
        Ok(Next::Anything)
    }

    /// Leave out the text from `from` to `to`, or to the end of the chunk.
    fn pass_over(&mut self, fault: Fault, from: usize, to: Option<usize>) {
        self.cursor.at = to.unwrap_or(self.cursor.bytes.len());
        self.remark_loss(fault, from, Lost::text(&self.cursor.bytes[from..self.cursor.at]));
        self.commit_notes();
    }

    /// Read the event at the cursor, repairing it if need be; an outcome means that the chunk ends here.
    fn event_or_repair(&mut self) -> Result<Next, Outcome> {
        self.start = self.cursor.at;
        match self.event_with(Quotes::Strict) {
            Ok(()) => return Ok(Next::CommaOrEnd),
            Err(Broken::EndOfInput) if self.place.end == End::Open => return Err(Outcome::Cut(self.start)),
            Err(broken) => self.lose_patience(broken),
        }
        for quotes in [Quotes::Guessed, Quotes::GuessedEvenEscaped] {
            match self.event_with(quotes) {
                Ok(()) => {
                    if self.cursor.guessed {
                        self.remark_now(Fault::UnescapedQuote, self.start);
                    }
                    return Ok(Next::CommaOrEnd);
                }
                Err(broken) => self.lose_patience(broken),
            }
        }
        self.leave_out_event();
        Ok(Next::Anything)
    }

    fn leave_out_event(&mut self) {
        let text = self.cursor.bytes;
        let next = scan::next_event(text, self.start + 1).filter(|_| self.patience > 0);
        let fault = match (next, self.place.end) {
            (None, End::OfFile) => Fault::TruncatedJson,
            (None, End::OfPatience) => Fault::OversizedEvent,
            _ => Fault::BrokenEvent,
        };
        self.cursor.at = next.unwrap_or(text.len());
        self.remark_loss(fault, self.start, Lost::event(&text[self.start..self.cursor.at]));
        self.commit_notes();
        self.position += 1;
    }

    fn lose_patience(&mut self, broken: Broken) {
        let end = if broken == Broken::EndOfInput { self.cursor.bytes.len() } else { self.cursor.at };
        self.patience = self.patience.saturating_sub(end.saturating_sub(self.start));
    }

    /// Read the event at `start` and keep its rows, or leave no trace of it.
    fn event_with(&mut self, quotes: Quotes) -> Result<(), Broken> {
        self.cursor.at = self.start;
        self.cursor.quotes = quotes;
        self.cursor.guessed = false;
        self.layout.begin();
        if quotes != Quotes::Strict {
            self.layout.lose();
        }
        let mut fields = Fields::default();
        let read = self.event(&mut fields);
        self.cursor.quotes = Quotes::Strict;
        match read {
            Ok(()) => {
                if let Err(fault) = self.finish(&fields) {
                    if quotes != Quotes::Strict {
                        // A guess that leads to an event without a time was no good guess.
                        self.forget_event();
                        return Err(Broken::Syntax);
                    }
                    let lost = Lost::event(&self.cursor.bytes[self.start..self.cursor.at]);
                    self.remark_loss(fault, self.start, lost);
                    self.roll_back();
                }
                self.position += 1;
                if !self.notes.is_empty() {
                    self.commit_notes();
                }
                Ok(())
            }
            Err(broken) => {
                self.forget_event();
                Err(broken)
            }
        }
    }

    #[inline]
    fn event(&mut self, fields: &mut Fields<'a>) -> Result<(), Broken> {
        let at = self.cursor.at;
        match self.fields(fields) {
            Ok(()) => {}
            Err(Unread::Broken(broken)) => return Err(broken),
            Err(Unread::ArgsLast) => {
                self.forget_event();
                self.cursor.at = at;
                *fields = self.fields_before_args()?;
            }
        }
        if let Some(args) = fields.args_later {
            let end = std::mem::replace(&mut self.cursor.at, args);
            self.read_args(fields)?;
            self.cursor.at = end;
        }
        Ok(())
    }

    #[inline]
    fn fields(&mut self, fields: &mut Fields<'a>) -> Result<(), Unread> {
        let mut is_first = true;
        loop {
            self.member(is_first, Meaning::of_field)?;
            let Meaning::Field(field) = self.layout.member().meaning else { return Ok(()) };
            self.field(field, fields)?;
            is_first = false;
        }
    }

    /// Read the fields of an event that has some of them twice: the last of each counts, and the args come last.
    #[cold]
    fn fields_before_args(&mut self) -> Result<Fields<'a>, Broken> {
        let mut fields = Fields::default();
        let mut is_first = true;
        self.layout.lose();
        loop {
            self.member(is_first, Meaning::of_field)?;
            let Meaning::Field(field) = self.layout.member().meaning else { return Ok(fields) };
            is_first = false;
            if field == Field::Args && self.cursor.peek() == b'{' {
                fields.args_later = Some(self.cursor.at);
                self.pass_args()?;
                continue;
            }
            self.field(field, &mut fields).map_err(|unread| match unread {
                Unread::Broken(broken) => broken,
                Unread::ArgsLast => Broken::Syntax, // there are none yet
            })?;
        }
    }

    /// The next member of the object at the cursor, which is then at its value or behind the object.
    #[inline]
    fn member(&mut self, is_first: bool, meaning: impl FnOnce(&[u8]) -> Meaning) -> Result<(), Broken> {
        let ahead = self.cursor.bytes.get(self.cursor.at..).unwrap_or_default();
        let Some(length) = self.layout.step(ahead) else {
            return self.unexpected_member(is_first, meaning);
        };
        self.cursor.at += length;
        let member = self.layout.member();
        if member.meaning != Meaning::End && member.value.is_none() {
            self.cursor.skip_space();
        }
        Ok(())
    }

    /// Read the next member, and remember how it is written.
    #[cold]
    fn unexpected_member(
        &mut self,
        is_first: bool,
        meaning: impl FnOnce(&[u8]) -> Meaning,
    ) -> Result<(), Broken> {
        let (from, note_count) = (self.cursor.at, self.notes.len());
        let key = self.key(is_first)?;
        let meaning = key.map_or(Meaning::End, meaning);
        let is_told =
            meaning.is_telling() && self.cursor.quotes == Quotes::Strict && self.cursor.peek() == b'"';
        let value = if is_told { Some(self.cursor.value()?) } else { None };
        let member = Member { key: key.unwrap_or_default(), meaning, value };
        if self.notes.len() != note_count {
            self.layout.lose();
        }
        self.layout.learn(&self.cursor.bytes[from..self.cursor.at], member);
        Ok(())
    }

    /// The next key of the object at the cursor, which is then at its value; nothing at the end of the object.
    #[inline]
    fn key(&mut self, is_first: bool) -> Result<Option<&'a [u8]>, Broken> {
        let mut after_comma = false;
        if is_first {
            self.cursor.expect(b'{')?;
        } else {
            self.cursor.skip_space();
            after_comma = self.cursor.peek() == b',';
            if after_comma {
                self.cursor.at += 1;
            } else if self.cursor.peek() != b'}' {
                return Err(self.cursor.unexpected());
            }
        }
        loop {
            self.cursor.skip_space();
            match self.cursor.peek() {
                b'"' => return self.cursor.key().map(Some),
                b'}' => {
                    if after_comma {
                        self.note(Fault::StrayComma, self.cursor.at);
                    }
                    self.cursor.at += 1;
                    return Ok(None);
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
    fn field(&mut self, field: Field, fields: &mut Fields<'a>) -> Result<(), Unread> {
        if field == Field::Args && self.cursor.peek() == b'{' {
            return self.args(fields);
        }
        if fields.has_read_args && matches!(field, Field::Phase | Field::Category | Field::Process) {
            return Err(Unread::ArgsLast);
        }
        let value = match self.layout.member().value {
            Some(value) => value,
            None => self.value()?,
        };
        match field {
            Field::Phase => fields.phase = phase(value),
            Field::Category => self.category(value, fields),
            Field::Name => fields.name = Some(value),
            Field::Process => {
                fields.pid = Some(value);
                if fields.category.is_none() {
                    fields.kind = legacy_kind(fields.pid);
                }
            }
            Field::Thread => fields.tid = Some(value),
            Field::Time => fields.time = Some(value),
            Field::Duration => fields.duration = Some(value),
            Field::Id => fields.id = Some(value),
            Field::Passed if value.is_text() => self.check_text(value),
            Field::Passed | Field::Args | Field::Unknown => self.keep(meant(self.layout.member().key), value),
        }
        Ok(())
    }

    #[inline]
    fn category(&mut self, value: Raw<'a>, fields: &mut Fields<'a>) {
        let Some(raw) = value.scalar().filter(|_| !value.is_null()) else {
            if value.is_composite() {
                self.keep(b"cat", value);
            }
            fields.category = None;
            fields.kind = legacy_kind(fields.pid);
            return;
        };
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

    fn args(&mut self, fields: &mut Fields<'a>) -> Result<(), Unread> {
        if fields.has_read_args {
            return Err(Unread::ArgsLast);
        }
        if fields.say_how_to_read_args() && fields.args_later.is_none() {
            fields.has_read_args = true;
            return Ok(self.read_args(fields)?);
        }
        fields.args_later = Some(self.cursor.at);
        Ok(self.pass_args()?)
    }

    fn pass_args(&mut self) -> Result<(), Broken> {
        if self.cursor.quotes == Quotes::Strict {
            self.cursor.value().map(|_| ())
        } else {
            let mut is_first = true;
            while self.key(is_first)?.is_some() {
                self.cursor.value()?;
                is_first = false;
            }
            Ok(())
        }
    }

    fn read_args(&mut self, fields: &Fields<'a>) -> Result<(), Broken> {
        let rows = fields.rows_of_args();
        let samples = fields.holds_samples();
        let is_row = fields.is_row_of_events();
        self.layout.enter(rows as usize);
        let mut is_first = true;
        loop {
            self.member(is_first, |key| Meaning::Arg(rows.args().target(key)))?;
            let Meaning::Arg(target) = self.layout.member().meaning else { return Ok(()) };
            is_first = false;
            let value = self.value()?;
            if value.is_null() {
                continue;
            }
            match target {
                _ if samples && self.sample(value) => {}
                Some(target) if is_row || !target.is_of_events() => {
                    if !self.put(target, value) {
                        self.note(Fault::UnexpectedValue, self.start);
                        self.keep(self.layout.member().key, value);
                    }
                }
                _ => self.keep(self.layout.member().key, value),
            }
        }
    }

    fn sample(&mut self, value: Raw<'a>) -> bool {
        let number = coerce::float(value).filter(|_| value.shape == Shape::Number);
        let Some(number) = number else { return false };
        let key = self.intern(text(self.layout.member().key));
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
    fn put_integer(&mut self, table: Table, column: u8, number: Option<i64>) -> bool {
        let Some(number) = number else { return false };
        self.touch(table);
        let (values, row) = self.tables[table as usize].column(column);
        if let Values::Int64(values) = values {
            values.set(row, number);
        }
        true
    }

    fn put_column(&mut self, table: Table, column: u8, value: Raw<'a>) -> bool {
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
        let (json, blemishes) = json_string(key);
        self.extra.push_str(&json);
        self.note_blemishes(blemishes, key);
        self.extra.push(':');
        let (json, blemishes) = json_value(value);
        self.extra.push_str(&json);
        self.note_blemishes(blemishes, value.bytes);
    }

    /// Note what is wrong with a text that is not kept.
    #[inline]
    fn check_text(&mut self, value: Raw<'a>) {
        if !matches!(value.bytes, [b'a'..=b'z']) {
            let (_, blemishes) = decoded(value.bytes);
            self.note_blemishes(blemishes, value.bytes);
        }
    }

    #[inline]
    fn touch(&mut self, table: Table) {
        self.touched |= 1 << table as u32;
    }

    #[inline]
    fn intern(&mut self, text: Raw<'a>) -> u32 {
        let (id, blemishes) = self.strings.intern(text);
        if blemishes.any() {
            self.note_blemishes(blemishes, text.bytes);
        }
        id
    }

    /// Note what is wrong with a text; one that is no JSON may have swallowed other events.
    #[cold]
    fn note_blemishes(&mut self, blemishes: Blemishes, text: &[u8]) {
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

    /// Remember a finding in the event being read; it counts only if this reading of the event is the one kept.
    #[cold]
    fn note(&mut self, fault: Fault, at: usize) {
        self.remark_loss(fault, at, Lost::default());
    }

    #[cold]
    fn remark_loss(&mut self, fault: Fault, at: usize, lost: Lost) {
        self.notes.push(Remark { fault, at, lost });
    }

    /// Count a finding between the events.
    #[cold]
    fn remark_now(&mut self, fault: Fault, at: usize) {
        self.note(fault, at);
        self.commit_notes();
    }

    fn commit_notes(&mut self) {
        let bytes = self.cursor.bytes;
        for Remark { fault, at, lost } in self.notes.drain(..) {
            let text = &bytes[at.min(bytes.len())..];
            self.health.add_loss(fault, self.place.offset + at as u64, text, lost);
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

    /// Forget what was read of the event so far.
    #[cold]
    fn forget_event(&mut self) {
        self.roll_back();
        self.notes.clear();
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
#[inline]
fn meant(key: &[u8]) -> &[u8] {
    if key.contains(&b'\\') {
        unescaped_field(key)
    } else {
        key
    }
}

#[cold]
fn unescaped_field(key: &[u8]) -> &[u8] {
    let meant = decoded(key).0;
    FIELDS.into_iter().find(|field| *field == meant.as_bytes()).unwrap_or(key)
}

/// The kind of an event without a category.
fn legacy_kind(process: Option<Raw<'_>>) -> Kind {
    process
        .filter(|process| process.is_text())
        .map_or(Kind::Other, |process| Kind::of_legacy_process(process.bytes))
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

fn json_string(raw: &[u8]) -> (String, Blemishes) {
    let (text, blemishes) = decoded(raw);
    (serde_json::Value::from(text.as_ref()).to_string(), blemishes)
}

/// The value as valid JSON; what is none becomes a string of its text.
fn json_value(value: Raw<'_>) -> (String, Blemishes) {
    if value.is_text() {
        return json_string(value.bytes);
    }
    let text = std::str::from_utf8(value.bytes);
    let unfit = expect_json(value.bytes).err();
    if let (Ok(text), None) = (text, unfit) {
        return (text.to_owned(), Blemishes::default());
    }
    let (text, blemishes) = as_it_stands(value.bytes);
    let blemishes = Blemishes {
        control_character: false,
        // A bare word is noted where it is read.
        broken_value: unfit == Some(Unfit::Broken) && value.is_composite(),
        deep_value: unfit == Some(Unfit::Deep),
        ..blemishes
    };
    (serde_json::Value::from(text.as_ref()).to_string(), blemishes)
}
