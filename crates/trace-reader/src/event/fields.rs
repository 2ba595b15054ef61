//! The fields of an event, and the meaning of its keys.

use super::args::{Args, Target, OF_METADATA, ON_DEVICE, ON_HOST};
use crate::event::kind::Kind;
use crate::json::{decoded, Raw};

/// Fields of the current event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields<'a> {
    pub(super) phase: u8,
    pub(super) category: Option<Raw<'a>>,
    pub(super) kind: Kind,
    pub(super) name: Option<Raw<'a>>,
    pub(super) pid: Option<Raw<'a>>,
    pub(super) tid: Option<Raw<'a>>,
    pub(super) time: Option<Raw<'a>>,
    pub(super) duration: Option<Raw<'a>>,
    pub(super) id: Option<Raw<'a>>,
    /// The position of the args, if they come before the fields that determine how to read them.
    pub(super) args_later: Option<usize>,
    /// Whether the args were already read.
    pub(super) has_read_args: bool,
}

impl Fields<'_> {
    pub(super) fn determine_args(&self) -> bool {
        self.phase != 0 && (self.category.is_some() || matches!(self.phase, b'M' | b'C'))
    }

    pub(super) fn rows_of_args(&self) -> RowsOfArgs {
        match (self.phase, self.kind.is_on_device()) {
            (b'M', _) => RowsOfArgs::Metadata,
            (_, true) => RowsOfArgs::Device,
            (_, false) => RowsOfArgs::Host,
        }
    }

    /// Whether the event's numeric args are samples of counters; an event may have any number of samples.
    pub(super) fn holds_samples(&self) -> bool {
        self.phase == b'C' || (self.kind == Kind::ProfilerRange && self.is_row_of_events())
    }

    /// Whether the event becomes a row of `events`, so that its args can go into columns of that table.
    pub(super) fn is_row_of_events(&self) -> bool {
        matches!(self.phase, 0 | b'X' | b'i' | b'I' | b'R' | b'n')
    }
}

/// The kind of row that args belong to, which determines their meaning.
#[derive(Clone, Copy, Debug)]
pub(super) enum RowsOfArgs {
    Host,
    Device,
    Metadata,
}

impl RowsOfArgs {
    pub(super) fn args(self) -> &'static Args {
        match self {
            Self::Host => &ON_HOST,
            Self::Device => &ON_DEVICE,
            Self::Metadata => &OF_METADATA,
        }
    }
}

/// The meaning of a key of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Phase,
    Category,
    Name,
    Process,
    Thread,
    Time,
    Duration,
    Id,
    /// A known key that no table needs.
    Passed,
    Args,
    Unknown,
}

impl Field {
    pub(super) fn of(key: &[u8]) -> Self {
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

/// The meaning of a member of an event or of its args.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Field(Field),
    Arg(Option<Target>),
    /// The end of the object.
    End,
}

impl Meaning {
    pub(super) fn of_field(key: &[u8]) -> Self {
        Self::Field(Field::of(meant(key)))
    }

    /// Whether this is an event's phase or category: their values are few and short, and determine which other members
    /// the event has.
    pub(super) fn is_telling(self) -> bool {
        matches!(self, Self::Field(Field::Phase | Field::Category))
    }
}

/// The keys of an event that the reader interprets.
pub(super) const FIELDS: [&[u8]; 11] =
    [b"ph", b"cat", b"name", b"pid", b"tid", b"ts", b"dur", b"id", b"s", b"bp", b"args"];

/// The key with its escapes decoded if this results in one of [`FIELDS`]; any other key unchanged.
#[inline]
pub(super) fn meant(key: &[u8]) -> &[u8] {
    if key.contains(&b'\\') {
        unescaped_field(key)
    } else {
        key
    }
}

#[cold]
pub(super) fn unescaped_field(key: &[u8]) -> &[u8] {
    let meant = decoded(key).0;
    FIELDS.into_iter().find(|field| *field == meant.as_bytes()).unwrap_or(key)
}

/// The kind of an event without a category.
pub(super) fn legacy_kind(process: Option<Raw<'_>>) -> Kind {
    process
        .filter(|process| process.is_text())
        .map_or(Kind::Other, |process| Kind::of_legacy_process(process.bytes))
}

/// The letter of a phase; 0 for null, and a space for anything else that is not a single letter.
pub(super) fn phase(value: Raw<'_>) -> u8 {
    match value.bytes {
        [letter] if value.is_text() => *letter,
        _ if value.is_null() => 0,
        _ => b' ',
    }
}
