//! The health of a file: repaired and dropped content, with its position.

use serde_json::{json, Value};

/// Number of offsets to record for each kind of fault.
const MOST_OFFSETS: usize = 5;
/// Number of bytes of text to keep from the first occurrence of a fault.
const EXAMPLE_BYTES: usize = 120;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The event is kept, with the meaning its writer most likely intended.
    Repaired,
    /// The event or value is lost.
    Dropped,
    /// No event is lost, but the numbers must be interpreted with this finding in mind.
    Note,
}

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $severity:ident;)*) => {
        /// Kinds of findings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            /// All kinds, in the order in which they are reported.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable name of the fault.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The severity of the fault.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }
        }
    };
}

faults! {
    /// A string contained an unescaped quote.
    UnescapedQuote = "unescaped_quote", Repaired;
    /// A backslash that does not begin a valid escape.
    BadEscape = "bad_escape", Repaired;
    /// A string contained bytes that are not UTF-8.
    InvalidUtf8 = "invalid_utf8", Repaired;
    /// A string contained an unescaped control character.
    ControlCharacter = "control_character", Repaired;
    /// NaN, inf, N/A or a similar word instead of a JSON value.
    BareLiteral = "bare_literal", Repaired;
    /// An unnecessary comma.
    StrayComma = "stray_comma", Repaired;
    /// An event without a name.
    MissingName = "missing_name", Repaired;
    /// A complete event without a duration; it is kept with duration 0.
    MissingDuration = "missing_duration", Repaired;
    /// An event without a phase; it is kept as a complete event.
    MissingPhase = "missing_phase", Repaired;
    /// A negative duration, kept as 0.
    NegativeDuration = "negative_duration", Repaired;
    /// A value that is not valid JSON; its text is kept.
    BrokenValue = "broken_value", Repaired;
    /// A value nested too deeply for JSON parsers; its text is kept.
    DeepValue = "deep_value", Repaired;
    /// A value of top-level metadata that is not valid JSON; its text is kept.
    BrokenMetadata = "broken_metadata", Repaired;
    /// Top-level metadata so damaged that it was skipped.
    LostMetadata = "lost_metadata", Dropped;
    /// An arg's value does not fit its column; its text is kept in `extra_args`.
    UnexpectedValue = "unexpected_value", Note;
    /// An event that could not be read.
    BrokenEvent = "broken_event", Dropped;
    /// An event without a usable time.
    MissingTime = "missing_time", Dropped;
    /// A time so distant, or a duration so long, that differences or sums would not fit in 64 bits.
    TimeOverflow = "time_overflow", Dropped;
    /// An event with an unknown phase.
    UnknownPhase = "unknown_phase", Dropped;
    /// An end event without a begin event.
    UnmatchedEnd = "unmatched_end", Dropped;
    /// A begin event without an end event, kept with duration 0.
    UnmatchedBegin = "unmatched_begin", Repaired;
    /// Bytes between two events that belong to neither event.
    Garbage = "garbage_between_events", Dropped;
    /// An element of the list of events that is not an object.
    NotAnEvent = "not_an_event", Dropped;
    /// An event too long to be read.
    OversizedEvent = "oversized_event", Dropped;
    /// Metadata too long to be read.
    OversizedMetadata = "oversized_metadata", Dropped;
    /// Two events without a comma between them.
    MissingComma = "missing_comma", Repaired;
    /// A bracket closes the list of events, but more events follow.
    StrayBracket = "stray_bracket", Repaired;
    /// A second list of events in the same object; its events are also read.
    RepeatedEvents = "repeated_trace_events", Repaired;
    /// Another document follows the first; its events are also read.
    AnotherDocument = "another_document", Repaired;
    /// A base time that cannot be used: it is too large, or the events were already read with another base time.
    UnusableBaseTime = "unusable_base_time", Dropped;
    /// Zero bytes among the events, as in a sparse file.
    ZeroBytes = "zero_bytes", Dropped;
    /// Zero bytes after the end of the JSON, as in files written in blocks.
    ZeroPadding = "zero_padding", Repaired;
    /// The file stops in the middle; the last event is lost.
    TruncatedJson = "truncated_json", Dropped;
    /// The closing brackets are missing, but no event is lost.
    MissingEnd = "missing_end", Repaired;
    /// Text follows the end of the JSON.
    TrailingGarbage = "trailing_garbage", Dropped;
    /// The compressed stream is cut off or damaged.
    TruncatedCompression = "truncated_compression", Dropped;
    /// The checksum or size stated by a compressed stream does not match its decompressed text.
    ChecksumMismatch = "checksum_mismatch", Dropped;
}

/// The lost parts of a file: they are missing from all tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Number of lost events that could be recognised.
    pub events: u64,
    /// Number of lost bytes of text, or of compressed bytes that could not be decoded.
    pub bytes: u64,
}

impl Lost {
    /// The loss if `text` is skipped; each key `ph` in it counts as one lost event.
    pub(crate) fn text(text: &[u8]) -> Self {
        Self { events: memchr::memmem::find_iter(text, b"\"ph\"").count() as u64, bytes: text.len() as u64 }
    }

    /// The loss if the event with this `text` is dropped: at least one event, even if the text has no key `ph`.
    pub(crate) fn event(text: &[u8]) -> Self {
        let lost = Self::text(text);
        Self { events: lost.events.max(1), ..lost }
    }

    /// The loss of `count` bytes in which no events can be recognised.
    pub(crate) fn bytes(count: u64) -> Self {
        Self { events: 0, bytes: count }
    }

    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.bytes += other.bytes;
    }
}

/// One kind of finding in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of fault.
    pub fault: Fault,
    /// The number of occurrences.
    pub count: u64,
    /// The events and bytes that were lost.
    pub lost: Lost,
    /// Byte offsets of the first few occurrences in the decompressed text.
    pub offsets: Vec<u64>,
    /// The beginning of the damaged text at the first occurrence.
    pub example: String,
}

/// The findings of a file or a part of it, one per kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    findings: Vec<Finding>,
}

impl Health {
    /// Count a finding about `text`, which begins at `offset`.
    pub(crate) fn add(&mut self, fault: Fault, offset: u64, text: &[u8]) {
        self.add_loss(fault, offset, text, Lost::default());
    }

    /// Count a finding about `text`, which begins at `offset`, and add up the data that was `lost`.
    pub(crate) fn add_loss(&mut self, fault: Fault, offset: u64, text: &[u8], lost: Lost) {
        let finding = self.entry(fault);
        finding.count += 1;
        finding.lost.add(lost);
        if finding.offsets.len() < MOST_OFFSETS {
            finding.offsets.push(offset);
        }
        if finding.example.is_empty() {
            finding.example =
                String::from_utf8_lossy(&text[..text.len().min(EXAMPLE_BYTES)]).trim().to_owned();
        }
    }

    /// Add the findings of a later part of the same file.
    pub(crate) fn merge(&mut self, later: Self) {
        for other in later.findings {
            let finding = self.entry(other.fault);
            finding.count += other.count;
            finding.lost.add(other.lost);
            let room = MOST_OFFSETS - finding.offsets.len();
            finding.offsets.extend(other.offsets.into_iter().take(room));
            if finding.example.is_empty() {
                finding.example = other.example;
            }
        }
    }

    /// The number of occurrences of a fault.
    pub(crate) fn count(&self, fault: Fault) -> u64 {
        self.findings.iter().find(|finding| finding.fault == fault).map_or(0, |finding| finding.count)
    }

    fn entry(&mut self, fault: Fault) -> &mut Finding {
        let at = self.findings.iter().position(|finding| finding.fault == fault).unwrap_or_else(|| {
            self.findings.push(Finding {
                fault,
                count: 0,
                lost: Lost::default(),
                offsets: Vec::new(),
                example: String::new(),
            });
            self.findings.len() - 1
        });
        &mut self.findings[at]
    }

    /// The findings, in the order of [`Fault::ALL`].
    #[must_use]
    pub fn findings(&self) -> Vec<&Finding> {
        Fault::ALL
            .iter()
            .filter_map(|&fault| self.findings.iter().find(|finding| finding.fault == fault))
            .collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        self.findings()
            .into_iter()
            .map(|finding| {
                json!({
                    "kind": finding.fault.name(),
                    "severity": match finding.fault.severity() {
                        Severity::Repaired => "repaired",
                        Severity::Dropped => "dropped",
                        Severity::Note => "note",
                    },
                    "count": finding.count,
                    "events_lost": finding.lost.events,
                    "bytes_lost": finding.lost.bytes,
                    "offsets": finding.offsets,
                    "example": finding.example,
                })
            })
            .collect()
    }
}
